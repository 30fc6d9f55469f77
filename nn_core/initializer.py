"""Initial values of parameters: callables that take a shape and return a NumPy array."""

from collections.abc import Sequence
from math import prod, sqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nn_core import random
from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.dispatch.attributes import module_attributes
from nn_core.engine.error_messages.refusal import door, fitted
from nn_core.engine.error_messages.whole import takes_whole_numbers
from nn_core.errors import ArgumentError, ShapeError
from nn_core.typing import Shape
from nn_core.variable import Variable

__all__ = [
    "BaseInitializer",
    "ConstantInitializer",
    "NormalInitializer",
    "OrthogonalInitializer",
    "RangeInitializer",
    "UniformInitializer",
    "UniformIntInitializer",
    "WeightNormalizationScaleInitializer",
    "calc_normal_std_glorot",
    "calc_normal_std_he_backward",
    "calc_normal_std_he_forward",
    "calc_uniform_lim_glorot",
]

FloatArray: TypeAlias = np.ndarray[Any, Any]
Rng: TypeAlias = np.random.RandomState | np.random.Generator


class BaseInitializer:
    """Base of initializers: called with a shape, they return the values.

    Example:
        >>> class Ones(I.BaseInitializer):
        ...     def __call__(self, shape):
        ...         return np.ones(shape, np.float32)
        >>> PF.affine(nn.Variable((8, 4)), 3, w_init=Ones()).shape
        (8, 3)
    """

    @door
    def __call__(self, shape: Shape) -> FloatArray:
        """Values of the given shape."""
        raise NotImplementedError(f"{type(self).__name__}: an initializer must define __call__(shape)")


class NormalInitializer(BaseInitializer):
    r"""Draw from the normal distribution with mean 0.

    Args:
        sigma: Standard deviation.
        rng: Generator to draw from; None: the one that ``nn_core.seed`` seeds.

    Example:
        >>> I.NormalInitializer(0.1)((2, 3)).shape
        (2, 3)
    """

    @fitted
    def __init__(self, sigma: float = 1.0, rng: Rng | None = None) -> None:
        if not isinstance(sigma, (int, float, np.number)) or not sigma >= 0:
            raise ArgumentError(f"{type(self).__name__}: sigma must be a number of at least 0, got {sigma!r}")
        self.sigma = sigma
        self.rng = _generator(rng)

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        return (self.rng.standard_normal(shape) * self.sigma).astype(np.float32)

    def __repr__(self) -> str:
        return f"NormalInitializer({self.sigma})"


class UniformInitializer(BaseInitializer):
    """Draw from the uniform distribution over an interval.

    Args:
        lim: Lower and upper end of the interval.
        rng: Generator to draw from; None: the one that ``nn_core.seed`` seeds.

    Example:
        >>> limits = I.calc_uniform_lim_glorot(64, 32, (3, 3))
        >>> I.UniformInitializer(limits)((32, 64, 3, 3)).dtype
        dtype('float32')
    """

    @fitted
    def __init__(self, lim: tuple[float, float] = (-1, 1), rng: Rng | None = None) -> None:
        self.lim = _interval("UniformInitializer", lim)
        self.rng = _generator(rng)

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        low, high = self.lim
        return self.rng.uniform(low, high, size=shape).astype(np.float32)

    def __repr__(self) -> str:
        return f"UniformInitializer({self.lim})"


class UniformIntInitializer(BaseInitializer):
    """Draw integers uniformly; the upper end is left out.

    Args:
        lim: Lowest integer, and the one after the highest.
        rng: Generator to draw from; None: the one that ``nn_core.seed`` seeds.

    Example:
        >>> I.UniformIntInitializer((0, 10))((2, 3)).shape
        (2, 3)
    """

    @fitted
    def __init__(self, lim: tuple[int, int] = (0, 10), rng: Rng | None = None) -> None:
        self.lim = _interval("UniformIntInitializer", lim)
        self.rng = _generator(rng)

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        low, high = self.lim
        draw = self.rng.integers if isinstance(self.rng, np.random.Generator) else self.rng.randint
        return np.asarray(draw(low, high, size=shape), np.int64)

    def __repr__(self) -> str:
        return f"UniformIntInitializer({self.lim})"


class ConstantInitializer(BaseInitializer):
    """Fill with one value.

    Args:
        value: The value of every element.

    Example:
        >>> I.ConstantInitializer(0.5)((2,))
        array([0.5, 0.5], dtype=float32)
    """

    @fitted
    def __init__(self, value: float = 0) -> None:
        self.value = value

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        return np.full(shape, self.value, np.float32)

    def __repr__(self) -> str:
        return f"ConstantInitializer({self.value})"


class RangeInitializer(BaseInitializer):
    """Count upwards along the last axis, the same for all positions of the other axes.

    Args:
        start: First value.
        step: Difference between neighbours.

    Example:
        >>> I.RangeInitializer(1, 2)((2, 3)).tolist()
        [[1, 3, 5], [1, 3, 5]]
    """

    @fitted
    def __init__(self, start: float = 0, step: float = 1) -> None:
        self.start = start
        self.step = step

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        if not shape:
            return np.asarray(self.start)
        return np.broadcast_to(self.start + self.step * np.arange(shape[-1]), shape).copy()

    def __repr__(self) -> str:
        return f"RangeInitializer({self.start}, {self.step})"


