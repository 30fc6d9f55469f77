# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def affine(
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    base_axis: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def batch_matmul(
    a: Operand,
    b: Operand,
    transpose_a: bool = False,
    transpose_b: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def batch_det(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def batch_inv(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def batch_logdet(x: Operand, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
def batch_cholesky(
    x: Operand,
    upper: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def einsum(*x: Operand, equation: str, n_outputs: int = -1, outputs: Sequence[NdArray] | None = None) -> Operand: ...
