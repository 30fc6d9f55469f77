"""Samples of quantizers and of layers with quantized weights."""

from nn_core.errors import ArgumentError, DTypeError, ShapeError
from nn_core.testing.drawing import integers, levels, normal, uniform, values
from nn_core.testing.samples.registry import Settings, convention, error, sample

convention(
    "the gradient is that of a stated surrogate of the quantizer",
    "BinarySigmoid", "BinaryTanh", "FixedPointQuantize", "Pow2Quantize", "MinMaxQuantize", "Prune", "QuantizeLinear",
)  # fmt: skip
convention("what is fixed gets no gradient", "INQAffine", "INQConvolution", second=True)
convention(
    "the gradient of the quantized weight, signs that pass gradients straight through, is passed on to the weight",
    "BinaryConnectAffine", "BinaryConnectConvolution", "BinaryWeightAffine", "BinaryWeightConvolution",
    second=True,
)  # fmt: skip

for _name in ("BinarySigmoid", "BinaryTanh"):
    sample(_name, "kinks", values([-1.0, 0.0, -0.0, 1.0]), smooth=False)

_X = uniform(4, 5, low=-3, high=3)
sample("FixedPointQuantize", "settings", _X, n=4, delta=0.5)
sample("FixedPointQuantize", "unsigned", _X, sign=False, n=3, delta=0.25)
sample("FixedPointQuantize", "straight_through", _X, n=4, delta=0.25, ste_fine_grained=False)
error("FixedPointQuantize", "delta", ArgumentError, "delta must be positive and finite", _X, delta=0.0)
error("FixedPointQuantize", "n", ArgumentError, "n must be at least 1", _X, n=0)
sample("Pow2Quantize", "settings", _X, n=4, m=1)
sample("Pow2Quantize", "unsigned", _X, sign=False, n=3, m=0)
sample("Pow2Quantize", "no_zero", _X, with_zero=False, n=3)
sample("Pow2Quantize", "straight_through", _X, n=4, m=0, ste_fine_grained=False)
error("Pow2Quantize", "n", ArgumentError, "n must leave a bit for the exponent", _X, n=2)

_RANGE = (values([[-1.0]]), values([[2.0]]), values([[0.0]]), values([[15.0]]))
sample("MinMaxQuantize", "fixed", _X, *_RANGE)
sample("MinMaxQuantize", "own_range", _X, *_RANGE, x_min_max=True)
sample("MinMaxQuantize", "moving", _X, *_RANGE, x_min_max=True, ema=True, decay=0.9, eps=0.05)
sample("MinMaxQuantize", "straight_through", _X, *_RANGE, ste_fine_grained=False)
error(
    "MinMaxQuantize",
    "shape",
    ShapeError,
    "qr_max must have the shape of qr_min",
    _X,
    _RANGE[0],
    normal(1, 5),
    *_RANGE[2:],
)

sample("Prune", "most", normal(4, 5))
sample("Prune", "half", normal(4, 5), rate=0.5)
sample("Prune", "nothing", normal(4, 5), rate=0.0)
error("Prune", "rate", ArgumentError, "rate must be at most", normal(3), rate=1.5)

_SCALE = (values([[0.25]]), values([[3.0]]))
sample("QuantizeLinear", "plain", _X, *_SCALE)
sample("QuantizeLinear", "columns", _X, uniform(1, 5, low=0.1, high=0.5), values([[0.0, 1.0, 2.0, 3.0, 4.0]]))
sample("QuantizeLinear", "settings", _X, *_SCALE, round_mode="HALF_TO_EVEN", narrow_range=True, dtype=2)
error("QuantizeLinear", "scale", ShapeError, "scale must have as many axes as x", _X, values(0.5), _SCALE[1])
error("QuantizeLinear", "round", ArgumentError, "round_mode must be one of", _X, *_SCALE, round_mode="DOWN")
sample("DequantizeLinear", "plain", uniform(4, 5, high=9), *_SCALE)
sample("DequantizeLinear", "columns", uniform(4, 5, high=9), uniform(1, 5, low=0.1, high=0.5), uniform(1, 5, high=4))
error("DequantizeLinear", "scale", ShapeError, "scale must have as many axes as x", _X, values(0.5), _SCALE[1])

