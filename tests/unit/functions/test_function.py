"""Functions as objects, found by the name of the operator."""

import inspect

import numpy as np
import pytest

import nn_core as nn
from nn_core import function


def variable(*shape: int) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.arange(1.0, 1 + np.prod(shape)).reshape(shape), need_grad=True)


def test_an_operator_takes_context_and_settings_in_order() -> None:
    assert list(inspect.signature(function.Affine).parameters) == ["ctx", "base_axis"]
    affine = function.Affine(nn.get_current_context(), 1)
    y = affine(variable(2, 3), variable(3, 4))
    assert y.shape == (2, 4) and y.parent == affine
    assert affine.name == "Affine" and affine.arguments == {"base_axis": 1} and affine.min_outputs() == 1


def test_arrays_are_computed_at_once() -> None:
    relu = function.ReLU(nn.get_current_context())
    assert relu(nn.NdArray.from_numpy_array(np.array([-1.0, 2.0]))).data.tolist() == [0.0, 2.0]


def test_forward_can_be_asked_for() -> None:
    y = function.Tanh(nn.get_current_context())(variable(2), auto_forward=True)
    assert y.d == pytest.approx(np.tanh([1.0, 2.0]))


def test_passes_run_on_given_variables() -> None:
    x, y = variable(3), nn.Variable(())
    multiply = function.MulScalar(nn.get_current_context(), val=3.0)
    multiply.setup([x], [y])
    assert y.shape == (3,)
    multiply.forward([x], [y])
    assert y.d.tolist() == [3.0, 6.0, 9.0]
    y.g = 1
    multiply.backward([x], [y])
    multiply.backward([x], [y], accum=[True])
    assert x.g.tolist() == [6.0, 6.0, 6.0]
    multiply.backward([x], [y], accum=[False])
    assert x.g.tolist() == [3.0, 3.0, 3.0]


def test_unknown_operators_are_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'nn_core.function' has no function 'Nothing'"):
        _ = function.Nothing
    with pytest.raises(TypeError, match="val"):
        function.ReLU(nn.get_current_context(), val=1)
