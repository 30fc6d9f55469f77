"""With an NdArray among its inputs every public call computes at once, and gives what it gives on Variables."""

from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import GraphError
from tools.lanes.mixed_operands import (
    CASES,
    COMPOSITES,
    LAYER_CASES,
    LAYERS,
    NO_FUNCTIONS,
    WITHOUT_INPUTS,
    Case,
    array,
    check,
    check_shapes,
    computed,
    floats,
    uncomputed,
    variable,
)


def test_all_public_functions_are_listed() -> None:
    assert set(COMPOSITES) | WITHOUT_INPUTS | NO_FUNCTIONS <= set(F.__all__)
    assert set(LAYERS) == {name for name in PF.__all__ if name not in ("LSTMCell", "parametric_function_api")}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_functions(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", LAYER_CASES, ids=str)
def test_parametric_functions(case: Case) -> None:
    nn.clear_parameters()
    check(case)
    nn.clear_parameters()


def test_masks_fill_at_once() -> None:
    x, mask = variable(floats(3, 4)), np.eye(3, 4)
    expected = np.where(mask, 2.0, x.d)
    np.testing.assert_array_equal(x.bool_fill_(array(mask), 2.0).data, expected)
    with pytest.raises(GraphError, match="bool_fill: a Variable beside an NdArray must be computed before the call"):
        uncomputed(x.d).bool_fill_(array(mask), 2.0)


@pytest.mark.parametrize("kind", ["number", "array", "computed"])
def test_an_array_is_assigned_at_once(kind: str) -> None:
    made = {"number": lambda v: v, "array": array, "computed": computed}[kind]
    for key, shape in ((np.array([0, 2]), (2, 4)), (np.eye(3, 4) > 0, (3,))):
        for key_kind in (variable, array, computed):
            value: Any = 5.0 if kind == "number" else floats(*shape)
            x, expected = array(floats(3, 4)), floats(3, 4)
            x[key_kind(key)] = made(value)
            expected[key] = value
            np.testing.assert_array_equal(x.data, expected)


def test_values_that_were_not_computed_are_not_assigned() -> None:
    x = array(floats(3, 4))
    with pytest.raises(GraphError, match="setitem: a Variable beside an NdArray must be computed before"):
        x[0] = uncomputed(floats(4))
    with pytest.raises(GraphError, match="setitem: a Variable beside an NdArray must be computed before"):
        x[uncomputed(np.array([0, 1]))] = 1.0


@pytest.mark.parametrize("other", [array, computed])
def test_arithmetic_in_place(other: Any) -> None:
    x, expected = array(floats(3, 4)), floats(3, 4)
    same_array = x
    x += other(floats(4))
    x -= other(floats(3, 1))
    x *= other(floats(3, 4))
    x /= other(floats(1, 4))
    x **= other(floats(3, 4))
    expected = ((expected + floats(4) - floats(3, 1)) * floats(3, 4) / floats(1, 4)) ** floats(3, 4)
    assert x is same_array
    np.testing.assert_allclose(x.data, expected, rtol=1e-5)
    with pytest.raises(GraphError, match="add2: a Variable beside an NdArray must be computed before the call"):
        x += uncomputed(floats(4))


@pytest.mark.parametrize("case", [*CASES[::40], *LAYER_CASES[::10]], ids=str)
def test_random_shapes(case: Case) -> None:
    assert not any(check_shapes(case, 1, 1))


def test_a_wrong_result_of_a_mixture_is_found_out() -> None:
    def wrong(x: Any, y: Any) -> Any:
        return x - y if isinstance(x, nn.Variable) and isinstance(y, nn.NdArray) else x + y

    (found,) = check_shapes(Case("wrong", wrong, [floats(3, 4), floats(3, 4)]), 1, 1)
    assert "wrong of ['variable', 'array']" in found
