"""Activations as modules; a function such as ``F.relu`` serves in a `Sequential` as well."""

from dataclasses import KW_ONLY, dataclass

import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.functions.operand import Operand
from nn_core.layers.layer import Layer, checked
from nn_core.parametric_functions.scope import Initializer


@checked
@dataclass(eq=False, repr=False)
class ReLU(Layer):
    """Rectified linear units: y = max(x, 0).

    Example:
        >>> nn.layers.ReLU()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.relu(x)


@checked
@dataclass(eq=False, repr=False)
class LeakyReLU(Layer):
    """Rectified linear units with a slope below zero: y = x for x > 0, alpha x otherwise.

    Args:
        alpha: Slope below zero.

    Example:
        >>> nn.layers.LeakyReLU()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    alpha: float = 0.1

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.leaky_relu(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class ELU(Layer):
    """Exponential linear units: y = x for x > 0, alpha (exp(x) - 1) otherwise.

    Args:
        alpha: Limit below zero, up to the sign.

    Example:
        >>> nn.layers.ELU()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    alpha: float = 1.0

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.elu(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class SELU(Layer):
    """Scaled exponential linear units, which keep mean 0 and variance 1.

    Example:
        >>> nn.layers.SELU()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.selu(x)


@checked
@dataclass(eq=False, repr=False)
class GELU(Layer):
    """Gaussian error linear units: y = x P(X <= x) for a standard normal X.

    Example:
        >>> nn.layers.GELU()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.gelu(x)


@checked
@dataclass(eq=False, repr=False)
class Swish(Layer):
    """Sigmoid linear units (SiLU): y = x sigmoid(x).

    Example:
        >>> nn.layers.Swish()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.swish(x)


@checked
@dataclass(eq=False, repr=False)
class Mish(Layer):
    """Mish: y = x tanh(softplus(x)).

    Example:
        >>> nn.layers.Mish()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.mish(x)


@checked
@dataclass(eq=False, repr=False)
class Sigmoid(Layer):
    """Logistic function: y = 1 / (1 + exp(-x)).

    Example:
        >>> nn.layers.Sigmoid()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.sigmoid(x)


@checked
@dataclass(eq=False, repr=False)
class Tanh(Layer):
    """Hyperbolic tangent.

    Example:
        >>> nn.layers.Tanh()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.tanh(x)


@checked
@dataclass(eq=False, repr=False)
class Softplus(Layer):
    """Smooth rectifier: y = log(1 + exp(beta x)) / beta.

    Args:
        beta: Sharpness of the bend at zero.

    Example:
        >>> nn.layers.Softplus()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    beta: float = 1.0

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.softplus(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class Softmax(Layer):
    """Probabilities of classes from scores.

    Args:
        axis: Axis of the classes. Default: the last one.

    Example:
        >>> nn.layers.Softmax()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    axis: int | None = None

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.softmax(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class LogSoftmax(Layer):
    """Logarithms of the probabilities of classes from scores.

    Args:
        axis: Axis of the classes. Default: the last one.

    Example:
        >>> nn.layers.LogSoftmax()(nn.Variable((8, 20))).shape
        (8, 20)
    """

    axis: int | None = None

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return F.log_softmax(x, **self.settings())


@checked
@dataclass(eq=False, repr=False)
class PReLU(Layer):
    """Rectified linear units with trained slopes below zero.

    Args:
        base_axis: Axis of the channels.
        shared: One slope ``prelu/slope`` for all channels; if not, one for each.
        fix_parameters: Do not train the slopes.
        slope_init: Initial slopes. Default: 0.25.

    Example:
        >>> layer = nn.layers.PReLU(shared=False)
        >>> y = layer(nn.Variable((8, 3, 16, 16)))
        >>> layer.get_parameters()["prelu/slope"].shape
        (3,)
    """

    _: KW_ONLY
    base_axis: int = 1
    shared: bool = True
    fix_parameters: bool = False
    slope_init: Initializer | None = None

    def call(self, x: Operand) -> Operand:
        """Keep the shape."""
        return PF.prelu(x, **self.settings())
