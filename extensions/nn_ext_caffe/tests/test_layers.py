"""Each layer of Caffe against its definition in NumPy."""

from itertools import product

import numpy as np
import pytest

from extensions.nn_ext_caffe.tests.nets import LAYERS, drawn, layer, text_of, written
from nn_core.ext import ArgumentError
from nn_ext_caffe import load


def windows(x, kernel, stride, pad, counts, value):
    """Return the windows of images, (B, C, *counts, *kernel), with a border as wide as the last one needs."""
    room = [
        max((n - 1) * s + k - length - p, 0)
        for n, s, k, length, p in zip(counts, stride, kernel, x.shape[2:], pad, strict=True)
    ]
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad, room, strict=True)], constant_values=value)
    found = np.zeros((*x.shape[:2], *counts, *kernel), np.float32)
    for i, j in product(*map(range, counts)):
        a, b = i * stride[0], j * stride[1]
        found[:, :, i, j] = x[:, :, a : a + kernel[0], b : b + kernel[1]]
    return found


def convolved(x, weight, bias):
    parts = windows(x, (3, 3), (2, 2), (1, 1), (4, 3), 0).reshape(2, 2, 2, 4, 3, 3, 3)
    y = np.einsum("bgcijkl,gocklz->bgoij", parts, weight.reshape(2, 2, 2, 3, 3, 1))
    return y.reshape(2, 4, 4, 3) + bias.reshape(4, 1, 1)


