"""Schedule-free solvers: an average of the weights replaces a schedule of the learning rate."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from nn_core.engine.error_messages.refusal import fitted_methods
from nn_core.errors import ArgumentError, GraphError
from nn_core.solvers.base import Solver
from nn_core.solvers.groups import Groups
from nn_core.solvers.states import Slot
from nn_core.typing import Array, Namespace


@fitted_methods()
class Averaging:
    """The part of a schedule-free solver that gives the average of the weights.

    In training the parameters are the points y where gradients are taken. The weights to evaluate and to keep are the
    average x, of which y has the share `share_name`.
    """

    share_name: ClassVar[str]
    info: Mapping[str, Any]
    name: str
    _slots: dict[str, Slot]
    _groups: Groups

    @contextmanager
    def averaged_parameters(self) -> Iterator[None]:
        """Let the parameters have their averages inside a ``with`` block, to evaluate or to save them.

        Raises:
            GraphError: when the parameters were updated inside of the block.
            ArgumentError: when the states are divided among ranks and were not gathered.

        Example:
            >>> w = nn.Variable.from_numpy_array([4.0], need_grad=True)
            >>> solver = S.ScheduleFreeSgd(0.5, momentum=0.5)
            >>> solver.set_parameters({"w": w})
            >>> for _ in range(3):
            ...     loss = solver.minimize(F.sum(0.25 * w * w))
            >>> with solver.averaged_parameters():
            ...     inside = f"{w.d.item():.3f}"
            >>> inside, f"{w.d.item():.3f}"
            ('2.297', '1.969')
        """
        before = [(slot, slot.t, slot.variable.d.copy()) for slot in self._slots.values() if slot.t]
        self._write_averages()
        try:
            yield
        finally:
            for slot, _, values in before:
                slot.variable.d = values
        if any(slot.t != t for slot, t, _ in before):
            raise GraphError(f"{self.name}: averaged parameters must not be updated, got an update in averaged_parameters()")

    def keep_average(self) -> None:
        """Put the averages into the parameters at the end of training; further updates start anew from there."""
        self._write_averages()
        for slot in self._slots.values():
            slot.t = 0
            for state in slot.member.states:
                state.zero()

    def _write_averages(self) -> None:
        self._groups.require_states()
        share = self.info[self.share_name]
        for slot in self._slots.values():
            if slot.t:
                y, z = slot.variable.d, slot.member.states[0].get_data("r")
                slot.variable.d = (y - (1 - share) * z) / share


def _step(w: Array, z: Array, total: Array, direction: Array, rate: float, share: float) -> None:
    """Move the fast sequence by a rate and a direction, and the parameter with it and with its average."""
    total[...] = total + rate * rate
    weight = rate * rate / total
    averaged = w - (1 - share) * z
    z -= rate * direction
    w[...] = (1 - weight) * averaged + (weight * share + (1 - share)) * z


def _begin(w: Array, z: Array, total: Array) -> None:
    z[...] = w
    total[...] = 0.0


class ScheduleFreeSgd(Averaging, Solver, closed=True):
    """Gradient descent with an average of the weights instead of a schedule of the learning rate.

    ``z <- z - lr * (g + decay * y)``, ``x <- (1 - c) * x + c * z`` with ``c = lr**2`` divided by the sum of ``lr**2`` of all
    updates so far, and ``y = (1 - momentum) * z + momentum * x``, where g is the gradient at y. In training the parameters
    are y; the weights to use are x: evaluate in ``with solver.averaged_parameters():``, and end with ``keep_average()``.

    Args:
        lr: Learning rate, constant after a warm-up if there is one; larger than that of gradient descent.
        momentum: Share of the average in the points where gradients are taken, between 0 and 1.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update; it is 0 otherwise. Running statistics of batch
        normalizations are those at y: run some batches through the network with the averages before it is evaluated.
        Hyper-parameters of an update kernel: lr, momentum, weight decay, t. States: fast (z), weights (the sum).

    References:
        Defazio et al. (2024), The road less scheduled, equations 3 to 5, with the weights of algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.ScheduleFreeSgd(lr=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.2]
    """

    lr: float
    momentum: float

    hyper_names = ("lr", "momentum")
    state_names = ("fast", "weights")
    state_kinds = ("whole", "number")
    decay_name = "weight_decay"
    fixed_names = ("momentum",)
    share_name = "momentum"

    def __init__(self, lr: float = 1.0, momentum: float = 0.9) -> None:
        super().__init__(lr, momentum)
        _require_share(self.name, "momentum", momentum)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w` and the fast sequence in place."""
        z, total = states
        lr, momentum, decay, t = hyper
        if t == 1:
            _begin(w, z, total)
        if lr:
            _step(w, z, total, g + decay * w, lr, momentum)


class ScheduleFreeAdamW(Averaging, Solver, closed=True):
    """Adam without a mean of gradients, with an average of the weights instead of that and of a schedule.

    ``v <- beta2 * v + (1 - beta2) * g**2``, ``a = alpha * sqrt(1 - beta2**t)``,
    ``z <- z - a * (g / (sqrt(v) + eps) + decay * y)``, ``x <- (1 - c) * x + c * z`` with ``c = a**2`` divided by the sum of
    ``a**2`` of all updates so far, and ``y = (1 - beta1) * z + beta1 * x``, where g is the gradient at y. In training the
    parameters are y; the weights to use are x: evaluate in ``with solver.averaged_parameters():``, and end with
    ``keep_average()``.

    Args:
        alpha: Step size, constant after a warm-up if there is one; larger than that of Adam.
        beta1: Share of the average in the points where gradients are taken, between 0 and 1.
        beta2: Part of the mean of squares that is kept.
        eps: Keeps the divisor from zero.

    Notes:
        ``weight_decay(rate)`` sets the decay for the next update; it is 0 otherwise. Running statistics of batch
        normalizations are those at y: run some batches through the network with the averages before it is evaluated.
        Hyper-parameters of an update kernel: alpha, beta1, beta2, eps, weight decay, t. States: fast (z), weights (the sum),
        var (v).

    References:
        Defazio et al. (2024), The road less scheduled, algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> x.grad.zero()
        >>> solver = S.ScheduleFreeAdamW(alpha=0.1)
        >>> solver.set_parameters({"x": x})
        >>> loss = F.sum(x * x)
        >>> loss.forward()
        >>> loss.backward()
        >>> solver.update()
        >>> print(x.d.round(3))
        [3.9]
    """

    alpha: float
    beta1: float
    beta2: float
    eps: float

    hyper_names = ("alpha", "beta1", "beta2", "eps")
    state_names = ("fast", "weights", "var")
    state_kinds = ("whole", "number", "whole")
    decay_name = "weight_decay"
    fixed_names = ("beta1",)
    share_name = "beta1"

    def __init__(self, alpha: float = 0.0025, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-08) -> None:
        super().__init__(alpha, beta1, beta2, eps)
        _require_share(self.name, "beta1", beta1)

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change `w`, the fast sequence and the mean of squares in place."""
        z, total, v = states
        alpha, beta1, beta2, eps, decay, t = hyper
        if t == 1:
            _begin(w, z, total)
        v[...] = beta2 * v + (1 - beta2) * g * g
        rate = alpha * math.sqrt(1 - beta2**t)
        if rate:
            _step(w, z, total, g / (xp.sqrt(v) + eps) + decay * w, rate, beta1)


def _require_share(solver: str, name: str, share: float) -> None:
    if not 0 < share < 1:
        raise ArgumentError(f"{solver}: {name} must be between 0 and 1, got {share!r}")
