"""The small functions that everybody types: against NumPy and SciPy, on graphs and on arrays."""

import numpy as np
import pytest
import scipy.special

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError

X = np.random.default_rng(5).uniform(0.2, 3, (2, 3, 4)).astype(np.float32)

CASES = {
    "sqrt": (F.sqrt, np.sqrt),
    "rsqrt": (F.rsqrt, lambda x: 1 / np.sqrt(x)),
    "square": (F.square, np.square),
    "clip": (lambda x: F.clip(x, 0.5, 1.5), lambda x: np.clip(x, 0.5, 1.5)),
    "clip below": (lambda x: F.clip(x, min=1), lambda x: np.clip(x, 1, None)),
    "clip above": (lambda x: F.clip(x, max=1), lambda x: np.clip(x, None, 1)),
    "argmax": (F.argmax, np.argmax),
    "argmax axis": (lambda x: F.argmax(x, 1, True), lambda x: np.argmax(x, 1, keepdims=True)),
    "argmin": (lambda x: F.argmin(x, axis=-1), lambda x: np.argmin(x, -1)),
    "var": (F.var, np.var),
    "var axes": (lambda x: F.var(x, (0, 2), keepdims=True, ddof=1), lambda x: np.var(x, (0, 2), keepdims=True, ddof=1)),
    "std": (lambda x: F.std(x, 1), lambda x: np.std(x, 1)),
    "std ddof": (lambda x: F.std(x, -1, ddof=1), lambda x: np.std(x, -1, ddof=1)),
    "logsumexp": (F.logsumexp, scipy.special.logsumexp),
    "logsumexp axes": (lambda x: F.logsumexp(x, (0, 2)), lambda x: scipy.special.logsumexp(x, (0, 2))),
    "logsumexp kept": (lambda x: F.logsumexp(x, 1, True), lambda x: scipy.special.logsumexp(x, 1, keepdims=True)),
    "flatten": (F.flatten, np.ravel),
    "flatten from": (lambda x: F.flatten(x, 1), lambda x: x.reshape(2, 12)),
    "flatten to": (lambda x: F.flatten(x, 0, 1), lambda x: x.reshape(6, 4)),
    "squeeze": (lambda x: F.squeeze(x[:1, :, :1]), lambda x: np.squeeze(x[:1, :, :1])),
    "squeeze axis": (lambda x: F.squeeze(x[:1, :, :1], -1), lambda x: np.squeeze(x[:1, :, :1], -1)),
    "expand_dims": (lambda x: F.expand_dims(x, (0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    "matmul": (lambda x: F.matmul(x, x[0].T), lambda x: x @ x[0].T),
    "matmul vector": (lambda x: F.matmul(x, x[0, 0]), lambda x: x @ x[0, 0]),
}
DIFFERENTIABLE = [name for name in CASES if not name.startswith("arg")]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    ours, numpy = CASES[name]
    expected = np.asarray(numpy(X))
    x = nn.Variable.from_numpy_array(X)
    y = ours(x)
    y.forward()
    with nn.auto_forward():
        dynamic = ours(nn.Variable.from_numpy_array(X))
    at_once = ours(nn.NdArray.from_numpy_array(X))
    assert isinstance(at_once, nn.NdArray)
    for result in (y, dynamic, at_once):
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    ours, numpy = CASES[name]
    x = nn.Variable.from_numpy_array(X, need_grad=True)
    x.grad.zero()
    y = ours(x)
    direction = np.random.default_rng(2).standard_normal(y.shape)
    y.forward()
    y.backward(direction.astype(np.float32))
    expected = np.zeros(X.shape)
    wide = X.astype(np.float64)
    for place in np.ndindex(X.shape):
        ends = []
        for step in (1e-4, -1e-4):
            moved = wide.copy()
            moved[place] += step
            ends.append(np.sum(numpy(moved) * direction))
        expected[place] = (ends[0] - ends[1]) / 2e-4
    np.testing.assert_allclose(x.g, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_shapes_follow(name):
    ours, numpy = CASES[name]
    x = nn.Variable((2, 3, 4))
    y = ours(x)
    x.reset_shape((2, 3, 7) if "matmul" not in name else (5, 3, 4), True)
    x.d = np.random.default_rng(1).uniform(0.2, 2, x.shape)
    y.forward()
    if "flatten " in name:
        assert y.size == x.size
    else:
        np.testing.assert_allclose(y.d, numpy(x.d.copy()), rtol=2e-5, atol=1e-6)


def test_logsumexp_of_extremes():
    x = nn.NdArray.from_numpy_array(np.float32([[1e4, 1e4], [-np.inf, -np.inf], [np.inf, 0], [-1e4, -np.inf]]))
    np.testing.assert_allclose(F.logsumexp(x, 1).data, [1e4 + np.log(2), -np.inf, np.inf, -1e4])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (F.clip, r"^clip: min or max must be given, got neither"),
        (lambda x: F.squeeze(x, 0), r"^squeeze: axis must name axes of length 1, got 0 for \(2, 3, 4\)"),
        (lambda x: F.squeeze(x, 5), r"^squeeze: axis must be an axis from -3 to 2, got 5"),
        (lambda x: F.expand_dims(x, 9), r"^expand_dims: axis must be an axis from -4 to 3, got 9"),
        (lambda x: F.expand_dims(x, (0, 0)), r"^expand_dims: axis must name each place once, got \(0, 0\)"),
        (lambda x: F.flatten(x, 2, 1), r"^flatten: start_axis must not come after end_axis, got 2 and 1"),
        (lambda x: F.flatten(x, "1"), r"^flatten: start_axis must be an axis from -3 to 2, got '1'"),
        (lambda x: F.var(x, 0, ddof=2), r"^var: ddof must be from 0 to below the number of elements 2, got 2"),
        (lambda x: F.matmul(x, 2), r"^matmul: b must be a Variable or an NdArray, got int"),
    ],
)
def test_refusals(call, text):
    with pytest.raises((ArgumentError, ShapeError), match=text):
        call(nn.Variable((2, 3, 4)))


# -- one number where a sequence is meant -------------------------------------------------------------------------------

IMAGES = nn.Variable((2, 3, 8, 8))
WEIGHT, DEPTHWISE = nn.Variable((4, 3, 3, 3)), nn.Variable((3, 3, 3))
#: Layers with further arguments, or without a number of outputs.
SPECIAL = ("svd", "cpd", "def", "dep")


def with_kernel(name, *outmaps):
    """A layer with numbers and with sequences for kernel, pad and stride."""
    layer = getattr(PF, name)
    return (
        lambda: layer(IMAGES, *outmaps, 3, pad=1, stride=1, name="one"),
        lambda: layer(IMAGES, *outmaps, (3, 3), pad=(1, 1), stride=(1, 1), name="one"),
    )


ONE_NUMBER = {
    "F.convolution": (
        lambda: F.convolution(IMAGES, WEIGHT, pad=1, stride=2, dilation=2),
        lambda: F.convolution(IMAGES, WEIGHT, pad=(1, 1), stride=(2, 2), dilation=(2, 2)),
    ),
    "convolution 1d": (
        lambda: F.convolution(nn.Variable((2, 3, 9)), nn.Variable((4, 3, 3)), pad=1, stride=2),
        lambda: F.convolution(nn.Variable((2, 3, 9)), nn.Variable((4, 3, 3)), pad=(1,), stride=(2,)),
    ),
    "F.depthwise_convolution": (
        lambda: F.depthwise_convolution(IMAGES, DEPTHWISE, pad=1),
        lambda: F.depthwise_convolution(IMAGES, DEPTHWISE, pad=(1, 1)),
    ),
    "max_pooling": (lambda: F.max_pooling(IMAGES, 3, 2, pad=1), lambda: F.max_pooling(IMAGES, (3, 3), (2, 2), pad=(1, 1))),
    "average_pooling": (lambda: F.average_pooling(IMAGES, 2), lambda: F.average_pooling(IMAGES, (2, 2))),
    "unpooling": (lambda: F.unpooling(IMAGES, 2), lambda: F.unpooling(IMAGES, (2, 2))),
    "interpolate": (lambda: F.interpolate(IMAGES, 2), lambda: F.interpolate(IMAGES, (2, 2))),
    "output_size": (lambda: F.interpolate(IMAGES, output_size=5), lambda: F.interpolate(IMAGES, output_size=(5, 5))),
    "flip": (lambda: F.flip(IMAGES, 1), lambda: F.flip(IMAGES, (1,))),
    "reshape": (lambda: F.reshape(IMAGES, -1), lambda: F.reshape(IMAGES, (-1,))),
    "randn": (lambda: F.randn(shape=3, seed=1), lambda: F.randn(shape=(3,), seed=1)),
    **{name: with_kernel(name, 4) for name in PF.__all__ if name.endswith("convolution") and name[:3] not in SPECIAL},
    **{name: with_kernel(name, 4) for name in ("convolution", "deconvolution")},
    **{name: with_kernel(name) for name in ("depthwise_convolution", "depthwise_deconvolution")},
    "svd_convolution": (
        lambda: PF.svd_convolution(IMAGES, 4, 3, 2, pad=1, name="svd"),
        lambda: PF.svd_convolution(IMAGES, 4, (3, 3), 2, pad=(1, 1), name="svd"),
    ),
    "cpd3_convolution": (
        lambda: PF.cpd3_convolution(IMAGES, 4, 3, 2, pad=1, name="cpd"),
        lambda: PF.cpd3_convolution(IMAGES, 4, (3, 3), 2, pad=(1, 1), name="cpd"),
    ),
}


@pytest.mark.parametrize("name", ONE_NUMBER)
def test_one_number_stands_for_all(name):
    with nn.parameter_scope("one number", {}):
        one, several = [call() for call in ONE_NUMBER[name]]
    assert one.shape == several.shape
    for argument, value in several.parent.arguments.items():
        assert one.parent.arguments[argument] == value


def test_numbers_that_could_mean_two_things_are_refused():
    for call in (lambda: F.shift(IMAGES, 1), lambda: F.pad(IMAGES, 1)):
        with pytest.raises(ArgumentError, match="must be a sequence of integers, got"):
            call()
