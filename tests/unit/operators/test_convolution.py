"""Tests of the operators of the topic convolution."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import signal

from nn_core.errors import ArgumentError, ShapeError
from nn_core.operators.rules.registry import SHAPE_RULES
from nn_core.testing.operators import check_forward, check_gradient, check_table, run, run_gradient

rng = np.random.default_rng(22)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def convolved(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    pad: tuple,
    stride: tuple,
    dilation: tuple,
    group: int = 1,
) -> np.ndarray:
    """The definition of a convolution of (B, C, *spatial), one output element after the other."""
    n_spatial = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *((edge, edge) for edge in pad)])
    kernel = weight.shape[2:]
    counts = [(x.shape[2 + n] - dilation[n] * (kernel[n] - 1) - 1) // stride[n] + 1 for n in range(n_spatial)]
    y = np.zeros((x.shape[0], weight.shape[0], *counts))
    for b, k, *place in np.ndindex(*y.shape):
        first = k // (weight.shape[0] // group) * weight.shape[1]
        for c, *r in np.ndindex(*weight.shape[1:]):
            at = [place[n] * stride[n] + r[n] * dilation[n] for n in range(n_spatial)]
            y[(b, k, *place)] += weight[(k, c, *r)] * x[(b, first + c, *at)]
    return y if bias is None else y + bias.reshape(-1, *[1] * n_spatial)


def deconvolved(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray | None,
    pad: tuple,
    stride: tuple,
    dilation: tuple,
    group: int = 1,
    output_padding: tuple | None = None,
) -> np.ndarray:
    """The definition of a deconvolution: each input element adds its filter to the output."""
    n_spatial = x.ndim - 2
    kernel = weight.shape[2:]
    lengths = [
        stride[n] * (x.shape[2 + n] - 1) + dilation[n] * (kernel[n] - 1) + 1 + (output_padding[n] if output_padding else 0)
        for n in range(n_spatial)
    ]
    y = np.zeros((x.shape[0], weight.shape[1] * group, *lengths))
    for b, c, *place in np.ndindex(*x.shape):
        first = c // (weight.shape[0] // group) * weight.shape[1]
        for k, *r in np.ndindex(*weight.shape[1:]):
            at = [place[n] * stride[n] + r[n] * dilation[n] for n in range(n_spatial)]
            y[(b, first + k, *at)] += weight[(c, k, *r)] * x[(b, c, *place)]
    y = y[(..., *(slice(edge, length - edge) for edge, length in zip(pad, lengths, strict=True)))]
    return y if bias is None else y + bias.reshape(-1, *[1] * n_spatial)


def channels_last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


def channels_first(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(x, -1, 1)


def test_table() -> None:
    check_table("convolution")


# spatial lengths, kernel, pad, stride, dilation, group; two input channels and three filters a group
CONVOLUTION = [
    ((5,), (3,), (0,), (1,), (1,), 1),
    ((6,), (2,), (1,), (3,), (2,), 1),
    ((5, 4), (3, 2), (0, 0), (1, 1), (1, 1), 1),
    ((6, 5), (3, 2), (1, 2), (2, 3), (1, 1), 1),
    ((6, 6), (2, 2), (1, 0), (1, 2), (3, 2), 2),
    ((4, 4), (1, 1), (0, 0), (2, 2), (1, 1), 3),
    ((3, 4, 3), (2, 2, 2), (1, 0, 1), (2, 1, 1), (1, 2, 1), 1),
    ((2, 2, 2, 2), (1, 2, 1, 2), (0, 0, 0, 1), (1, 1, 1, 2), (1, 1, 1, 1), 1),
]


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("lengths", "kernel", "pad", "stride", "dilation", "group"), CONVOLUTION)
def test_convolution(
    lengths: tuple, kernel: tuple, pad: tuple, stride: tuple, dilation: tuple, group: int, channel_last: bool
) -> None:
    inputs = [normal(2, 2 * group, *lengths), normal(3 * group, 2, *kernel), normal(3 * group)]
    args: dict[str, Any] = {"pad": pad, "stride": stride, "dilation": dilation, "group": group}

    def truth(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        if channel_last:
            return channels_last(convolved(channels_first(x), channels_first(weight), bias, **args))
        return convolved(x, weight, bias, **args)

    if channel_last:
        inputs[:2] = map(channels_last, inputs[:2])
    check_forward("Convolution", inputs, truth, channel_last=channel_last, **args)
    check_gradient("Convolution", inputs, channel_last=channel_last, **args)


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize("base_axis", [0, 2, -3])
def test_convolution_takes_any_number_of_batch_axes(base_axis: int, channel_last: bool) -> None:
    batch = (2, 1)[: base_axis % 5] if base_axis >= 0 else (2, 1)
    x, weight = normal(*batch, 2, 4, 3), normal(3, 2, 2, 2)
    expected = convolved(x.reshape(-1, 2, 4, 3), weight, None, (0, 0), (1, 1), (1, 1)).reshape(*batch, 3, 3, 2)
    if channel_last:
        x, weight, expected = np.moveaxis(x, -3, -1), channels_last(weight), np.moveaxis(expected, -3, -1)
    args = {"base_axis": base_axis, "channel_last": channel_last}
    check_forward("Convolution", [x, weight, None], expected, dtypes=("float64",), **args)
    check_gradient("Convolution", [x, weight, normal(3)], **args)


def test_convolution_agrees_with_scipy() -> None:
    x, weight = normal(1, 1, 7, 6), normal(1, 1, 3, 4)
    expected = signal.correlate2d(x[0, 0], weight[0, 0], mode="valid")[None, None]
    check_forward("Convolution", [x, weight, None], expected, dtypes=("float64",))


def test_convolution_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    x, weight, bias = normal(2, 4, 9, 8), normal(6, 2, 3, 3), normal(6)
    args: dict[str, Any] = {"stride": (2, 1), "dilation": (1, 2)}
    tensors = [torch.tensor(array, requires_grad=True) for array in (x, weight, bias)]
    expected = torch.nn.functional.conv2d(*tensors, padding=(1, 2), groups=2, **args)
    (y,) = run("Convolution", x, weight, bias, pad=(1, 2), group=2, **args)
    np.testing.assert_allclose(y, expected.detach().numpy())
    dy = normal(*y.shape)
    expected.backward(torch.tensor(dy))
    gradients = run_gradient("Convolution", x, weight, bias, grads=[dy], pad=(1, 2), group=2, **args)
    for given, tensor in zip(gradients, tensors, strict=True):
        np.testing.assert_allclose(given, tensor.grad.numpy())


@pytest.mark.parametrize("name", ["Convolution", "Deconvolution"])
def test_empty_batches(name: str) -> None:
    inputs = [normal(0, 2, 4, 4), normal(2, 2, 3, 3), normal(2)]
    (y,) = run(name, *inputs)
    assert y.size == 0
    dx, dweight, dbias = run_gradient(name, *inputs)
    assert dx.shape == inputs[0].shape
    np.testing.assert_array_equal(dweight, np.zeros((2, 2, 3, 3)))
    np.testing.assert_array_equal(dbias, np.zeros(2))


def test_convolution_accumulates_half_precision_in_single() -> None:
    x, weight = np.ones((1, 256, 4, 4), np.float16), np.full((1, 256, 4, 4), 0.5, np.float16)
    assert run("Convolution", x, weight, None)[0].item() == 2048.0


def test_the_weight_gradient_can_be_differentiated_again() -> None:
    """The result of the rule is made of convolutions only, whose rules are tested above: check that with odd lengths."""
    x, weight, dy = normal(2, 2, 6, 7), normal(4, 1, 2, 3), normal(2, 4, 3, 2)
    args: dict[str, Any] = {"stride": (2, 3), "group": 2}

    def weight_gradient(x: np.ndarray) -> np.ndarray:
        return run_gradient("Convolution", x, weight, None, grads=[dy], wanted=[False, True, False], **args)[1]

    direction = normal(*x.shape)
    expected = (weight_gradient(x + direction) - weight_gradient(x - direction)) / 2
    np.testing.assert_allclose(weight_gradient(direction), expected, atol=1e-12)  # linear in x


CONVOLUTION_ARGS: dict[str, Any] = {
    "base_axis": 1, "pad": (0, 0), "stride": (1, 1), "dilation": (1, 1), "group": 1, "channel_last": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("shapes", "args", "error", "message"),
    [
        (
            ((8, 6, 32, 32), (16, 4, 3, 3), None),
            {"group": 2},
            ShapeError,
            r"x channels must equal weight channels \* group, got 6 and 4 \* 2 = 8$",
        ),
        (
            ((8, 32, 32, 6), (16, 6, 3, 3), None),
            {},
            ShapeError,
            r"got 32 and 6 \* 1 = 6\n  hint: x looks channel-last\? pass channel_last=True",
        ),
        (
            ((8, 6, 32, 32), (16, 3, 3, 6), None),
            {"channel_last": True},
            ShapeError,
            r"got 32 and 6 \* 1 = 6\n  hint: x looks channel-first\? pass channel_last=False",
        ),
        (((8, 6), (16, 6), None), {}, ShapeError, "x must have a channel axis and a spatial axis .*, got 2 axes"),
        (((8, 6, 5, 5), (16, 6, 3), None), {}, ShapeError, "weight must have 2 axes more than .*, got 3 and 2"),
        (((8, 6, 5, 5), (16, 6, 3, 0), None), {}, ShapeError, r"the kernel must be at least 1 long .*, got \(3, 0\)"),
        (
            ((8, 6, 5, 5), (15, 3, 3, 3), None),
            {"group": 2},
            ShapeError,
            "the number of filters must be a multiple of group, got 15 and 2",
        ),
        (
            ((8, 6, 5, 5), (16, 6, 3, 3), (15,)),
            {},
            ShapeError,
            r"bias must have one value for each output channel, shape \(16,\), got \(15,\)",
        ),
        (
            ((8, 6, 5, 5), (16, 6, 3, 3), None),
            {"dilation": (1, 3)},
            ShapeError,
            r"x with its padding must be as long as the dilated kernel, got \(5, 5\) and \(3, 7\)",
        ),
        (
            ((8, 6, 5, 5), (16, 6, 3, 3), None),
            {"pad": (1,)},
            ArgumentError,
            r"pad must have one value for each of the 2 spatial axes, got \(1,\)",
        ),
        (((8, 6, 5, 5), (16, 6, 3, 3), None), {"stride": (1,)}, ArgumentError, "stride must have one value"),
        (((8, 6, 5, 5), (16, 6, 3, 3), None), {"dilation": (1,)}, ArgumentError, "dilation must have one value"),
    ],
)
def test_convolution_refuses(shapes: tuple, args: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        SHAPE_RULES["Convolution"](*shapes, **{**CONVOLUTION_ARGS, **args})


# spatial lengths, kernel, pad, stride, dilation, group, output_padding; two input channels and three filters a group
DECONVOLUTION = [
    ((5,), (3,), (0,), (1,), (1,), 1, (0,)),
    ((3,), (2,), (1,), (3,), (2,), 1, (2,)),
    ((3, 4), (3, 2), (1, 0), (2, 3), (1, 1), 1, (1, 2)),
    ((3, 3), (2, 2), (0, 1), (1, 2), (3, 2), 2, (2, 0)),
    ((2, 2, 3), (2, 1, 2), (0, 0, 1), (2, 1, 1), (1, 2, 1), 1, (0, 0, 0)),
]


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("lengths", "kernel", "pad", "stride", "dilation", "group", "output_padding"), DECONVOLUTION)
def test_deconvolution(
    lengths: tuple,
    kernel: tuple,
    pad: tuple,
    stride: tuple,
    dilation: tuple,
    group: int,
    output_padding: tuple,
    channel_last: bool,
) -> None:
    inputs = [normal(2, 2 * group, *lengths), normal(2 * group, 3, *kernel), normal(3 * group)]
    args: dict[str, Any] = {
        "pad": pad, "stride": stride, "dilation": dilation, "group": group, "output_padding": output_padding,
    }  # fmt: skip

    def truth(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
        if channel_last:
            return channels_last(deconvolved(channels_first(x), channels_first(weight), bias, **args))
        return deconvolved(x, weight, bias, **args)

    if channel_last:
        inputs[:2] = map(channels_last, inputs[:2])
    check_forward("Deconvolution", inputs, truth, channel_last=channel_last, **args)
    check_gradient("Deconvolution", inputs, channel_last=channel_last, **args)


@pytest.mark.parametrize(
    ("shapes", "args", "error", "message"),
    [
        (((2, 4, 5), (6, 3, 3), None), {}, ShapeError, "x channels must equal the first axis of weight, got 4 and 6$"),
        (((2, 5, 6), (6, 3, 3), None), {}, ShapeError, "hint: x looks channel-last"),
        (((2, 5, 5), (5, 3, 3), None), {"group": 2}, ShapeError, "x channels must be a multiple of group, got 5 and 2"),
        (
            ((2, 4, 5), (4, 3, 3), (3,)),
            {"group": 2},
            ShapeError,
            r"bias must have one value .* shape \(6,\), got \(3,\)",
        ),
        (
            ((2, 4, 5), (4, 3, 3), None),
            {"output_padding": (2,), "stride": (2,)},
            ArgumentError,
            "output_padding must be less than stride or dilation, got 2, 2 and 1",
        ),
        (
            ((2, 4, 5), (4, 3, 3), None),
            {"output_padding": ()},
            ArgumentError,
            r"output_padding must have one value for each of the 1 spatial axes, got \(\)",
        ),
        (
            ((2, 4, 1), (4, 3, 1), None),
            {"pad": (1,)},
            ShapeError,
            r"the output must be at least 1 long on each spatial axis, got \(-1,\)",
        ),
    ],
)
def test_deconvolution_refuses(shapes: tuple, args: dict, error: type, message: str) -> None:
    plain = {"pad": (0,), "stride": (1,), "dilation": (1,), "output_padding": (0,)}
    with pytest.raises(error, match=message):
        SHAPE_RULES["Deconvolution"](*shapes, **{**CONVOLUTION_ARGS, **plain, **args})


# spatial lengths, kernel, pad, stride, dilation, channels a group
DEPTHWISE = [
    ((5,), (3,), (1,), (2,), (1,), 1),
    ((5, 4), (3, 2), (1, 0), (1, 2), (2, 1), 2),
    ((3, 3, 3), (2, 2, 1), (0, 0, 0), (1, 1, 1), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("lengths", "kernel", "pad", "stride", "dilation", "multiplier"), DEPTHWISE)
def test_depthwise_convolution(
    lengths: tuple, kernel: tuple, pad: tuple, stride: tuple, dilation: tuple, multiplier: int
) -> None:
    inputs = [normal(2, 3, *lengths), normal(3 * multiplier, *kernel), normal(3 * multiplier)]
    steps: dict[str, Any] = {"pad": pad, "stride": stride, "dilation": dilation}
    check_forward(
        "DepthwiseConvolution",
        inputs,
        lambda x, weight, bias: convolved(x, weight[:, None], bias, group=3, **steps),
        multiplier=multiplier,
        **steps,
    )
    check_gradient("DepthwiseConvolution", inputs, multiplier=multiplier, **steps)


@pytest.mark.parametrize(("lengths", "kernel", "pad", "stride", "dilation", "divisor"), DEPTHWISE)
def test_depthwise_deconvolution(
    lengths: tuple, kernel: tuple, pad: tuple, stride: tuple, dilation: tuple, divisor: int
) -> None:
    inputs = [normal(2, 3 * divisor, *lengths), normal(3 * divisor, *kernel), normal(3)]
    steps: dict[str, Any] = {"pad": pad, "stride": stride, "dilation": dilation}
    check_forward(
        "DepthwiseDeconvolution",
        inputs,
        lambda x, weight, bias: deconvolved(x, weight[:, None], bias, group=3, **steps),
        divisor=divisor,
        **steps,
    )
    check_gradient("DepthwiseDeconvolution", inputs, divisor=divisor, **steps)


@pytest.mark.parametrize(
    ("name", "shapes", "factor", "message"),
    [
        (
            "DepthwiseConvolution",
            ((2, 3, 5), (5, 3), None),
            {"multiplier": 2},
            r"the number of filters must equal x channels \* multiplier, got 5 and 3 \* 2 = 6",
        ),
        (
            "DepthwiseConvolution",
            ((2, 3, 5), (3, 1, 3), None),
            {"multiplier": 1},
            "weight must have 1 axis more than x has spatial axes, got 3 and 1",
        ),
        (
            "DepthwiseDeconvolution",
            ((2, 3, 5), (3, 1, 3), None),
            {"divisor": 1},
            "weight must have 1 axis more than x has spatial axes, got 3 and 1",
        ),
        (
            "DepthwiseDeconvolution",
            ((2, 3, 5), (4, 3), None),
            {"divisor": 1},
            "the number of filters must equal x channels, got 4 and 3",
        ),
        (
            "DepthwiseDeconvolution",
            ((2, 3, 5), (3, 3), None),
            {"divisor": 2},
            "x channels must be a multiple of divisor, got 3 and 2",
        ),
    ],
)
def test_depthwise_functions_refuse(name: str, shapes: tuple, factor: dict, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES[name](*shapes, base_axis=1, pad=(0,), stride=(1,), dilation=(1,), **factor)


def fused_inputs(with_normalization: bool, with_z: bool) -> list:
    parameters = [normal(1, 4, 1, 1), rng.uniform(0.5, 1.5, (1, 4, 1, 1))]
    running = [normal(1, 4, 1, 1), rng.uniform(0.5, 1.5, (1, 4, 1, 1))]
    return [
        normal(2, 3, 4, 4),
        normal(4, 3, 3, 3),
        normal(4),
        *((*parameters, *running) if with_normalization else [None] * 4),
        normal(2, 4, 4, 4) if with_z else None,
    ]


NONLINEARITIES = [
    ("identity", (), lambda y: y),
    ("relu", (), lambda y: np.maximum(y, 0)),
    ("sigmoid", (), lambda y: 1 / (1 + np.exp(-y))),
    ("tanh", (), np.tanh),
    ("leaky_relu", (0.3,), lambda y: np.where(y > 0, y, 0.3 * y)),
    ("elu", (0.7,), lambda y: np.where(y > 0, y, 0.7 * (np.exp(y) - 1))),
    ("relu6", (), lambda y: np.clip(y, 0, 6)),
]


@pytest.mark.parametrize(("nonlinearity", "values", "function"), NONLINEARITIES)
def test_fused_convolution_applies_nonlinearities(nonlinearity: str, values: tuple, function: Any) -> None:
    inputs = fused_inputs(False, True)
    args: dict[str, Any] = {"nonlinearity": nonlinearity, "nonlinearity_args": values, "pad": (1, 1)}

    def truth(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, *rest: np.ndarray) -> tuple:
        zeros = np.zeros((1, 4, 1, 1))
        return function(convolved(x, weight, bias, (1, 1), (1, 1), (1, 1)) + rest[-1]), zeros, zeros

    check_forward("FusedConvolution", inputs, truth, **args)
    check_gradient("FusedConvolution", inputs, **args)


@pytest.mark.parametrize("batch_stat", [True, False])
@pytest.mark.parametrize("with_z", [True, False])
@pytest.mark.parametrize(("pad_mode", "numpy_mode"), [("constant", None), ("reflect", "reflect"), ("repeat", "edge")])
def test_fused_convolution_pads_and_normalizes(batch_stat: bool, with_z: bool, pad_mode: str, numpy_mode: str | None) -> None:
    inputs = fused_inputs(True, with_z)
    x, weight, bias, *parameters, z = inputs
    args: dict[str, Any] = {"batch_stat": batch_stat, "pad_mode": pad_mode, "constant_value": 0.5, "pad": (1, 1)}
    widths = [(0, 0), (0, 0), (1, 1), (1, 1)]
    x = np.pad(x, widths, mode=numpy_mode) if numpy_mode else np.pad(x, widths, constant_values=0.5)
    h = convolved(x, weight, bias, (0, 0), (1, 1), (1, 1))
    y, *rest = run("BatchNormalization", h, *parameters, batch_stat=batch_stat)
    y = np.maximum(y if z is None else y + z, 0)
    results = run("FusedConvolution", *inputs, **args)
    for given, expected in zip(results, (y, *rest), strict=True):
        np.testing.assert_allclose(given, expected, atol=1e-12) if expected is not None else None
    wrt = [n for n in range(8) if inputs[n] is not None and not (batch_stat and n in (5, 6))]
    check_gradient("FusedConvolution", inputs, wrt=wrt, **args)


def test_fused_convolution_with_channels_last() -> None:
    inputs = fused_inputs(True, True)
    last = [array if array.ndim == 1 else channels_last(array) for array in inputs]
    args: dict[str, Any] = {"pad": (1, 0), "stride": (1, 2), "nonlinearity": "tanh"}
    inputs[7], last[7] = inputs[7][:, :, :, :1], last[7][:, :, :1]
    for first, second in zip(
        run("FusedConvolution", *inputs, **args), run("FusedConvolution", *last, channel_last=True, **args), strict=True
    ):
        np.testing.assert_allclose(channels_last(first), second)
    check_gradient("FusedConvolution", last, wrt=(0, 1, 2, 3, 4, 7), channel_last=True, **args)


@pytest.mark.parametrize(
    ("z", "args", "error", "message"),
    [
        (
            None,
            {"nonlinearity": "elu"},
            ArgumentError,
            r"nonlinearity_args must hold one value \(alpha\) for elu, got \(\)",
        ),
        (
            None,
            {"nonlinearity_args": (1.0,)},
            ArgumentError,
            r"nonlinearity_args must hold no value for relu, got \(1.0,\)",
        ),
        ((2, 4, 5, 5), {}, ShapeError, r"z must have the shape of the output, got \(2, 4, 5, 5\) and \(2, 4, 3, 3\)"),
    ],
)
def test_fused_convolution_refuses(z: tuple | None, args: dict, error: type, message: str) -> None:
    plain = {"batch_stat": True, "nonlinearity": "relu", "nonlinearity_args": ()}
    with pytest.raises(error, match=message):
        SHAPE_RULES["FusedConvolution"]((2, 3, 5, 5), (4, 3, 3, 3), *[None] * 5, z, **{**CONVOLUTION_ARGS, **plain, **args})


def bilinear(image: np.ndarray, row: float, col: float) -> float:
    """The value of an image between its pixels, zero outside."""
    total = 0.0
    for r, c in product((int(np.floor(row)), int(np.floor(row)) + 1), (int(np.floor(col)), int(np.floor(col)) + 1)):
        if 0 <= r < image.shape[0] and 0 <= c < image.shape[1]:
            total += image[r, c] * (1 - abs(row - r)) * (1 - abs(col - c))
    return total


def deformed(
    x: np.ndarray,
    weight: np.ndarray,
    offset: np.ndarray,
    mask: np.ndarray | None,
    pad: tuple,
    stride: tuple,
    dilation: tuple,
    group: int,
    deformable_group: int,
) -> np.ndarray:
    """The definition of a deformable convolution of (B, C, H, W), one element of the kernel after the other."""
    kernel = weight.shape[2:]
    counts = [(x.shape[2 + n] + 2 * pad[n] - dilation[n] * (kernel[n] - 1) - 1) // stride[n] + 1 for n in (0, 1)]
    y = np.zeros((x.shape[0], weight.shape[0], *counts))
    for b, k, i, j in np.ndindex(*y.shape):
        for c, r, s in np.ndindex(*weight.shape[1:]):
            channel = k // (weight.shape[0] // group) * weight.shape[1] + c
            element = (channel // (x.shape[1] // deformable_group) * kernel[0] + r) * kernel[1] + s
            at = (b, slice(2 * element, 2 * element + 2), i * stride[0], j * stride[1])
            row = i * stride[0] - pad[0] + r * dilation[0] + offset[at][0]
            col = j * stride[1] - pad[1] + s * dilation[1] + offset[at][1]
            factor = 1 if mask is None else mask[b, element, i * stride[0], j * stride[1]]
            y[b, k, i, j] += weight[k, c, r, s] * factor * bilinear(x[b, channel], row, col)
    return y


DEFORMABLE = [
    ((3, 4), (2, 2), (0, 0), (1, 1), (1, 1), 1, 1),
    ((4, 3), (3, 3), (1, 1), (1, 1), (1, 1), 1, 2),
    ((5, 4), (2, 1), (0, 0), (2, 3), (2, 1), 2, 1),
    ((4, 5), (1, 3), (0, 1), (1, 2), (1, 1), 2, 2),
]


@pytest.mark.parametrize(("with_mask", "channel_last"), [(False, False), (True, True)])
@pytest.mark.parametrize(("lengths", "kernel", "pad", "stride", "dilation", "group", "deformable_group"), DEFORMABLE)
def test_deformable_convolution(
    lengths: tuple,
    kernel: tuple,
    pad: tuple,
    stride: tuple,
    dilation: tuple,
    group: int,
    deformable_group: int,
    with_mask: bool,
    channel_last: bool,
) -> None:
    n_elements = deformable_group * kernel[0] * kernel[1]
    offset = rng.integers(-3, 3, (1, 2 * n_elements, *lengths)) + rng.uniform(0.1, 0.9, (1, 2 * n_elements, *lengths))
    mask = rng.uniform(0, 1, (1, n_elements, *lengths)) if with_mask else None
    images = [normal(1, 4, *lengths), normal(2, 4 // group, *kernel), offset, mask]
    bias = normal(2)
    args: dict[str, Any] = {
        "pad": pad, "stride": stride, "dilation": dilation, "group": group, "deformable_group": deformable_group,
    }  # fmt: skip
    expected = deformed(*images, **args) + bias.reshape(-1, 1, 1)
    if channel_last:
        images = [None if array is None else channels_last(array) for array in images]
        expected = channels_last(expected)
    inputs = [*images, bias]
    check_forward("DeformableConvolution", inputs, expected, dtypes=("float64",), channel_last=channel_last, **args)
    check_forward("DeformableConvolution", inputs, expected, dtypes=("float32",), rtol=1e-9, channel_last=channel_last, **args)
    check_gradient("DeformableConvolution", inputs, channel_last=channel_last, **args)


@pytest.mark.parametrize(("move", "slopes"), [(-1, [3, 2]), (0, [2, -5]), (1, [-5, 0])])
def test_the_gradient_of_offsets_at_the_border(move: int, slopes: list[int]) -> None:
    x, weight = np.array([[[[3.0, 5.0]]]]), np.ones((1, 1, 1, 1))
    offset = np.stack([np.zeros((1, 1, 2)), np.full((1, 1, 2), float(move))], axis=1)
    gradients = run_gradient("DeformableConvolution", x, weight, offset, None, None)
    np.testing.assert_array_equal(gradients[2][0, 1, 0], slopes)


def test_deformable_convolution_without_offset_is_a_convolution() -> None:
    x, weight = normal(2, 3, 5, 4), normal(2, 3, 3, 3)
    (y,) = run("DeformableConvolution", x, weight, np.zeros((2, 18, 5, 4)), None, None, pad=(1, 1))
    np.testing.assert_allclose(y, run("Convolution", x, weight, None, pad=(1, 1))[0], atol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "args", "error", "message"),
    [
        (((2, 4, 5), (3, 4, 2), (2, 4, 5), None, None), {}, ShapeError, "x must have 2 spatial axes, got 1"),
        (
            ((2, 4, 5, 5), (3, 4, 2, 2), (2, 8, 4, 4), None, None),
            {},
            ShapeError,
            r"offset must have shape \(2, 8, 5, 5\), got \(2, 8, 4, 4\)",
        ),
        (
            ((2, 4, 5, 5), (3, 4, 2, 2), (2, 8, 5, 5), (2, 8, 5, 5), None),
            {},
            ShapeError,
            r"mask must have shape \(2, 4, 5, 5\), got \(2, 8, 5, 5\)",
        ),
        (
            ((2, 4, 5, 5), (3, 4, 2, 2), (2, 24, 5, 5), None, None),
            {"deformable_group": 3},
            ShapeError,
            "x channels must be a multiple of deformable_group, got 4 and 3",
        ),
        (
            ((2, 4, 5, 5), (3, 4, 2, 2), (2, 8, 5, 5), None, None),
            {"pad": (2, 0)},
            ArgumentError,
            r"pad must leave stride \* \(outputs - 1\) inside of x, got \(7, 3\) in \(5, 5\)",
        ),
    ],
)
def test_deformable_convolution_refuses(shapes: tuple, args: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        SHAPE_RULES["DeformableConvolution"](*shapes, **{**CONVOLUTION_ARGS, "deformable_group": 1, **args})


@pytest.mark.parametrize("places", [((3, 3), (3, 3)), ((4, 3), (3, 5)), ((4, 5), (4, 5))])
def test_adaptive_separable_convolution(places: tuple) -> None:
    inputs = [normal(2, 2, 4, 5), normal(2, 2, *places[0]), normal(2, 3, *places[1])]

    def truth(x: np.ndarray, vertical: np.ndarray, horizontal: np.ndarray) -> np.ndarray:
        y = np.zeros((2, 2, 3, 3))
        for n, c, i, j in np.ndindex(*y.shape):
            y[n, c, i, j] = vertical[n, :, i, j] @ x[n, c, i : i + 2, j : j + 3] @ horizontal[n, :, i, j]
        return y

    check_forward("AdaptiveSeparableConvolution", inputs, truth)
    check_gradient("AdaptiveSeparableConvolution", inputs)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 4, 5), (2, 2, 3, 3), (2, 3, 3, 3)), "x must have 4 axes, got 3"),
        (((2, 2, 4, 5), (2, 2, 3), (2, 3, 3, 3)), "vertical_kernel must have 4 axes, got 3"),
        (((2, 2, 4, 5), (2, 2, 3, 3), (1, 3, 3, 3)), "horizontal_kernel must have as many samples as x, got 1 and 2"),
        (((2, 2, 4, 5), (2, 5, 3, 3), (2, 3, 3, 3)), r"x must be as large as the kernel, got \(4, 5\) and \(5, 3\)"),
        (
            ((2, 2, 4, 5), (2, 2, 2, 3), (2, 3, 3, 3)),
            r"vertical_kernel must have a place for each output, from \(3, 3\) to \(4, 5\), got \(2, 3\)",
        ),
    ],
)
def test_adaptive_separable_convolution_refuses(shapes: tuple, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        SHAPE_RULES["AdaptiveSeparableConvolution"](*shapes)
