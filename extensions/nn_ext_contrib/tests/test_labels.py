"""Functions in which some labels do not count, slopes of any shape and unpooling, against NumPy and central differences."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ShapeError

C = F.contrib
RNG = np.random.default_rng


def variable(values):
    return nn.Variable.from_numpy_array(np.asarray(values))


def value_of(y):
    y.forward()
    return y.d


@pytest.mark.parametrize("ignored", [-1, 2, None])
def test_rows_that_do_not_count_are_zero(check, ignored):
    x = np.array([[0, 2], [1, ignored if ignored is not None else 0]])

    def expected(w):
        rows = w[x]
        rows[x == ignored] = 0
        return rows

    check(lambda w: C.embed_id(variable(x), w, ignored), expected, RNG(0).normal(size=(3, 2)))


def test_accuracy_leaves_out_labels():
    y = variable([[0.1, 0.7, 0.2], [8.0, 1, 2], [-8, 1, 2], [-8, -1, -2]])
    assert value_of(C.accuracy(y, variable([1, 0, 0, 0]))) == 0.5
    assert value_of(C.accuracy(y, variable([1, 0, 0, 0]), ignore_label=0)) == 1
    assert value_of(C.accuracy(y, variable([3, 3, 3, 3]), ignore_label=3)) == 0
    images = RNG(0).normal(size=(2, 3, 4))
    t = RNG(1).integers(0, 3, (2, 4))
    np.testing.assert_allclose(value_of(C.accuracy(variable(images), variable(t))), np.mean(images.argmax(1) == t), rtol=1e-6)


def test_binary_accuracy_leaves_out_labels():
    y, t = [0.0, -2.0, 3.0, 4.0], [1, 0, 0, -1]
    np.testing.assert_allclose(value_of(C.binary_accuracy(variable(y), variable(t))), 2 / 3, rtol=1e-6)
    assert value_of(C.binary_accuracy(variable([1.0]), variable([-1]))) == 0


def test_sigmoid_cross_entropy_leaves_out_labels(check):
    t = np.array([[0, 1, -1], [-1, 1, 0]])

    def expected(x):
        return np.where(t == -1, 0, np.logaddexp(0, x) - t * x)

    check(lambda x: C.masked_sigmoid_cross_entropy(x, variable(t)), expected, RNG(0).normal(size=(2, 3)) * 3)


@pytest.mark.parametrize("ignored", [-1, 1])
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_softmax_cross_entropy_with_weights_leaves_out_labels(check, ignored, shape):
    t = RNG(0).integers(0, 4, (3, *shape))
    t[0] = ignored
    weight = np.array([1.0, 2, 0.5, 3])

    def expected(x):
        logs = x - np.log(np.exp(x).sum(1, keepdims=True))
        label = np.where(t == ignored, 0, t)
        chosen = -np.take_along_axis(logs, label[:, None], 1)[:, 0]
        return np.where(t == ignored, 0, chosen * weight[label])

    def function(x):
        return C.weighted_softmax_cross_entropy(x, variable(t), variable(weight), ignored)

    check(function, expected, RNG(1).normal(size=(3, 4, *shape)))


def test_without_weights_softmax_cross_entropy_is_that_of_the_core(check):
    x, t = RNG(0).normal(size=(3, 4)), np.array([0, 3, 1])
    expected = value_of(F.softmax_cross_entropy(variable(x), variable(t[:, None])))[:, 0]
    np.testing.assert_allclose(value_of(C.weighted_softmax_cross_entropy(variable(x), variable(t))), expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (3,), (3, 2), (3, 2, 2)])
def test_slopes_of_any_shape(check, shape):
    x, w = RNG(0).normal(size=(2, 3, 2, 2)), RNG(1).normal(size=shape)
    slopes = w.reshape(w.shape + (1,) * (3 - w.ndim))
    check(C.prelu, lambda x, w: np.where(x >= 0, x, x * w.reshape(slopes.shape)), x, w)


def test_vectors_of_length_one(check):
    x = RNG(0).normal(size=(2, 3, 2))
    check(C.normalize, lambda x: x / (np.sqrt((x**2).sum(1, keepdims=True)) + 1e-5), x)
    assert not value_of(C.normalize(variable(np.zeros((1, 3))))).any()


def unpooled(x, kernel, stride, pad, size):
    y = np.zeros((*x.shape[:2], size[0] + 2 * pad[0] + 9, size[1] + 2 * pad[1] + 9))
    for i, j in np.ndindex(x.shape[2:]):
        top, left = i * stride[0], j * stride[1]
        y[:, :, top : top + kernel[0], left : left + kernel[1]] += x[:, :, i : i + 1, j : j + 1]
    return y[:, :, pad[0] : pad[0] + size[0], pad[1] : pad[1] + size[1]]


@pytest.mark.parametrize(
    ("kernel", "stride", "pad", "outsize", "cover_all", "size"),
    [
        ((2, 2), (2, 2), (0, 0), None, True, (5, 5)),
        ((2, 2), (2, 2), (0, 0), None, False, (6, 6)),
        ((3, 2), (2, 1), (1, 0), None, True, (4, 4)),
        ((3, 2), (2, 3), (1, 1), None, False, (5, 6)),
        ((2, 2), (2, 2), (0, 0), (6, 5), True, (6, 5)),
        ((2, 2), (3, 3), (1, 0), (7, 9), False, (7, 9)),
    ],
)
def test_unpooling_pixel_by_pixel(check, kernel, stride, pad, outsize, cover_all, size):
    x = RNG(0).normal(size=(2, 2, 3, 3))

    def function(x):
        return C.unpooling_2d(x, kernel, stride, pad, outsize, cover_all)

    check(function, lambda x: unpooled(x, kernel, stride, pad, size), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: C.accuracy(nn.Variable((2, 3)), nn.Variable((3,))), r"accuracy: t must have the shape .* got \(3,\) and"),
        (lambda: C.binary_accuracy(nn.Variable((2,)), nn.Variable((3,))), "binary_accuracy: y and t must have the same shape"),
        (lambda: C.masked_sigmoid_cross_entropy(nn.Variable((2,)), nn.Variable((3,))), "must have the same shape"),
        (lambda: C.weighted_softmax_cross_entropy(nn.Variable((2, 3)), nn.Variable((2, 1))), "t must have the shape"),
        (
            lambda: C.weighted_softmax_cross_entropy(nn.Variable((2, 3)), nn.Variable((2,)), nn.Variable((2,))),
            r"class_weight must have shape \(3,\), got \(2,\)",
        ),
        (lambda: C.prelu(nn.Variable((2, 3)), nn.Variable((2,))), r"prelu: w must have .* got \(2,\) and \(2, 3\)"),
        (lambda: C.unpooling_2d(nn.Variable((1, 1, 3)), 2), "unpooling_2d: x must have shape"),
        (lambda: C.unpooling_2d(nn.Variable((1, 1, 3, 3)), 2, outsize=(9, 5)), r"outsize must be one .* got \(9, 5\)"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(ShapeError, match=message):
        call()