class OrthogonalInitializer(BaseInitializer):
    """Make a matrix with orthonormal rows or columns, whichever are fewer, from the SVD of a normal random matrix.

    The axes after the first are taken together as the columns of the matrix.

    Args:
        gain: Factor on the matrix; sqrt(2) is advised in front of a ReLU.
        rng: Generator to draw from; None: the one that ``nn_core.seed`` seeds.

    Raises:
        ShapeError: when called with the shape ().

    References:
        Saxe, McClelland and Ganguli (2013), Exact solutions to the nonlinear dynamics of learning.

    Example:
        >>> w = I.OrthogonalInitializer()((2, 5))
        >>> (w @ w.T).round(3).tolist() == [[1, 0], [0, 1]]
        True
    """

    @fitted
    def __init__(self, gain: float = 1.0, rng: Rng | None = None) -> None:
        self.gain = gain
        self.rng = _generator(rng)

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        if not shape:
            raise ShapeError("OrthogonalInitializer: shape must have at least one axis, got ()")
        n_rows, n_columns = shape[0], prod(shape[1:])
        u, _, v = np.linalg.svd(self.rng.normal(0.0, 1.0, (n_rows, n_columns)), full_matrices=False)
        basis = u if u.shape == (n_rows, n_columns) else v
        return (basis.reshape(shape) * self.gain).astype(np.float32)

    def __repr__(self) -> str:
        return f"OrthogonalInitializer({self.gain})"


class WeightNormalizationScaleInitializer(BaseInitializer):
    """Give the scale with which weight normalization leaves a weight as it is: its norm for each index of one axis.

    Args:
        w: The weight.
        dim: Axis of `w` that keeps its own scale for each index; the norm is taken over the others.
        eps: Added to the squared norm.

    Example:
        >>> I.WeightNormalizationScaleInitializer(nn.NdArray.from_numpy_array([[3.0, 4.0], [6.0, 8.0]]))((2,)).tolist()
        [5.0, 10.0]
    """

    @fitted
    def __init__(self, w: Variable | NdArray, dim: int = 0, eps: float = 1e-12) -> None:
        self.w = w
        self.dim = dim
        self.eps = eps

    @door
    @takes_whole_numbers
    def __call__(self, shape: Shape) -> FloatArray:
        if isinstance(self.w, Variable) and self.w.data.synced.lease is UNCOMPUTED:
            self.w.forward()  # a weight that is computed from parameters, as by another `apply_w`
        w = (self.w if isinstance(self.w, NdArray) else self.w.data).get_data("r")
        if not -w.ndim <= self.dim < w.ndim:
            name = type(self).__name__
            raise ArgumentError(f"{name}: dim must be an axis of {w.shape}, got {self.dim}")
        others = tuple(axis for axis in range(w.ndim) if axis != self.dim % w.ndim)
        return np.sqrt(np.sum(np.square(w, dtype=np.float64), axis=others) + self.eps).astype(np.float32)

    def __repr__(self) -> str:
        return f"WeightNormalizationScaleInitializer(dim={self.dim}, eps={self.eps})"


@door
def calc_normal_std_he_forward(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """Return standard deviation sqrt(2 / fan-in), with which ReLU layers keep the variance of their outputs.

    Args:
        inmaps: Input channels of one group.
        outmaps: Output channels of one group.
        kernel: Lengths of the kernel; (1, 1) for an affine layer.

    References:
        He et al. (2015), Delving deep into rectifiers, section 2.2.

    Example:
        >>> round(I.calc_normal_std_he_forward(64, 32, (3, 3)), 4)
        0.0589
    """
    return sqrt(2.0 / (prod(kernel) * inmaps))


@door
def calc_normal_std_he_backward(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """Return standard deviation sqrt(2 / fan-out), with which ReLU layers keep the variance of their gradients.

    Args:
        inmaps: Input channels of one group.
        outmaps: Output channels of one group.
        kernel: Lengths of the kernel; (1, 1) for an affine layer.

    References:
        He et al. (2015), Delving deep into rectifiers, section 2.2.

    Example:
        >>> round(I.calc_normal_std_he_backward(64, 32, (3, 3)), 4)
        0.0833
    """
    return sqrt(2.0 / (prod(kernel) * outmaps))


@door
def calc_normal_std_glorot(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> float:
    """Return standard deviation sqrt(2 / (fan-in + fan-out)), a compromise between outputs and gradients.

    Args:
        inmaps: Input channels of one group.
        outmaps: Output channels of one group.
        kernel: Lengths of the kernel; (1, 1) for an affine layer.

    References:
        Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks.

    Example:
        >>> round(I.calc_normal_std_glorot(64, 32), 4)
        0.1443
    """
    return sqrt(2.0 / (prod(kernel) * (inmaps + outmaps)))


@door
def calc_uniform_lim_glorot(inmaps: int, outmaps: int, kernel: Sequence[int] = (1, 1)) -> tuple[float, float]:
    """Return ends of the interval, -+sqrt(6 / (fan-in + fan-out)), whose uniform distribution has Glorot's variance.

    Args:
        inmaps: Input channels of one group.
        outmaps: Output channels of one group.
        kernel: Lengths of the kernel; (1, 1) for an affine layer.

    References:
        Glorot and Bengio (2010), Understanding the difficulty of training deep feedforward neural networks.

    Example:
        >>> I.calc_uniform_lim_glorot(64, 32)
        (-0.25, 0.25)
    """
    limit = sqrt(6.0 / (prod(kernel) * (inmaps + outmaps)))
    return -limit, limit


def _generator(rng: Rng | None) -> Rng:
    return random.prng if rng is None else rng


def _interval(name: str, lim: Any) -> Any:
    is_pair = isinstance(lim, (tuple, list, np.ndarray)) and len(lim) == 2
    if not is_pair or not all(isinstance(end, (int, float, np.number)) for end in lim) or not lim[0] <= lim[1]:
        raise ArgumentError(f"{name}: lim must hold two numbers, lower and upper end, got {lim!r}")
    return tuple(lim)


if not TYPE_CHECKING:  # so that checkers report names that do not exist
    __getattr__, __dir__ = module_attributes(__name__, "initializers")