def transposed(x, weight, bias):
    y = np.zeros((1, 2, 2, 8, 12), np.float32)
    groups = x.reshape(1, 2, 3, 3, 5)
    for i, j in product(range(3), range(5)):
        y[:, :, :, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += np.einsum(
            "bgc,gcokl->bgokl", groups[..., i, j], weight.reshape(2, 3, 2, 4, 4)
        )
    return y.reshape(1, 4, 8, 12)[:, :, 1:-1, 1:-1] + bias.reshape(4, 1, 1)


def averaged(x):
    sums = windows(x, (3, 3), (2, 2), (1, 1), (4, 4), 0).sum(axis=(4, 5))
    return sums / np.outer([3, 3, 3, 2], [3, 3, 3, 3])


def neighbours(x):
    wide = np.pad(x * x, [(0, 0), (1, 1), (0, 0), (0, 0)])
    return sum(wide[:, k : k + x.shape[1]] for k in range(3))


def around(x):
    return windows(x * x, (3, 3), (1, 1), (1, 1), x.shape[2:], 0).sum(axis=(4, 5))


EXPECTED = {
    "convolution": convolved,
    "deconvolution": transposed,
    "inner_product": lambda x, w, b: x.reshape(2, -1) @ w.T + b,
    "max_pooling": lambda x: windows(x, (3, 3), (2, 2), (1, 1), (4, 4), -np.inf).max(axis=(4, 5)),
    "max_pooling_beyond": lambda x: windows(x, (3, 3), (2, 2), (0, 0), (3, 4), -np.inf).max(axis=(4, 5)),
    "average_pooling": averaged,
    "global_pooling": lambda x: x.mean(axis=(2, 3), keepdims=True),
    "lrn": lambda x: x * (1 + 0.5 / 3 * neighbours(x)) ** -0.75,
    "lrn_within": lambda x: x * (1 + 0.5 / 9 * around(x)) ** -0.75,
    "batch_norm": lambda x, m, v, f: (x - m.reshape(3, 1, 1) / 2) / np.sqrt(v.reshape(3, 1, 1) / 2 + 1e-3),
    "scale": lambda x, g, b: x * g.reshape(3, 1, 1) + b.reshape(3, 1, 1),
    "prelu": lambda x, a: np.where(x > 0, x, a.reshape(3, 1, 1) * x),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.2 * x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "bnll": lambda x: np.log1p(np.exp(x)),
    "power": lambda x: (0.5 * x + 0.3) ** 2,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "absolute": np.abs,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    "reshape": lambda x: x.reshape(2, 12, 5),
    "flatten": lambda x: x.reshape(2, -1),
    "dropout": lambda x: x,
}
#: Settings, the shape of the input and the expected result of further layers without weights.
FURTHER = {
    "lrn_k": ("LRN", "lrn_param { local_size: 3 k: 2 beta: 1 }", lambda x: x / (2 + neighbours(x) / 3)),
    "exp": ("Exp", "exp_param { base: 2 scale: 3 shift: 1 }", lambda x: 2 ** (3 * x + 1)),
    "log": ("Log", "log_param { base: 10 scale: 0 shift: 100 }", lambda x: x * 0 + 2),
    "threshold": ("Threshold", "threshold_param { threshold: 0.1 }", lambda x: x > 0.1),
    "tile": ("Tile", "tile_param { axis: 2 tiles: 3 }", lambda x: np.tile(x, (1, 1, 3, 1))),
    "reduction": (
        "Reduction",
        "reduction_param { operation: SUMSQ axis: 2 coeff: 2 }",
        lambda x: 2 * (x * x).sum(axis=(2, 3)),
    ),
    "arg_max": ("ArgMax", "argmax_param { axis: 1 }", lambda x: x.argmax(axis=1)[:, None]),
    "flatten_axes": ("Flatten", "flatten_param { axis: 1 end_axis: 2 }", lambda x: x.reshape(2, 12, 5)),
    "reshape_axes": (
        "Reshape",
        "reshape_param { axis: 1 num_axes: 2 shape { dim: 6 dim: 2 } }",
        lambda x: x.reshape(2, 6, 2, 5),
    ),
    "floor_pooling": (
        "Pooling",
        "pooling_param { kernel_size: 3 stride: 2 round_mode: FLOOR }",
        lambda x: windows(x, (3, 3), (2, 2), (0, 0), (1, 2), -np.inf).max(axis=(4, 5)),
    ),
}


def result(paths, **inputs):
    network = load(*paths)
    for name, value in inputs.items():
        network.inputs[name].d = value
    (y,) = network.outputs.values()
    y.forward()
    return y.d


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_layers_are_those_of_their_definitions(tmp_path, case):
    kind, settings, shape, weights = LAYERS[case]
    paths = written(tmp_path, text_of(layer(kind, settings), shape), {"one": weights})
    x = drawn(*shape)
    np.testing.assert_allclose(result(paths, x=x), EXPECTED[case](x, *weights), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", sorted(FURTHER))
def test_settings_of_layers_are_followed(tmp_path, case):
    kind, settings, expected = FURTHER[case]
    x = drawn(2, 3, 4, 5)
    found = result(written(tmp_path, text_of(layer(kind, settings), x.shape)), x=x)
    np.testing.assert_allclose(found, expected(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", lambda a, b: a + b),
        ("eltwise_param { operation: PROD }", lambda a, b: a * b),
        ("eltwise_param { operation: MAX }", np.maximum),
        ("eltwise_param { coeff: 1 coeff: -2 }", lambda a, b: a - 2 * b),
    ],
)
def test_elements_are_combined(tmp_path, settings, expected):
    both = text_of("", (2, 3), "a") + text_of(layer("Eltwise", settings, ("a", "b")), (2, 3), "b").replace('name: "net"', "")
    a, b = drawn(2, 3), drawn(3, 2).T
    np.testing.assert_allclose(result(written(tmp_path, both), a=a, b=b), expected(a, b), rtol=1e-6)


def test_parts_are_put_together_again(tmp_path):
    parts = layer("Slice", "slice_param { axis: 1 slice_point: 2 }", tops=("a", "b"), name="cut")
    text = text_of(parts + layer("Concat", "concat_param { axis: 2 }", ("b", "a"), name="join"), (2, 4, 3))
    x = drawn(2, 4, 3)
    np.testing.assert_array_equal(result(written(tmp_path, text), x=x), np.concatenate([x[:, 2:], x[:, :2]], axis=2))


def test_images_are_cut_to_the_size_of_others(tmp_path):
    pooled = layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }", tops=("p",), name="pool")
    text = text_of(pooled + layer("Crop", "crop_param { offset: 1 }", ("x", "p")), (1, 1, 4, 6))
    x = drawn(1, 1, 4, 6)
    np.testing.assert_array_equal(result(written(tmp_path, text), x=x), x[:, :, 1:3, 1:4])


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }", "stochastic pooling"),
        ("InnerProduct", "inner_product_param { num_output: 2 }", "weights must be given, got 0 blobs"),
        ("Im2col", "", "there is no such layer"),
        ("Slice", "slice_param { slice_point: 7 }", r"1 parts of 3 elements at \[7\]"),
        ("Concat", "concat_param { axis: 9 }", "axis 9 of 4 axes"),
    ],
)
def test_layers_that_cannot_be_built_are_named(tmp_path, kind, settings, message):
    paths = written(tmp_path, text_of(layer(kind, settings), (2, 3, 4, 5)))
    with pytest.raises(ArgumentError, match=f"net.prototxt: layers must be .*, got\n  {kind} 'one': {message}"):
        load(*paths)
