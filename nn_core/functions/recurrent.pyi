# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def rnn(
    x: Operand,
    h: Operand,
    weight_l0: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    num_layers: int = 1,
    nonlinearity: str = "tanh",
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def lstm(
    x: Operand,
    h: Operand,
    c: Operand,
    weight_l0: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    num_layers: int = 1,
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def gru(
    x: Operand,
    h: Operand,
    weight_l0: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    num_layers: int = 1,
    dropout: float | None = None,
    bidirectional: bool = False,
    training: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def pack_padded_sequence(
    padded_sequence: Operand,
    lengths: Operand,
    batch_first: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
def pad_packed_sequence(
    packed_sequence: Operand,
    batch_sizes: Operand,
    batch_first: bool = False,
    padding_value: float | None = None,
    total_length: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> tuple[Operand, ...]: ...
