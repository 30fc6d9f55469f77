"""Lengths that remember where they were read."""

import copy
import gc
import math
import pickle
import weakref

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.lengths import Length, Ratio


def _remembers(number):
    return type(number) in (Length, Ratio)


def test_a_length_is_an_int():
    x = nn.Variable((3, 4))
    n = x.shape[0]
    assert _remembers(n)
    assert isinstance(n, int)
    assert n == 3
    assert hash(n) == hash(3)
    assert repr(x.shape) == "(3, 4)"
    assert f"{n}" == "3"
    assert [*range(n)] == [0, 1, 2]
    assert np.zeros(x.shape).shape == (3, 4)
    assert {3: "three"}[n] == "three"


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda n: n + 1, 7),
        (lambda n: 10 - n, 4),
        (lambda n: n * n, 36),
        (lambda n: n // 4, 1),
        (lambda n: n % 4, 2),
        (lambda n: -n, -6),
        (lambda n: abs(-n), 6),
        (lambda n: n**2, 36),
        (lambda n: n / 4, 1.5),
        (lambda n: 3 / n, 0.5),
        (lambda n: n * 0.5, 3.0),
        (lambda n: round(n * 0.4), 2),
        (lambda n: math.floor(n / 4), 1),
        (lambda n: math.ceil(n / 4), 2),
        (lambda n: math.prod((n, n)), 36),
        (lambda n: sum((n, 1)), 7),
    ],
)
def test_arithmetic_keeps_the_origin(compute, expected):
    result = compute(nn.Variable((6,)).shape[0])
    assert result == expected
    assert type(result) is (Length if isinstance(expected, int) else Ratio)


@pytest.mark.parametrize(
    "convert", [int, lambda n: int(f"{n}"), lambda n: np.int64(n) * 1, lambda n: n + np.int64(0), lambda n: len(range(n))]
)
def test_what_becomes_a_number_is_a_constant(convert):
    x = nn.Variable((3,))
    x.d = 1.0
    y = F.sum(x) / convert(x.shape[0])
    x.reset_shape((6,), True)
    x.d = 1.0
    y.forward()
    assert y.item() == 2.0


def test_sums_may_have_any_number_of_terms():
    x = nn.Variable((2,))
    y = F.constant(1, shape=(sum([x.shape[0]] * 5000),))
    x.reset_shape((3,), True)
    y.forward()
    assert y.shape == (15000,)


def test_doubled_lengths_are_computed_once():
    x = nn.Variable((1,))
    n = x.shape[0]
    for _ in range(30):
        n = n + n
    y = F.constant(0, shape=()) + n
    x.reset_shape((0,), True)
    y.forward()
    assert y.item() == 0


