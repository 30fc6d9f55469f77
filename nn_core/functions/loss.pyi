# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def sigmoid_cross_entropy(
    x: Operand,
    target: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def binary_cross_entropy(
    x: Operand,
    target: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def softmax_cross_entropy(
    x: Operand,
    target: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def categorical_cross_entropy(
    x: Operand,
    target: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def class_mask(
    target: Operand,
    n_classes: int,
    axis: int,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def squared_error(
    x0: Operand,
    x1: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def absolute_error(
    x0: Operand,
    x1: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def huber_loss(
    x0: Operand,
    x1: Operand,
    delta: float = 1.0,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def epsilon_insensitive_loss(
    x0: Operand,
    x1: Operand,
    epsilon: float,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def kl_multinomial(
    p: Operand,
    q: Operand,
    base_axis: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def top_n_error(
    x: Operand,
    target: Operand,
    axis: int | None = None,
    n: int = 1,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def binary_error(
    x: Operand,
    target: Operand,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def confusion_matrix(
    x: Operand,
    target: Operand,
    axis: int | None = None,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
