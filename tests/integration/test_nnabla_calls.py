"""More behaviour of NNabla 1.39, seen on it as a black box: calls of single functions, their gradients, and references."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core import function
from nn_core.errors import GraphError


def leaf(*shape, seed=0):
    return nn.Variable.from_numpy_array(np.random.RandomState(seed).randn(*shape).astype(np.float32), need_grad=True)


def test_references_are_counted_by_the_functions_that_take_a_variable():
    x = leaf(2)
    y = x * 2
    unlinked = y.get_unlinked_variable()
    z = unlinked + 1
    assert [v.get_number_of_references for v in (x, y, unlinked, z)] == [1, 0, 1, 0]
    assert [len(v.function_references) for v in (x, y, unlinked, z)] == [1, 0, 1, 0]
    kept = [x * n for n in range(3)]
    assert x.get_number_of_references == 4
    del kept
    assert x.get_number_of_references == 1


@pytest.mark.parametrize("loss", [F.binary_cross_entropy, F.sigmoid_cross_entropy])
def test_targets_have_gradients_in_each_way(loss):
    a, b = leaf(2, 3), leaf(2, 3, seed=1)
    p = F.sigmoid(a) if loss is F.binary_cross_entropy else a
    y = F.sum(loss(p, F.sigmoid(b)))
    y.forward()
    b.grad.zero()
    y.backward()
    (slope,) = nn.grad([y], [b])
    slope.forward()
    target = 1 / (1 + np.exp(-b.d))
    expected = -a.d * target * (1 - target)  # the difference of both logarithms is a
    np.testing.assert_allclose([b.g, slope.d], [expected, expected], rtol=1e-4)


def test_gradients_alone_compute_what_they_read():
    x = leaf(2, 3)
    read, unread = F.exp(x), F.sum(x * x)
    slopes = nn.grad([read], [x]) + nn.grad([unread], [x])
    nn.forward_all(slopes)
    np.testing.assert_allclose(read.d, np.exp(x.d), rtol=1e-5)
    with pytest.raises(GraphError, match=r"got the output of <Sum\(.*\)>, which has not run"):
        _ = unread.d
    nn.forward_all([unread, *slopes])
    np.testing.assert_allclose(unread.d, np.sum(x.d**2), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.uint8])
def test_functions_take_arrays_of_other_dtypes_by_their_objects(dtype):
    """Call an object of a function, which has run on float32, with arrays of another dtype."""
    context = nn.get_current_context()
    largest = function.TopKData(context, 2, False, True, 1, True, False)
    order = function.Sort(context, 1, False, False, False)
    for given in (np.float32, dtype, np.float32):
        x = nn.Variable.from_numpy_array(np.array([[3, 1, 2], [5, 9, 7]], given))
        for made, expected in ((largest, [[3, 2], [9, 7]]), (order, [[1, 2, 3], [5, 7, 9]])):
            y = nn.Variable()
            made.setup([x], [y])
            made.forward([x], [y])
            np.testing.assert_array_equal(y.d, expected)
        y = F.top_k_data(x, 2)
        y.forward()
        np.testing.assert_array_equal(y.d, [[3, 2], [9, 7]])


#: Gradients by nn.grad, and what a second backward pass over the sum of their squares adds, as NNabla 1.39 computes them.
SECOND = {
    "binary_cross_entropy": (
        lambda x: F.binary_cross_entropy(F.sigmoid(x), nn.Variable.from_numpy_array([[0.0, 1, 1], [1, 0, 0]])),
        [0.8537, -0.4013, -0.2731, -0.09614, 0.8662, 0.2734],
        [0.2132, -0.1928, -0.1085, -0.01671, 0.2008, 0.1086],
    ),
    "sigmoid_cross_entropy": (
        lambda x: F.sigmoid_cross_entropy(x, nn.Variable.from_numpy_array([[0, 1, 1], [1, 0, 0]])),
        [0.8537, -0.4013, -0.2731, -0.09614, 0.8662, 0.2734],
        [0.2132, -0.1928, -0.1085, -0.01671, 0.2008, 0.1086],
    ),
    "spectral_norm": (
        lambda x: F.spectral_norm(x, nn.Variable.from_numpy_array(leaf(2, seed=3).d), 0, 1, output_u=True)[0],
        [-0.0589, 0.1821, 0.2013, -0.1266, 0.157, 0.1796],
        [-0.05522, -0.02507, -0.02268, -0.06369, -0.02821, -0.02539],
    ),
    "dropout": (
        lambda x: F.dropout(x * x * x, 0.5, seed=3) * 0 + x * x * x,
        [9.336, 0.4804, 2.874, 15.06, 10.46, 2.865],
        [197.6, 2.307, 33.75, 405.1, 234.5, -33.6],
    ),
}


@pytest.mark.parametrize("name", SECOND)
@pytest.mark.parametrize("start", [0, 5])
def test_gradients_of_gradients_are_added(name, start):
    make, first, second = SECOND[name]
    x = leaf(2, 3)
    (slope,) = nn.grad([make(x)], [x])
    total = F.sum(slope * slope)
    total.forward()
    x.g = start
    total.backward()
    np.testing.assert_allclose(slope.d.ravel(), first, rtol=1e-3)
    np.testing.assert_allclose(x.g.ravel() - start, second, rtol=1e-3, atol=1e-4)


def test_the_gradient_of_a_dequantization_has_one_to_its_scale():
    x, scale, zero = leaf(2, 3), nn.Variable((1, 1), need_grad=True), nn.Variable((1, 1), need_grad=True)
    scale.d = 0.5
    (slope,) = nn.grad([F.dequantize_linear(x, scale, zero)], [x])
    total = F.sum(slope * slope)  # six times the square of the scale
    total.forward()
    scale.grad.zero()
    total.backward()
    np.testing.assert_allclose(slope.d, np.full((2, 3), 0.5))
    np.testing.assert_allclose(scale.g, [[6]])


@pytest.mark.parametrize("recomputed", [False, True])
def test_a_mask_of_incremental_quantization_with_recomputation(recomputed):
    x, weight, fixed = leaf(3, 4), leaf(4, 2, seed=1), nn.Variable.from_numpy_array(np.tile([1.0, 0.0], (4, 1)))
    with nn.recompute(recomputed):
        y = F.inq_affine(F.sin(x), weight, fixed, num_bits=4, inq_iterations=(2, 4))
        z = F.tanh(y)
    total = F.sum(z)
    total.forward(clear_no_need_grad=True)
    x.grad.zero()
    weight.grad.zero()
    total.backward()
    np.testing.assert_allclose(total.d, 0.1405, atol=1e-4)  # both numbers as NNabla 1.39 computes them
    np.testing.assert_allclose(x.g.sum(), -0.9299, atol=1e-4)
    assert not weight.g[:, 0].any() and weight.g[:, 1].all()
    assert fixed.d[:, 0].all() and (fixed.d[:, 1] == -1).all()  # the pass counts once
