"""Shapes that follow from values inside a static graph: the forward pass finds them, again for other values."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import GraphError


def leaf(values):
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)


MASKS = [[1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]]


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}])
def test_the_mask_is_computed_by_the_forward_pass(flags):
    x, source = leaf(np.arange(8).reshape(4, 2)), nn.Variable((4,))  # without values while the graph is built
    mask = F.greater_scalar(source, 0.5)
    taken = F.bool_gather(x, mask)
    taken.persistent = True
    total = F.sum(F.affine(F.sin(taken), leaf(np.ones((2, 3)))))
    for entries in MASKS:
        source.d = entries
        x.grad.zero()
        total.forward(**flags)
        chosen = np.array(entries, bool)
        np.testing.assert_array_equal(taken.d, x.d[chosen])
        np.testing.assert_allclose(total.d, 3 * np.sin(x.d[chosen]).sum(), rtol=1e-5, atol=1e-6)
        if "clear_buffer" not in flags:
            total.backward(clear_buffer=bool(flags))
            np.testing.assert_allclose(x.g, 3 * np.cos(x.d) * chosen[:, None], rtol=1e-5)


def test_what_was_taken_is_put_back():
    x, source = leaf(np.arange(8).reshape(4, 2)), nn.Variable((4,))
    mask = F.greater_scalar(source, 0.5)
    y = F.bool_scatter(F.bool_gather(x, mask) * 2, mask)
    for entries in MASKS:
        source.d = entries
        x.grad.zero()
        y.forward()
        y.backward()
        np.testing.assert_array_equal(y.d, 2 * x.d * np.array(entries)[:, None])
        np.testing.assert_array_equal(x.g, np.repeat(2.0 * np.array(entries)[:, None], 2, 1))


def test_one_such_function_after_another():
    x, source = leaf([3, 1, 4, 1, 5]), nn.Variable((5,))
    some = F.bool_gather(x, F.greater_scalar(source, 0.5))
    large = F.bool_gather(some, F.greater_scalar(some, 2.5))
    total = F.sum(large)
    for entries, expected in (([1, 1, 1, 1, 1], [3, 4, 5]), ([0, 1, 1, 1, 0], [4]), ([1, 0, 0, 1, 1], [3, 5])):
        source.d = entries
        total.forward()
        assert large.d.tolist() == expected
        assert total.d == sum(expected)


def test_starting_again_changes_neither_statistics_nor_random_numbers():
    x, source = leaf(np.random.RandomState(0).randn(4, 3)), nn.Variable((4,))
    noise = F.rand(shape=(4,))
    h = PF.batch_normalization(x, name="bn", decay_rate=0.5)
    y = F.sum(F.bool_gather(h * F.reshape(noise, (4, 1)), F.greater_scalar(source, 0.5)))
    nn.seed(3)
    source.d = [1, 0, 0, 1]
    y.forward()
    first = noise.d.copy()
    mean = nn.get_parameters(grad_only=False)["bn/bn/mean"]
    np.testing.assert_allclose(mean.d, 0.5 * x.d.mean(0, keepdims=True), rtol=1e-5)
    alone = F.rand(shape=(4,))
    nn.seed(3)
    alone.forward()
    np.testing.assert_array_equal(first, alone.d)


def test_the_backward_pass_refuses_other_values_than_those_of_the_forward_pass():
    x, source = leaf(np.arange(4)), nn.Variable.from_numpy_array([1.0, 1, 0, 0])
    with nn.recompute():
        taken = F.bool_gather(x, source)
    total = F.sum(F.sin(taken))
    total.forward(clear_no_need_grad=True)
    source.d = [1, 1, 1, 0]
    with pytest.raises(GraphError, match=r"bool_gather: outputs must keep the shapes \[\(2,\)\] that the forward pass"):
        total.backward()
