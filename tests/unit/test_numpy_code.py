"""Functions of Variables from functions of NumPy arrays."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, ShapeError


def leaf(values):
    x = nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)
    x.grad.zero()
    return x


def test_gradients_of_several_inputs_are_added_to_those_that_are_there():
    product = nn.numpy_function(lambda a, b: a * b, lambda dy, y, a, b: (dy * b, dy * a))
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    y = F.sum(product(a, b) + product(a, a))
    y.forward()
    y.backward()
    assert y.item() == 3 + 8 + 1 + 4
    assert a.g.tolist() == [3 + 2, 4 + 4] and b.g.tolist() == [1, 2]


def test_inputs_without_gradients_cost_none():
    product = nn.numpy_function(lambda a, b: a * b, lambda dy, y, a, b: (dy * b, None))
    a = leaf([1.0, 2.0])
    y = F.sum(product(a, nn.Variable.from_numpy_array([3.0, 4.0])))
    y.forward()
    y.backward()
    assert a.g.tolist() == [3, 4]


def test_the_shape_of_the_output_is_that_of_a_function():
    rows = nn.numpy_function(
        lambda x: x.sum(axis=1), lambda dy, y, x: np.repeat(dy[:, None], x.shape[1], 1), lambda shape: shape[:1]
    )
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = rows(x)
    assert y.shape == (2,)
    y.forward()
    y.backward([1.0, 10.0])
    assert y.d.tolist() == [6, 15] and x.g.tolist() == [[1] * 3, [10] * 3]


def test_wrong_functions_are_refused():
    with pytest.raises(ArgumentError, match="numpy_function: gradient must be a function, got 3"):
        nn.numpy_function(np.sign, 3)
    with pytest.raises(ArgumentError, match="sign: there must be at least one input, got none"):
        nn.numpy_function(np.sign, np.sign)()
    y = nn.numpy_function(np.sum, lambda dy, y, x: dy)(leaf([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"sum: forward must return an array of the shape \(2,\), got \(\)"):
        y.forward()
    y = nn.numpy_function(np.sign, lambda dy, y, x: dy[:1])(leaf([1.0, 2.0]))
    y.forward()
    with pytest.raises(ShapeError, match=r"sign: gradient must return an array of the shape \(2,\), got \(1,\)"):
        y.backward()
    y = nn.numpy_function(np.sign, lambda dy, y, x: (dy, dy))(leaf([1.0, 2.0]))
    y.forward()
    with pytest.raises(ArgumentError, match="sign: gradient must return as many arrays as there are inputs, got 2 for 1"):
        y.backward()
