# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence
from typing import Literal, overload

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def sum(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def mean(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def max(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def max(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    with_index: bool = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
@overload
def min(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    with_index: Literal[False] = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
@overload
def min(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    with_index: bool = False,
    only_index: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def norm(
    x: Operand,
    p: float | None = None,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def prod(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    keep_dims: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def cumsum(
    x: Operand,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def cumprod(
    x: Operand,
    axis: int | None = None,
    exclusive: bool = False,
    reverse: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def reduce_sum(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def reduce_mean(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
