# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence
from typing import Literal, overload

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def one_hot(
    x: Operand,
    shape: int | Sequence[int],
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def embed(x0: Operand, w: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def gather(
    x: Operand,
    Indices: Operand,
    axis: int | None = None,
    batch_dims: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def gather_nd(
    x: Operand,
    indices: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def scatter_nd(
    data: Operand,
    indices: Operand,
    out: Operand | None = None,
    shape: Sequence[int] | None = None,
    add: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def scatter_add(
    x0: Operand,
    indices: Operand,
    x1: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def bool_gather(
    input: Operand,
    mask: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def bool_scatter(
    input: Operand,
    mask: Operand,
    output: Operand | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def bool_fill(
    data: Operand,
    mask: Operand,
    value: float = 0.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def nonzero(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
@overload
def sort(
    x: Operand,
    axis: int = -1,
    reverse: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def sort(
    x: Operand,
    axis: int = -1,
    reverse: bool = False,
    with_index: bool = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
@overload
def unique(
    x: Operand,
    flatten: bool = True,
    axis: int | None = None,
    sorted: bool = True,
    with_index: Literal[False] = False,
    with_inverse: Literal[False] = False,
    with_counts: Literal[False] = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def unique(
    x: Operand,
    flatten: bool = True,
    axis: int | None = None,
    sorted: bool = True,
    with_index: bool = False,
    with_inverse: bool = False,
    with_counts: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def searchsorted(
    sorted_sequence: Operand,
    values: Operand,
    right: bool | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def top_k_data(
    x: Operand,
    k: int,
    abs: bool = False,
    reduce: bool = True,
    base_axis: int = 1,
    largest: bool = True,
    with_index: Literal[False] = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def top_k_data(
    x: Operand,
    k: int,
    abs: bool = False,
    reduce: bool = True,
    base_axis: int = 1,
    largest: bool = True,
    with_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def top_k_grad(
    x: Operand,
    k: int,
    abs: bool = False,
    base_axis: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def nms_detection2d(
    x: Operand,
    thresh: float | None = None,
    nms: float | None = None,
    nms_per_class: bool | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def onnx_non_max_suppression(
    boxes: Operand,
    scores: Operand,
    center_point_box: int | None = None,
    max_output_boxes_per_class: int | None = None,
    iou_threshold: float | None = None,
    score_threshold: float | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def gather_axes(
    x: Operand,
    source: Operand,
    base_axis: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
    *,
    shape: int | Sequence[int],
) -> Operand: ...
def scatter_axes(
    dy: Operand,
    source: Operand,
    base_axis: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
    *,
    shape: int | Sequence[int],
) -> Operand: ...