_WEIGHT, _FILTERS = normal(3, 2), normal(4, 3, 2, 2)
_GEOMETRY: Settings = {"pad": (1, 0), "stride": (1, 2), "dilation": (1, 2)}
for _name, _extra in (("BinaryConnect", ()), ("BinaryWeight", (1,))):
    _alpha, _alphas = [normal(2)] * len(_extra), [normal(4)] * len(_extra)
    sample(f"{_name}Affine", "plain", normal(4, 3), _WEIGHT, normal(3, 2), *_alpha)
    sample(f"{_name}Affine", "bias", normal(4, 3), _WEIGHT, normal(3, 2), *_alpha, normal(2))
    sample(
        f"{_name}Affine",
        "zeros",
        normal(2, 2, 3),
        values([[0.0, 1.0], [-1.0, 0.0], [2.0, -0.5]]),
        normal(3, 2),
        *_alpha,
        base_axis=2,
        quantize_zero_to=-1.0,
    )
    error(
        f"{_name}Affine",
        "shape",
        ShapeError,
        "binary_weight must have the shape of weight",
        normal(4, 3),
        _WEIGHT,
        normal(2, 2),
        *_alpha,
    )
    sample(f"{_name}Convolution", "plain", normal(2, 3, 4, 5), _FILTERS, normal(4, 3, 2, 2), *_alphas)
    sample(
        f"{_name}Convolution",
        "bias",
        normal(2, 3, 4, 5),
        _FILTERS,
        normal(4, 3, 2, 2),
        *_alphas,
        normal(4),
        **_GEOMETRY,
    )
    sample(
        f"{_name}Convolution",
        "groups",
        normal(1, 2, 4, 4, 5),
        normal(4, 2, 2, 2),
        normal(4, 2, 2, 2),
        *_alphas,
        base_axis=1 - 4,
        group=2,
        quantize_zero_to=-1.0,
    )
    error(
        f"{_name}Convolution",
        "shape",
        ShapeError,
        "binary_weight must have the shape of weight",
        normal(2, 3, 4, 5),
        _FILTERS,
        normal(4, 3, 2, 1),
        *_alphas,
    )

_FIXED = integers(3, 2, high=2)
_INQ: Settings = {"num_bits": 3, "inq_iterations": (2, 4)}
sample("INQAffine", "plain", normal(4, 3), _WEIGHT, _FIXED, **_INQ)
sample("INQAffine", "bias", normal(4, 3), _WEIGHT, _FIXED, normal(2), inq_iterations=(0,))
sample(
    "INQAffine",
    "random",
    normal(2, 2, 3),
    _WEIGHT,
    _FIXED,
    base_axis=2,
    selection_algorithm="random",
    seed=3,
    inq_iterations=(0,),
)
error(
    "INQAffine",
    "shape",
    ShapeError,
    "indicator_fixedweights must have the shape of weight",
    normal(4, 3),
    _WEIGHT,
    integers(2, 2, high=2),
)
sample("INQConvolution", "plain", normal(2, 3, 4, 5), _FILTERS, integers(4, 3, 2, 2, high=2), **_INQ)
sample(
    "INQConvolution",
    "bias",
    normal(2, 3, 4, 5),
    _FILTERS,
    integers(4, 3, 2, 2, high=2),
    normal(4),
    inq_iterations=(0,),
    **_GEOMETRY,
)
sample(
    "INQConvolution",
    "groups",
    normal(2, 4, 4, 5),
    normal(4, 2, 2, 2),
    integers(4, 2, 2, 2, high=2),
    base_axis=1,
    group=2,
    selection_algorithm="random",
    seed=3,
    inq_iterations=(0,),
)
error(
    "INQConvolution",
    "shape",
    ShapeError,
    "indicator_fixedweights must have the shape of weight",
    normal(2, 3, 4, 5),
    _FILTERS,
    integers(4, 3, 2, 1, high=2),
)

# --- Integers

for _dtype in ("int8", "uint8", "int16", "uint16"):
    sample("QuantizeInteger", _dtype, _X, values([[0.25]]), levels(1, 1, dtype=_dtype))
sample("QuantizeInteger", "columns", _X, uniform(1, 5, low=0.1, high=0.5), levels(1, 5, dtype="uint8"))
sample("QuantizeInteger", "halves", values([0.5, 1.5, 2.5, -0.5, -1.5, -2.5]), values([1.0]), levels(1))
sample("QuantizeInteger", "number", values(0.7), values(0.5), levels())
sample("QuantizeInteger", "empty", normal(0, 3), values([[0.5]]), levels(1, 1))
error("QuantizeInteger", "dtype", DTypeError, "zero_point must hold int8, uint8", _X, values([[0.5]]), values([[3]]))
error("QuantizeInteger", "scale", ShapeError, "scale must have as many axes as x", _X, values(0.5), levels(1, 1))

