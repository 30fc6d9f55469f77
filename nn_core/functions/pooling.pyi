# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def max_pooling(
    x: Operand,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: int | Sequence[int] | None = None,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def max_pooling_backward(
    dy: Operand,
    x: Operand,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: int | Sequence[int] | None = None,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def max_pooling_gather(
    values: Operand,
    x: Operand,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: int | Sequence[int] | None = None,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def sum_pooling(
    x: Operand,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: int | Sequence[int] | None = None,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def average_pooling(
    x: Operand,
    kernel: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ignore_border: bool = True,
    pad: int | Sequence[int] | None = None,
    channel_last: bool = False,
    including_pad: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def global_average_pooling(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def unpooling(
    x: Operand,
    kernel: int | Sequence[int],
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def roi_align(
    input: Operand,
    boxes: Operand,
    output_size: int | Sequence[int],
    spatial_scale: Sequence[float] = (1.0, 1.0),
    sampling_ratio: int | None = None,
    channel_last: bool | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def roi_align_backward(
    dy: Operand,
    boxes: Operand,
    input_shape: int | Sequence[int],
    output_size: int | Sequence[int],
    spatial_scale: Sequence[float] = (1.0, 1.0),
    sampling_ratio: int = -1,
    channel_last: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
