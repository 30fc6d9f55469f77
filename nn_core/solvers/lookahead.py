"""Lookahead: slow weights that follow those of another solver."""

from collections.abc import Sequence

from nn_core.errors import ArgumentError
from nn_core.solvers.base import Solver
from nn_core.solvers.numbers import checked_number
from nn_core.solvers.wrapping import Wrapping
from nn_core.typing import Array, Namespace


class Lookahead(Wrapping, closed=True):
    """Another solver's steps, every few of which end between where they began and where they have led.

    After every `interval` updates of a parameter ``slow <- slow + slow_step * (w - slow)`` and ``w <- slow``.

    Args:
        solver: The solver whose steps are taken, without parameters; its numbers become those of this one, such as
            ``solver.alpha``. It is not changed.
        interval: Number of updates between two steps of the slow weights.
        slow_step: Step of the slow weights, from 0 to 1.

    Raises:
        ArgumentError: when `solver` is no solver, or has parameters; when a number is out of range.

    Notes:
        Schedules change the learning rate of `solver`, ``weight_decay()`` is its, and so are the states, beside "slow". At
        the end of training the parameters are the slow weights only after a multiple of `interval` updates.

    References:
        Zhang et al. (2019), Lookahead optimizer: k steps forward, 1 step back, algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> solver = S.Lookahead(S.Sgd(lr=0.25), interval=2, slow_step=0.5)
        >>> solver.set_parameters({"x": x})
        >>> for _ in range(2):
        ...     loss = solver.minimize(F.sum(x * x))
        >>> print(x.d)
        [2.5]
    """

    own_names = ("interval", "slow_step")
    own_states = ("slow",)

    def __init__(self, solver: Solver, interval: int = 5, slow_step: float = 0.5) -> None:
        if not 0 <= checked_number("Lookahead", "slow_step", slow_step) <= 1:
            raise ArgumentError(f"Lookahead: slow_step must be from 0 to 1, got {slow_step!r}")
        super().__init__(solver, interval, slow_step)

    def _change(
        self, xp: Namespace, w: Array, g: Array, states: Sequence[Array], own: Sequence[float], inner: Sequence[float]
    ) -> None:
        (slow,) = states[-1:]
        interval, slow_step = own
        t = inner[-1]
        if t == 1:
            slow[...] = w
        self.inner.step(xp, w, g, states[:-1], inner)
        if t % interval == 0:
            slow += slow_step * (w - slow)
            w[...] = slow
