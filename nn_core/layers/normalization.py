"""Normalizations as modules."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import nn_core.parametric_functions as PF
from nn_core.functions.operand import Operand
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.initial import counted
from nn_core.parametric_functions.scope import Initializer


@checked
@dataclass(eq=False, repr=False)
class BatchNorm(Layer):
    """Batch normalization: by the statistics of the batch while the network trains, by the moving ones when it does not.

    Args:
        axes: The axes that keep statistics of their own, most often that of the channels.
        decay_rate: Fraction of the moving mean and variance that is kept at each step.
        eps: Added to variances.
        fix_parameters: Do not train scale and shift; the statistics still follow the batches.
        param_init: Initial values of "beta", "gamma", "mean" and "var", by these names.
        no_scale: Leave out the factor ``bn/gamma``.
        no_bias: Leave out the summand ``bn/beta``.

    References:
        Ioffe and Szegedy (2015), Batch normalization.

    Example:
        >>> layer = nn.layers.BatchNorm()
        >>> layer(nn.Variable((8, 3, 16, 16))).parent.args["batch_stat"]
        True
        >>> layer.eval()(nn.Variable((8, 3, 16, 16))).parent.args["batch_stat"]
        False
    """

    _: KW_ONLY
    axes: int | Sequence[int] = (1,)
    decay_rate: float = 0.9
    eps: float = 1e-5
    fix_parameters: bool = False
    param_init: Mapping[str, Initializer] | None = None
    no_scale: bool = False
    no_bias: bool = False

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return PF.batch_normalization(x, batch_stat=self.training, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class LayerNorm(Layer):
    """Layer normalization: each sample over all its elements.

    Args:
        batch_axis: The axes that count samples; (0, 1) normalizes the features of sequences of shape (N, T, C).
        eps: Added to variances.
        fix_parameters: Do not train scale and shift.
        param_init: Initial values of "beta" and "gamma", by these names.
        no_scale: Leave out the factor ``layer_normalization/gamma``.
        no_bias: Leave out the summand ``layer_normalization/beta``.

    References:
        Ba, Kiros and Hinton (2016), Layer normalization.

    Example:
        >>> nn.layers.LayerNorm()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    _: KW_ONLY
    batch_axis: int | Sequence[int] = 0
    eps: float = 1e-5
    fix_parameters: bool = False
    param_init: Mapping[str, Initializer] | None = None
    no_scale: bool = False
    no_bias: bool = False

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return PF.layer_normalization(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class InstanceNorm(Layer):
    """Instance normalization: each channel of each sample.

    Args:
        channel_axis: Axis of the channels.
        batch_axis: The axes that count samples.
        eps: Added to variances.
        fix_parameters: Do not train scale and shift.
        param_init: Initial values of "beta" and "gamma", by these names.
        no_scale: Leave out the factor ``instance_normalization/gamma``.
        no_bias: Leave out the summand ``instance_normalization/beta``.

    References:
        Ulyanov, Vedaldi and Lempitsky (2016), Instance normalization.

    Example:
        >>> nn.layers.InstanceNorm()(nn.Variable((8, 3, 16, 16))).shape
        (8, 3, 16, 16)
    """

    _: KW_ONLY
    channel_axis: int = 1
    batch_axis: int | Sequence[int] = 0
    eps: float = 1e-5
    fix_parameters: bool = False
    param_init: Mapping[str, Initializer] | None = None
    no_scale: bool = False
    no_bias: bool = False

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return PF.instance_normalization(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class GroupNorm(Layer):
    """Group normalization: groups of channels of each sample.

    Args:
        num_groups: Number of groups; it divides the number of channels.
        channel_axis: Axis of the channels.
        batch_axis: The axes that count samples.
        eps: Added to variances.
        fix_parameters: Do not train scale and shift.
        param_init: Initial values of "beta" and "gamma", by these names.
        no_scale: Leave out the factor ``group_normalization/gamma``.
        no_bias: Leave out the summand ``group_normalization/beta``.

    Raises:
        ArgumentError: when `num_groups` is not positive.

    References:
        Wu and He (2018), Group normalization.

    Example:
        >>> nn.layers.GroupNorm(3)(nn.Variable((8, 6, 16, 16))).shape
        (8, 6, 16, 16)
    """

    num_groups: int
    _: KW_ONLY
    channel_axis: int = 1
    batch_axis: int | Sequence[int] = 0
    eps: float = 1e-5
    fix_parameters: bool = False
    param_init: Mapping[str, Initializer] | None = None
    no_scale: bool = False
    no_bias: bool = False

    def __post_init__(self) -> None:
        counted("num_groups", self.num_groups, "GroupNorm")

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return PF.group_normalization(x, **self.settings())
