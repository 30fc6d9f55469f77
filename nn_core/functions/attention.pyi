# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def scaled_dot_product_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def dropout_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    mask: Operand | None = None,
    p: float = 0.5,
    is_causal: bool = False,
    scale: float | None = None,
    seed: int = -1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def cached_attention(
    q: Operand,
    k: Operand,
    v: Operand,
    k_cache: Operand,
    v_cache: Operand,
    lengths: Operand,
    scale: float | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