_A, _B = levels(3, 4, dtype="uint8"), levels(4, 5)
sample("MatMulInteger", "plain", _A, _B)
sample("MatMulInteger", "zero_points", _A, _B, levels(1, 1, dtype="uint8"), levels(1, 1))
sample("MatMulInteger", "rows_and_columns", _A, _B, levels(3, 1, dtype="uint8"), levels(1, 5))
sample("MatMulInteger", "one_zero_point", _A, levels(2, 4, 5, dtype="uint8"), None, levels(2, 1, 5, dtype="uint8"))
sample("MatMulInteger", "batch", levels(2, 1, 3, 4), levels(3, 4, 2), levels(2, 1, 1, 1))
sample("MatMulInteger", "wide", levels(3, 4, dtype="int16"), levels(4, 2, dtype="uint16"))
sample("MatMulInteger", "bias", _A, _B, levels(1, 1, dtype="uint8"), None, integers(5, low=-(2**20), high=2**20))
sample("MatMulInteger", "empty", levels(0, 4), levels(4, 2))
error("MatMulInteger", "floats", DTypeError, "b must hold int8, uint8, int16, uint16, got float", _A, normal(4, 5))
error("MatMulInteger", "shapes", ShapeError, "as many columns as b has rows", _A, levels(3, 5))
error("MatMulInteger", "axes", ShapeError, "a_zero_point must have as many axes as a", _A, _B, levels(3))
error("MatMulInteger", "bias", ShapeError, "bias must have one number for each column", _A, _B, None, None, levels(4))
error("MatMulInteger", "inner", ShapeError, "b_zero_point must be one number along the axis", _A, _B, None, levels(4, 1))

_IMAGE, _KERNEL = levels(2, 4, 5, 6, dtype="uint8"), levels(6, 2, 2, 3)
sample("ConvInteger", "plain", _IMAGE, levels(3, 4, 2, 3))
sample("ConvInteger", "zero_points", _IMAGE, _KERNEL, levels(dtype="uint8"), levels(), group=2, **_GEOMETRY)
sample("ConvInteger", "filters", _IMAGE, _KERNEL, levels(1, dtype="uint8"), levels(6), group=2, **_GEOMETRY)
sample("ConvInteger", "bias", _IMAGE, _KERNEL, None, None, integers(6, low=-(2**20), high=2**20), group=2)
sample("ConvInteger", "line", levels(1, 2, 3, 7), levels(2, 3, 3), None, levels(1), base_axis=2, pad=(1,))
sample("ConvInteger", "empty", levels(0, 4, 5, 6), levels(3, 4, 2, 3))
error("ConvInteger", "floats", DTypeError, "x must hold int8, uint8, int16, uint16", normal(2, 4, 5, 6), _KERNEL, group=2)
error("ConvInteger", "channels", ShapeError, "x channels must equal weight channels", _IMAGE, _KERNEL)
error("ConvInteger", "bias", ShapeError, "bias must have one value", _IMAGE, _KERNEL, None, None, levels(4), group=2)
error("ConvInteger", "x", ShapeError, "x_zero_point must have one element", _IMAGE, _KERNEL, levels(4), group=2)
error("ConvInteger", "w", ShapeError, "or one for each of the 6 filters", _IMAGE, _KERNEL, None, levels(4), group=2)

_U, _S = levels(dtype="uint8"), levels(1)
sample("QLinearMatMul", "plain", _A, _B, values([300.0]), _U)
sample("QLinearMatMul", "columns", _A, _B, uniform(5, low=50, high=500), _U, levels(1, 1, dtype="uint8"), levels(1, 5))
sample("QLinearMatMul", "signed", levels(2, 3, 4), levels(2, 4, 5), values(250.0), _S, levels(1, 1, 1))
sample("QLinearMatMul", "bias", _A, _B, values([99.0]), _U, None, None, integers(5, low=-(2**12), high=2**12))
sample("QLinearMatMul", "empty", levels(0, 4), levels(4, 2), values([1.0]), _S)
error("QLinearMatMul", "dtype", DTypeError, "zero_point must hold uint8 as a does, got int8", _A, _B, values([1.0]), _S)
error("QLinearMatMul", "scale", ShapeError, "one for each of the 5 columns of b", _A, _B, values([1.0, 2.0]), _U)
error("QLinearMatMul", "zero", ShapeError, "zero_point must have one element", _A, _B, values([1.0]), levels(2, dtype="uint8"))

sample("QLinearConv", "plain", _IMAGE, levels(3, 4, 2, 3), values(900.0), _U)
sample("QLinearConv", "zero_points", _IMAGE, _KERNEL, values([900.0]), _U, _U, levels(), group=2, **_GEOMETRY)
sample("QLinearConv", "filters", _IMAGE, _KERNEL, uniform(6, low=100, high=900), _U, _U, levels(6), group=2, **_GEOMETRY)
sample("QLinearConv", "line", levels(1, 2, 3, 7), levels(2, 3, 3), values([70.0]), _S, None, levels(1), base_axis=2, pad=(1,))
sample("QLinearConv", "bias", _IMAGE, _KERNEL, values(99.0), _U, None, None, integers(6, low=-(2**12), high=2**12), group=2)
sample("QLinearConv", "empty", levels(0, 4, 5, 6), levels(3, 4, 2, 3), values(1.0), _S)
error("QLinearConv", "dtype", DTypeError, "zero_point must hold uint8 as x does", _IMAGE, _KERNEL, values(1.0), _S, group=2)
error("QLinearConv", "scale", ShapeError, "each of the 6 filters", _IMAGE, _KERNEL, values([1.0, 2.0]), _U, group=2)
