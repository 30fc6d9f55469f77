# Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
from collections.abc import Sequence

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.operand import Operand

def batch_normalization(
    x: Operand,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    mean: Operand | None = None,
    variance: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    no_scale: bool = False,
    no_bias: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def fused_batch_normalization(
    x: Operand,
    beta: Operand,
    gamma: Operand,
    mean: Operand,
    variance: Operand,
    z: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    nonlinearity: str = "relu",
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def sync_batch_normalization(
    x: Operand,
    beta: Operand,
    gamma: Operand,
    mean: Operand,
    variance: Operand,
    group: str = "world",
    axes: int | Sequence[int] = (1,),
    decay_rate: float = 0.9,
    eps: float = 1e-05,
    batch_stat: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def layer_normalization(
    x: Operand,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    batch_axis: int | Sequence[int] = (0,),
    eps: float = 1e-05,
    no_scale: bool = False,
    no_bias: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def instance_normalization(
    x: Operand,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = (0,),
    eps: float = 1e-05,
    no_scale: bool = False,
    no_bias: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def group_normalization(
    x: Operand,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    num_groups: int = 1,
    channel_axis: int = 1,
    batch_axis: int | Sequence[int] = (0,),
    eps: float = 1e-05,
    no_scale: bool = False,
    no_bias: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def tensor_normalization(
    x: Operand,
    beta: Operand | None = None,
    gamma: Operand | None = None,
    axes: int | Sequence[int] = (1,),
    eps: float = 1e-05,
    no_scale: bool = False,
    no_bias: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def weight_standardization(
    w: Operand,
    channel_axis: int = 0,
    eps: float = 1e-05,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def norm_normalization(
    x: Operand,
    p: float | None = None,
    axes: int | Sequence[int] | None = None,
    eps: float = 1e-12,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def weight_normalization(
    w: Operand,
    g: Operand,
    dim: int = 0,
    eps: float = 1e-12,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def spectral_norm(
    w: Operand,
    u: Operand,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: bool = False,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
def mean_subtraction(
    x: Operand,
    rmean: Operand,
    t: Operand,
    base_axis: int = 1,
    update_running_mean: bool = True,
    n_outputs: int = -1,
    outputs: Sequence[NdArray] | None = None,
) -> Operand: ...