def test_division_by_a_length_that_becomes_zero_is_refused():
    x = nn.Variable((2, 3))
    y = F.constant(1, shape=(6 // x.shape[0],))
    x.reset_shape((0, 3), True)
    with pytest.raises(nn.errors.ShapeError, match=r"constant: .*must exist, got"):
        y.forward()


def test_a_function_that_cannot_follow_refuses_by_name():
    x = nn.Variable((4, 6))
    w = nn.Variable.from_numpy_array(np.ones((6, 6)))
    y = F.slice(F.identity(w), start=(0, 0), stop=(x.shape[0], 6)) * 2 + x
    z = F.transpose(F.reshape(w, (x.shape[0], 9)), (1, 0))
    x.reset_shape((5, 6), True)
    x.d = 1.0
    y.forward()
    assert y.shape == (5, 6)
    with pytest.raises(nn.errors.ShapeError, match="reshape: x and shape must have the same size"):
        z.forward()


def test_an_axis_that_is_gone_is_refused():
    x = nn.Variable((2, 3))
    y = F.constant(1, shape=(x.shape[1],))
    x.reset_shape((6,))
    with pytest.raises(nn.errors.ShapeError, match=r"constant: .*axis 1, of which a length was read"):
        y.forward()


def test_dynamic_graphs_have_plain_numbers():
    with nn.auto_forward():
        x = nn.Variable((3, 4))
        assert type(x.shape[0]) is int
        assert type(F.tanh(x).shape[0]) is int
        assert type(F.reshape(x, (2, 6)).shape[0]) is int
        assert type(x.size) is int


def test_lengths_that_were_read_before_are_numbers_in_dynamic_graphs():
    x = nn.Variable((3, 4))
    n = x.shape[0]
    with nn.auto_forward():
        y = F.reshape(nn.Variable((12,)), (n, -1))
        z = nn.Variable((5, 4))[: n - 1]
    assert (y.shape, z.shape) == ((3, 4), (2, 4))
    assert not y.parent.node.setup.sources


def test_calls_with_equal_numbers_are_not_mixed_up():
    a, b = nn.Variable((3, 4)), nn.Variable((3, 4))
    from_a, from_b = F.constant(1, shape=a.shape), F.constant(1, shape=b.shape)
    plain = F.constant(1, shape=(3, 4))
    cut_a, cut_b = F.tanh(a)[: a.shape[0] - 1], F.tanh(a)[: b.shape[0] - 1]
    a.reset_shape((7, 4), True)
    a.d = 1.0
    for y, shape in ((from_a, (7, 4)), (from_b, (3, 4)), (plain, (3, 4)), (cut_a, (6, 4)), (cut_b, (2, 4))):
        y.forward()
        assert y.shape == shape


def test_a_graph_goes_with_its_last_variable():
    gc.collect()
    gc.disable()
    try:
        x = nn.Variable((3, 4))
        h = F.tanh(x)
        y = F.reshape(h, (h.shape[0], 2, 2)) + F.randn(shape=(h.shape[0], 2, 2))
        y = y[: x.shape[0] - 1] / x.shape[0]
        h[0] = F.constant(2, shape=(h.shape[1],))
        h.forward()
        y.forward()
        references = [weakref.ref(h.parent.node), weakref.ref(y.parent.node), weakref.ref(x)]
        del h, y, x
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_a_length_belongs_to_what_was_assigned_to():
    h = F.identity(nn.Variable((3, 4)))
    h[0] = F.constant(2, shape=(h.shape[1],))
    h.forward()
    np.testing.assert_array_equal(h.d[0], 2)


def test_lengths_follow_a_variable_that_is_computed_later():
    x, inner = nn.Variable((3, 4)), nn.Variable((3, 4))
    y = F.sum(F.exp(inner * 0)) / inner.shape[0]
    inner.rewire_on(F.identity(x))
    x.reset_shape((6, 4), True)
    x.d = 1.0
    y.forward()
    assert y.item() == 4.0


def test_copies():
    n = nn.Variable((3,)).shape[0]
    assert copy.copy(n) is n
    other = copy.deepcopy([n])[0]
    assert other is not n and other == n and type(other) is type(n) and vars(other) == vars(n)
    assert type(pickle.loads(pickle.dumps(n))) is int
    assert type(pickle.loads(pickle.dumps(n / 2))) is float


def test_copied_graphs_follow_the_variables_of_the_copy():
    x = nn.Variable((3, 4))
    y = F.sum(x) / x.shape[0] + F.sum(F.randn(shape=F.concatenate(x, x).shape, seed=1)) * 0
    other = nn.Variable((5, 4))
    other.d = 1.0
    (z,) = nn.graph_rewriting.copy_graph([y], {x: other})
    z.forward()
    assert z.item() == 4.0
    other.reset_shape((2, 4), True)
    other.d = 1.0
    x.reset_shape((9, 4), True)
    z.forward()
    assert z.item() == 4.0


def test_the_same_operator_applied_again_follows():
    x = nn.Variable((3, 4))
    y = F.reshape(x, (x.shape[0] * 2, 2))
    x.reset_shape((5, 4), True)
    assert y.parent.applied_to(x).shape == (10, 2)


def test_the_settings_that_programs_and_files_see_are_numbers():
    x = nn.Variable((3, 4))
    y = F.reshape(x, (x.shape[0], 2, 2))
    y.forward()
    assert list(map(type, y.parent.args["shape"])) == [int] * 3
    x.reset_shape((5, 4), True)
    y.forward()
    assert y.parent.args["shape"] == [5, 2, 2]


def test_a_parameter_has_plain_lengths():
    x = nn.Variable((3, 4))
    w = nn.parameter.get_parameter_or_create("w", (x.shape[1], 2))
    assert list(map(type, w.data.shape)) == [int, int]
