"""Behaviour of NNabla 1.39 that programs rely on, and that no other test of ours states; seen on NNabla as a black box."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError, GraphError, ShapeError


def leaf(*shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return nn.Variable.from_numpy_array(values, need_grad=True)


@pytest.mark.parametrize("start_and_length", [(-1, 1), (0, 5), (3, 2)])
def test_parts_lie_within_the_array(start_and_length):
    with pytest.raises(ArgumentError, match="narrow: start and length must lie within axis 0") as error:
        nn.NdArray((4, 3)).narrow(0, *start_and_length)
    assert isinstance(error.value, RuntimeError)


def test_zeros_of_a_part_are_seen_in_the_whole():
    whole = nn.NdArray.from_numpy_array(np.ones((4, 3), np.float32))
    part = whole.narrow(0, 1, 2)
    assert (whole.zeroing, part.zeroing) == (False, False)
    part.zero()
    assert not whole.zeroing
    np.testing.assert_array_equal(whole.data[:, 0], [1, 0, 0, 1])
    whole.zero()
    assert (whole.zeroing, part.zeroing) == (True, True)
    part.fill(3)
    assert (whole.zeroing, part.zeroing) == (False, False)
    np.testing.assert_array_equal(whole.data[:, 0], [0, 3, 3, 0])


def test_a_part_of_zeros_is_zeroing():
    whole = nn.NdArray((4, 3))
    whole.zero()
    assert whole.narrow(0, 0, 2).zeroing


@pytest.mark.parametrize("shape", [(6,), (3, 2), (4,)])
def test_values_of_a_wrong_shape_are_refused(shape):
    for holder, name in ((nn.NdArray((2, 3)), "data"), (leaf(2, 3), "d"), (leaf(2, 3), "g")):
        with pytest.raises(ShapeError, match=r"assigned values must have the array's shape, got .* for \(2, 3\)"):
            setattr(holder, name, np.zeros(shape))


def test_an_index_has_the_arguments_of_the_same_slice():
    x, end = leaf(4, 5, 6), 2**31 - 1
    sliced = F.slice(x, (1, 0, 0), (3, end, end), (1, 1, 1))
    assert x[1:3].parent.arguments == sliced.parent.arguments == {"start": [1, 0, 0], "stop": [3, end, end], "step": [1, 1, 1]}


def test_a_sum_in_the_memory_of_an_operand():
    a, b = leaf(2), leaf(2)
    with pytest.raises(GraphError, match="add2: an output must not be what the function or its inputs are computed from"):
        F.add2(a, b, inplace=True, outputs=[a.data])
    total, other = nn.NdArray.from_numpy_array([1.0, 2.0]), nn.NdArray.from_numpy_array([3.0, 4.0])
    F.add2(total, other, outputs=[total])
    assert total.data.tolist() == [4, 6]


@pytest.mark.parametrize("clear", [False, True])
def test_the_halves_of_a_graph_are_differentiated_one_after_the_other(clear):
    x = leaf(2, 3)
    h = F.sin(x * 2)
    y = F.sum(F.exp(h.get_unlinked_variable(need_grad=True)) * 3)
    h.forward(clear_no_need_grad=clear)
    y.forward(clear_no_need_grad=clear)
    y.backward(clear_buffer=True)
    h.backward(None, clear_buffer=True)
    np.testing.assert_allclose(x.g, 6 * np.exp(np.sin(2 * x.d)) * np.cos(2 * x.d), rtol=1e-5)


def test_what_a_cleared_pass_says_that_it_has_cleared():
    x = leaf(2, 3)
    h = F.sin(x)
    y = F.sum(h)
    y.forward()
    y.backward(clear_buffer=True)
    assert (h.data.clear_called, h.grad.clear_called) == (True, True)
    assert (y.data.clear_called, y.grad.clear_called, x.grad.clear_called) == (False, False, False)


def test_graphs_over_parts_that_are_computed_as_they_are_built():
    x = nn.NdArray.from_numpy_array(np.ones((4, 3), np.float32))
    with nn.auto_forward():
        v = nn.Variable((2, 3))
        v.data = x.narrow(0, 0, 2)
        y = F.exp(v)
    assert (y.name, v.name, y.parent.name) == ("", "", "Exp")
    np.testing.assert_allclose(y.d, np.full((2, 3), np.e), rtol=1e-6)
