"""Comparisons of integers are exact, whichever way a function is called and whatever the context computes in."""

import itertools
import operator

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.operators.spec.model import INTEGERS

COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "less": operator.lt,
    "less_equal": operator.le,
}
#: Neighbours that float32 or float64 does not tell apart, by dtype.
NUMBERS = {
    "int64": [2**53, 2**53 + 1, -(2**24) - 1, -(2**24), 2**63 - 1, -(2**63)],
    "uint64": [2**53, 2**53 + 1, 2**64 - 1, 2**64 - 2, 0, 1],
    "int32": [2**24, 2**24 + 1, -(2**31), 2**31 - 1, 2**31 - 2, 0],
    "uint32": [2**24, 2**24 + 1, 2**32 - 1, 2**32 - 2, 0, 1],
}


def numbers_of(dtype):
    array = np.array(NUMBERS.get(dtype, [0, 1, 1, 0, 1, 0]), dtype)
    return array, array[[1, 0, 3, 2, 5, 4]]


def imperatively(function, *arrays):
    return function(*map(nn.NdArray.from_numpy_array, arrays)).data


def statically(function, *arrays):
    """Compare in a graph that has compared floating-point numbers before it is given the integers, and again after them."""
    leaves = [nn.Variable.from_numpy_array(np.ones(array.shape, np.float32)) for array in arrays]
    y = function(*leaves)
    y.forward()
    for leaf, array in zip(leaves, arrays, strict=True):
        leaf.d = array
    y.forward()
    found = y.d.copy()
    for leaf in leaves:
        leaf.d = np.full(leaf.shape, 0.5, np.float32)
    y.forward(clear_no_need_grad=True)
    assert y.d.tolist() == imperatively(function, *[np.full(array.shape, 0.5, np.float32) for array in arrays]).tolist()
    return found


def dynamically(function, *arrays):
    """Make the same calls again and again, on floating-point numbers first."""
    with nn.auto_forward():
        for kind in ("float32", None, "float32", None):
            given = [array if kind is None else np.ones(array.shape, kind) for array in arrays]
            y = function(*map(nn.Variable.from_numpy_array, given))
    return y.d


def dynamically_in_one_variable(function, *arrays):
    leaves = [nn.Variable.from_numpy_array(np.ones(array.shape, np.float32), need_grad=True) for array in arrays]
    with nn.auto_forward():
        for leaf in leaves:
            function(*leaves)
            leaf.d = leaf.d + 1
        for leaf, array in zip(leaves, arrays, strict=True):
            leaf.d = array
        return function(*leaves).d


WAYS = [imperatively, statically, dynamically, dynamically_in_one_variable]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", sorted(INTEGERS))
def test_two_arrays(way, dtype):
    x0, x1 = numbers_of(dtype)
    for name, compare in COMPARISONS.items():
        assert way(getattr(F, name), x0, x1).tolist() == compare(x0, x1).tolist(), name


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "bool"])
def test_an_array_and_a_number(way, dtype):
    x, _ = numbers_of(dtype)
    values = [float(number) for number in x.tolist()] + [0.5, -1.0, 2.0**63, 2.0**64, -(2.0**70), np.inf, -np.inf, np.nan]
    for (name, compare), value in itertools.product(COMPARISONS.items(), values):
        expected = [compare(int(number), value) for number in x]  # Python compares integers with floats exactly
        found = way(lambda y, name=name, value=value: getattr(F, f"{name}_scalar")(y, value), x)
        assert found.tolist() == expected, (name, value)


@pytest.mark.parametrize("type_config", ["half", "bfloat16", "float", "double"])
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_whatever_the_context_computes_in(backend, type_config):
    x0, x1 = numbers_of("int64")
    with nn.context_scope(nn.Context([f"{backend}:{type_config}"])):
        y = F.equal(nn.Variable.from_numpy_array(x0), nn.Variable.from_numpy_array(x1))
        y.forward()
    assert not y.d.any()


def test_an_integer_and_a_floating_point_number_are_compared_as_the_context_computes():
    y = imperatively(F.equal, np.array([2**24 + 1]), np.array([2.0**24], np.float32))
    assert y.tolist() == [1]


def test_integers_of_two_dtypes():
    x0, x1 = np.array([2**63 - 1, -1, 5]), np.array([2**63, 2**64 - 1, 5], np.uint64)
    assert imperatively(F.equal, x0, x1).tolist() == [0, 0, 1]
    assert imperatively(F.less, x0, x1).tolist() == [1, 1, 0]


def test_what_other_functions_of_the_graph_have_computed():
    x = nn.Variable.from_numpy_array(np.array([[1.0, 3.0, 2.0]], np.float32))
    _, place = F.max(x, axis=1, with_index=True)
    labels = nn.Variable.from_numpy_array(np.array([1]))
    y = F.mean(F.equal(place, labels))
    y.forward()
    assert y.d == 1
