# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def binary_sigmoid(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def binary_tanh(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def binary_connect_affine(
    x: Operand,
    weight: Operand,
    binary_weight: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    quantize_zero_to: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def binary_connect_convolution(
    x: Operand,
    weight: Operand,
    binary_weight: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    quantize_zero_to: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def binary_weight_affine(
    x: Operand,
    weight: Operand,
    binary_weight: Operand,
    alpha: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    quantize_zero_to: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def binary_weight_convolution(
    x: Operand,
    weight: Operand,
    binary_weight: Operand,
    alpha: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    quantize_zero_to: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def inq_affine(
    x: Operand,
    weight: Operand,
    indicator_fixedweights: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    num_bits: int = 4,
    inq_iterations: Sequence[int] = (),
    selection_algorithm: str = "largest_abs",
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def inq_convolution(
    x: Operand,
    weight: Operand,
    indicator_fixedweights: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    num_bits: int = 4,
    inq_iterations: Sequence[int] = (),
    selection_algorithm: str = "largest_abs",
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def fixed_point_quantize(
    x: Operand,
    sign: bool = True,
    n: int = 8,
    delta: float = 0.0625,
    ste_fine_grained: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def pow2_quantize(
    x: Operand,
    sign: bool = True,
    with_zero: bool = True,
    n: int = 8,
    m: int = 1,
    ste_fine_grained: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def min_max_quantize(
    x: Operand,
    qr_min: Operand,
    qr_max: Operand,
    ql_min: Operand,
    ql_max: Operand,
    decay: float = 0.999,
    x_min_max: bool = False,
    ema: bool = False,
    ste_fine_grained: bool = True,
    eps: float = 0.01,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def prune(x: Operand, rate: float = 0.9, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def quantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    dtype: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def dequantize_linear(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def quantize_integer(
    x: Operand,
    scale: Operand,
    zero_point: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def matmul_integer(
    a: Operand,
    b: Operand,
    a_zero_point: Operand | None = None,
    b_zero_point: Operand | None = None,
    bias: Operand | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def conv_integer(
    x: Operand,
    weight: Operand,
    x_zero_point: Operand | None = None,
    weight_zero_point: Operand | None = None,
    bias: Operand | None = None,
    base_axis: int = 1,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def qlinear_matmul(
    a: Operand,
    b: Operand,
    scale: Operand,
    zero_point: Operand,
    a_zero_point: Operand | None = None,
    b_zero_point: Operand | None = None,
    bias: Operand | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def qlinear_conv(
    x: Operand,
    weight: Operand,
    scale: Operand,
    zero_point: Operand,
    x_zero_point: Operand | None = None,
    weight_zero_point: Operand | None = None,
    bias: Operand | None = None,
    base_axis: int = 1,
    pad: int | Sequence[int] | None = None,
    stride: int | Sequence[int] | None = None,
    dilation: int | Sequence[int] | None = None,
    group: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
