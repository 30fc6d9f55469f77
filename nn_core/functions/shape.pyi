# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand
from nn_core.variable import Variable

def concatenate(
    *x: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def split(
    x: Operand,
    axis: int = 0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def stack(*x: Operand, axis: int = 0, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def slice(
    x: Operand,
    start: Sequence[int] | None = None,
    stop: Sequence[int] | None = None,
    step: Sequence[int] | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def pad(
    x: Operand,
    pad_width: Sequence[int],
    mode: str = "constant",
    constant_value: float = 0.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def pad_backward(
    dy: Operand,
    pad_width: Sequence[int],
    mode: str = "constant",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def transpose(
    x: Operand,
    axes: int | Sequence[int],
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def broadcast(
    x: Operand,
    shape: int | Sequence[int],
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def broadcast_to(
    x: Operand,
    y: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def tile(x: Operand, reps: Sequence[int], n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def flip(
    x: Operand,
    axes: int | Sequence[int] | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def shift(
    x: Operand,
    shifts: Sequence[int] | None = None,
    border_mode: str = "nearest",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def shift_backward(
    dy: Operand,
    shifts: Sequence[int] | None = None,
    border_mode: str = "nearest",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def reshape(
    x: Operand,
    shape: int | Sequence[int],
    inplace: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def shape(
    x: Operand,
    start: int | None = None,
    end: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def matrix_diag(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def matrix_diag_part(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def trilu(
    x: Operand,
    k: int = 0,
    upper: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def meshgrid(
    *x: Operand,
    ij_indexing: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def identity(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def constant(
    val: float = 0.0,
    shape: int | Sequence[int] = (),
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def arange(
    start: float,
    stop: float,
    step: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def linspace(
    start: float,
    stop: float,
    num: int,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Variable: ...
def eye_like(x: Operand, k: int = 0, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def assign(dst: Operand, src: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def unlink(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def sink(
    *x: Operand,
    one_input_grad: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
