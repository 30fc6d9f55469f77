# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def interpolate(
    x: Operand,
    output_size: int | Sequence[int],
    mode: str,
    align_corners: bool = True,
    half_pixel: bool = False,
    half_pixel_for_nn: bool = False,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def interpolate_backward(
    dy: Operand,
    input_size: Sequence[int],
    mode: str,
    align_corners: bool = True,
    half_pixel: bool = False,
    half_pixel_for_nn: bool = False,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def onnx_resize(
    x: Operand,
    roi: Sequence[float] = (),
    scales: Sequence[float] = (),
    sizes: Sequence[int] = (),
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float | None = None,
    exclude_outside: int | None = None,
    extrapolation_value: float | None = None,
    nearest_mode: str = "round_prefer_floor",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def onnx_resize_backward(
    dy: Operand,
    input_size: Sequence[int],
    roi: Sequence[float] = (),
    scales: Sequence[float] = (),
    sizes: Sequence[int] = (),
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    nearest_mode: str = "round_prefer_floor",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def fft(
    x: Operand,
    signal_ndim: int,
    normalized: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def ifft(
    x: Operand,
    signal_ndim: int,
    normalized: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def stft(
    x: Operand,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_istft_backward: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def istft(
    y_r: Operand,
    y_i: Operand,
    window_size: int,
    stride: int,
    fft_size: int,
    window_type: str = "hanning",
    center: bool = True,
    pad_mode: str = "reflect",
    as_stft_backward: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def affine_grid(
    theta: Operand,
    size: Sequence[int],
    align_corners: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def warp_by_grid(
    x: Operand,
    grid: Operand,
    mode: str = "linear",
    padding_mode: str = "zero",
    align_corners: bool = False,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def warp_by_flow(
    data: Operand,
    flow: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def patch_correlation(
    x1: Operand,
    x2: Operand,
    patch: int | Sequence[int] = (1, 1),
    shift: int | Sequence[int] = (0, 0),
    patch_step: int | Sequence[int] = (1, 1),
    shift_step: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0, 0, 0),
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def patch_correlation_backward(
    dy: Operand,
    x1: Operand,
    x2: Operand,
    patch: int | Sequence[int] = (1, 1),
    shift: int | Sequence[int] = (0, 0),
    patch_step: int | Sequence[int] = (1, 1),
    shift_step: int | Sequence[int] = (1, 1),
    padding: int | Sequence[int] = (0, 0, 0, 0),
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
