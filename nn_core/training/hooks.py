"""Changes of gradients between clipping and the update, for ``Updater(hooks=[...])`` and for loops of one's own."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from nn_core import functions as F
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError
from nn_core.solvers.base import Solver

#: Called with a solver, whose gradients it changes, and the number of the iteration, from 0.
GradientHook: TypeAlias = Callable[[Solver, int], object]

#: Set apart from other generators that count iterations.
_NOISE_KEY = 0x6E6E5F6E6F697365


@fitted
def clip_values(low: float, high: float) -> GradientHook:
    """Limit each element of the gradients: g = min(max(g, low), high).

    Raises:
        ArgumentError: when `low` is greater than `high`.

    Example:
        >>> import numpy as np, nn_core as nn, nn_core.solvers as S
        >>> w = nn.Variable.from_numpy_array(np.zeros(3), need_grad=True)
        >>> solver = S.Sgd(1.0)
        >>> solver.set_parameters({"w": w})
        >>> w.g = [-3, 0.5, 3]
        >>> clip_values(-1, 1)(solver, 0)
        >>> w.g.tolist()
        [-1.0, 0.5, 1.0]
    """
    if not low <= high:
        raise ArgumentError(f"clip_values: low must be at most high, got {low} and {high}")

    def hook(solver: Solver, iteration: int) -> None:
        for parameter in solver.get_parameters().values():
            F.minimum_scalar(parameter.grad, high, outputs=[parameter.grad])
            F.maximum_scalar(parameter.grad, low, outputs=[parameter.grad])

    return hook


@fitted
def lasso(rate: float) -> GradientHook:
    """Add the gradient of rate * |w| to the gradients: g = g + rate * sign(w), with sign(0) = 0.

    Raises:
        ArgumentError: when `rate` is negative.

    Example:
        >>> from nn_core.training import lasso
        >>> w = nn.Variable.from_numpy_array([-2.0, 0.0, 2.0], need_grad=True)
        >>> solver = S.Sgd(1.0)
        >>> solver.set_parameters({"w": w})
        >>> w.g = 0
        >>> lasso(0.5)(solver, 0)
        >>> w.g.tolist()
        [-0.5, 0.0, 0.5]
    """
    if rate < 0:
        raise ArgumentError(f"lasso: rate must be at least 0, got {rate}")

    def hook(solver: Solver, iteration: int) -> None:
        for parameter in solver.get_parameters().values():
            change = F.mul_scalar(F.sign(parameter.data, alpha=0.0), rate)
            F.add2(parameter.grad, change, outputs=[parameter.grad])

    return hook


@fitted
def gradient_noise(eta: float = 0.01, gamma: float = 0.55, seed: int = 0) -> GradientHook:
    """Add noise to the gradients that decreases in the course of training.

    The noise of iteration t is normal with variance eta / (1 + t) ** gamma (Neelakantan and others, 2015, "Adding gradient
    noise improves learning for very deep networks"). It depends on the seed, the iteration and the place of the parameter
    alone, so a run that is resumed draws the same.

    Args:
        eta: Variance at first.
        gamma: How fast it falls.
        seed: Seed of the noise.

    Raises:
        ArgumentError: when `eta` or `gamma` is negative.

    Example:
        >>> from nn_core.training import gradient_noise
        >>> w = nn.Variable.from_numpy_array(np.zeros(3), need_grad=True)
        >>> solver = S.Sgd(1.0)
        >>> solver.set_parameters({"w": w})
        >>> w.g = 0
        >>> gradient_noise(eta=0.01)(solver, 0)
        >>> bool(np.abs(w.g).max() > 0)
        True
    """
    if eta < 0 or gamma < 0:
        raise ArgumentError(f"gradient_noise: eta and gamma must be at least 0, got {eta} and {gamma}")

    def hook(solver: Solver, iteration: int) -> None:
        deviation = (eta / (1 + iteration) ** gamma) ** 0.5
        rng = np.random.Generator(np.random.Philox(key=np.array([_NOISE_KEY, (seed << 40) + iteration], np.uint64)))
        for parameter in solver.get_parameters().values():
            parameter.g = parameter.g + rng.normal(0.0, deviation, parameter.shape).astype(np.float32)

    return hook
