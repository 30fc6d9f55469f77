"""Solvers that compute the loss and its gradients several times in an update: SAM, and L-BFGS."""

import math
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described, fitted_methods
from nn_core.errors import ArgumentError, GraphError
from nn_core.solvers.base import Solver
from nn_core.solvers.groups import active
from nn_core.solvers.line_search import Point, Vector, search
from nn_core.solvers.minimizing import SeveralPasses
from nn_core.solvers.numbers import checked_number
from nn_core.solvers.states import Slot
from nn_core.solvers.update import BoundUpdate, ComputeTarget, Member, Rule
from nn_core.solvers.wrapping import Wrapping
from nn_core.typing import Array, Namespace
from nn_core.variable import Variable

#: Set the gradients to zero, compute the loss and its gradients, and return the loss.
Gradients: TypeAlias = Callable[[], Any]
_Pairs: TypeAlias = deque[tuple[Vector, Vector]]
#: Pairs with less curvature than this, relative to their lengths, say nothing.
_LEAST_CURVATURE: Final = 1e-10
#: Two arrays are kept for each; more pairs than this only slow the directions down.
_MAX_HISTORY: Final = 1000


def _ascend(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    (before,) = states
    before[...] = w
    w += hyper[0] * g


def _return(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    w[...] = states[0]


_ASCEND: Final = Rule("Ascend", _ascend)
_RETURN: Final = Rule("Return", _return)


@fitted_methods("update_with")
class SAM(SeveralPasses, Wrapping, closed=True):
    """Sharpness-aware minimization: another solver's steps with the gradients at the worst point nearby.

    ``e = rho * g / |g|`` with the norm of all gradients g together; the step of `solver` is taken at ``w`` with the gradient
    of the loss at ``w + e``. Each update computes the loss and its gradients twice: by ``minimize(loss)``, by an `Updater`,
    or by ``update_with(gradients)``.

    Args:
        solver: The solver whose steps are taken, without parameters; its numbers become those of this one, such as
            ``solver.alpha``. It is not changed.
        rho: Radius of the neighborhood.

    Raises:
        ArgumentError: when `solver` is no solver, or has parameters; when `rho` is negative.

    Notes:
        ``update()`` is refused, since it cannot compute gradients. Both passes draw random numbers, such as those of
        dropout, and move running statistics of batch normalizations.

    References:
        Foret et al. (2021), Sharpness-aware minimization for efficiently improving generalization, algorithm 1.

    Example:
        >>> x = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> solver = S.SAM(S.Sgd(lr=0.25), rho=1.0)
        >>> solver.set_parameters({"x": x})
        >>> loss = solver.minimize(F.sum(x * x))
        >>> print(x.d)
        [1.5]
    """

    own_names = ("rho",)

    def __init__(self, solver: Solver, rho: float = 0.05) -> None:
        if not 0 <= checked_number("SAM", "rho", rho) < math.inf:
            raise ArgumentError(f"SAM: rho must be at least 0 and finite, got {rho!r}")
        self._is_at_w = False
        super().__init__(solver, rho)

    def update_with(self, gradients: Gradients, clip_norm: float | None = None, weight_decay: float | None = None) -> Any:
        """Update the parameters by gradients that are computed twice.

        Args:
            gradients: Sets the gradients to zero, computes the loss and its gradients, and returns the loss.
            clip_norm: Largest Euclidean norm of all gradients of the second pass together.
            weight_decay: Rate for ``weight_decay()``, after clipping.

        Returns:
            The loss of the first pass, at the parameters; where it is a Variable of a static graph, that has the value of the
            second pass.

        Example:
            >>> w = nn.Variable.from_numpy_array([4.0], need_grad=True)
            >>> solver, loss = S.SAM(S.Sgd(lr=0.25), rho=1.0), F.sum(w * w)
            >>> solver.set_parameters({"w": w})
            >>> def gradients():
            ...     loss.forward()
            ...     solver.zero_grad()
            ...     loss.backward()
            ...     return loss.d.item()
            >>> solver.update_with(gradients), w.d.tolist()
            (16.0, [1.5])
        """
        loss = gradients()
        norm = self.grad_norm()
        if 0.0 < norm < math.inf:  # else the step shows it
            with self._ascended(self.info["rho"] / norm):
                gradients()
        if clip_norm is not None:
            self.clip_grad_by_global_norm(clip_norm)
        if weight_decay is not None:
            self.weight_decay(weight_decay)
        self._is_at_w = True
        try:
            self.update()
        finally:
            self._is_at_w = False
        return loss

    @contextmanager
    def _ascended(self, factor: float) -> Iterator[None]:
        """Add so many times their gradients to the parameters inside a ``with`` block."""
        members = [Member(slot.variable, [_empty(slot)]) for slot in active(self._slots.values())]
        targets = self._gradients.targets
        _run_once(_ASCEND, members, factor, targets)
        try:
            yield
        finally:
            _run_once(_RETURN, members, factor, targets)

    def _change(
        self, xp: Namespace, w: Array, g: Array, states: Sequence[Array], own: Sequence[float], inner: Sequence[float]
    ) -> None:
        if not self._is_at_w:
            _refuse_update(self.name)
        self.inner.step(xp, w, g, states, inner)


@fitted_methods("step", "update_with")
class LBFGS(SeveralPasses, Solver, closed=True):
    """Quasi-Newton steps for losses without noise: few parameters, or all samples in each pass.

    Each update takes up to `max_iterations` steps ``w <- w + a * d``. The direction d comes from the changes of weights and
    gradients in the last `history` steps, the length a from a line search for the strong Wolfe conditions, which computes the
    loss and its gradients once or several times: by ``minimize(loss)``, by an `Updater`, or by ``update_with(gradients)``.

    Args:
        lr: Length at which the line search begins; 0 leaves the parameters where they are.
        history: Number of pairs of changes that are kept, at most 1000.
        max_iterations: Number of steps of an update.
        tolerance_grad: An update ends when no element of the gradient is larger.
        tolerance_change: An update ends when the loss, or every parameter, changes less.

    Notes:
        ``update()`` is refused, since it cannot compute gradients; so are clipping, decay and scales in ``minimize()``, which
        would change gradients and not the loss: add the penalty to the loss. The loss must be the same function in all passes
        of an update, without dropout. Directions are computed on the host in float64. States: step0, change0 and so on, the
        oldest pair first.

    References:
        Nocedal and Wright (2006), Numerical optimization, algorithms 7.4 and 7.5 for directions, 3.5 and 3.6 for lengths.

    Example:
        >>> x = nn.Variable.from_numpy_array([-1.0, 2.0], need_grad=True)
        >>> solver = S.LBFGS()
        >>> solver.set_parameters({"x": x})
        >>> rosenbrock = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        >>> for _ in range(3):
        ...     loss = solver.minimize(rosenbrock)
        >>> x.d.round(3).tolist()
        [1.0, 1.0]
    """

    lr: float
    history: int
    max_iterations: int
    tolerance_grad: float
    tolerance_change: float

    hyper_names = ("lr", "history", "max_iterations", "tolerance_grad", "tolerance_change")
    fixed_names = ("history",)

    def __init__(
        self,
        lr: float = 1.0,
        history: int = 10,
        max_iterations: int = 20,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
    ) -> None:
        super().__init__(lr, history, max_iterations, tolerance_grad, tolerance_change)
        if history > _MAX_HISTORY:
            raise ArgumentError(f"LBFGS: history must be at most {_MAX_HISTORY}, got {history!r}")
        self.state_names = tuple(f"{kind}{index}" for index in range(history) for kind in ("step", "change"))

    def update_with(self, gradients: Gradients, clip_norm: float | None = None, weight_decay: float | None = None) -> Any:
        """Update the parameters by gradients that are computed as often as the line searches ask.

        Args:
            gradients: Sets the gradients to zero, computes the loss and its gradients, and returns the loss.
            clip_norm: None, and so is weight_decay: they would change gradients and not the loss.

        Returns:
            The loss of the first pass, at the parameters before.

        Raises:
            GraphError: when that loss or its gradients are not finite; nothing is changed.
            ArgumentError: when `clip_norm` or `weight_decay` is given, or a group of parameters has another setting than
                "frozen".

        Example:
            >>> w = nn.Variable.from_numpy_array([4.0], need_grad=True)
            >>> solver, loss = S.LBFGS(), F.sum(w * w)
            >>> solver.set_parameters({"w": w})
            >>> def gradients():
            ...     loss.forward()
            ...     solver.zero_grad()
            ...     loss.backward()
            ...     return loss.d.item()
            >>> solver.update_with(gradients), w.d.tolist()
            (16.0, [0.0])
        """
        if clip_norm is not None or weight_decay is not None:
            given = f"clip_norm={clip_norm} and weight_decay={weight_decay}"
            raise ArgumentError(
                f"{self.name}: gradients must be those of the loss, got {given}\n  hint: add a penalty to the loss"
            )
        _require_plain(self.name, self._slots)
        first = gradients()
        slots = active(self._slots.values())
        if not slots:
            self._warn_of_nothing()
            return first
        pairs: _Pairs = deque(self._pairs(slots), self.info["history"])
        at = Point(_values(slots), _as_number(first), _gradients_of(slots))
        if not at.is_finite:
            raise GraphError(f"{self.name}: the loss and its gradients must be finite, got a loss of {at.loss}")

        def evaluate(w: Vector) -> Point:
            _write(slots, w)
            return Point(w, _as_number(gradients()), _gradients_of(slots))

        try:
            for _ in range(self.info["max_iterations"] if self.info["lr"] else 0):
                if np.abs(at.grad).max(initial=0.0) <= self.info["tolerance_grad"]:
                    break
                before, at = at, self._stepped(evaluate, at, pairs)
                if max(abs(at.loss - before.loss), np.abs(at.w - before.w).max()) <= self.info["tolerance_change"]:
                    break
        finally:  # the parameters are where the last search tried
            _write(slots, at.w)
        self._keep(slots, pairs)
        return first

    def _stepped(self, evaluate: Callable[[Vector], Point], at: Point, pairs: _Pairs) -> Point:
        """Return where a step leads, and add its pair."""
        direction = direction_of(at.grad, pairs)
        if not at.grad @ direction < 0:
            pairs.clear()
            direction = -at.grad
        length = self.info["lr"] * (1.0 if pairs else min(1.0, 1.0 / float(np.abs(at.grad).sum())))
        after = search(evaluate, at, direction, length)
        step, change = after.w - at.w, after.grad - at.grad
        if step @ change > _LEAST_CURVATURE * np.linalg.norm(step) * np.linalg.norm(change):
            pairs.append((step, change))
        return after

    def _pairs(self, slots: Sequence[Slot]) -> Iterator[tuple[Vector, Vector]]:
        for index in range(0, len(self.state_names), 2):
            step, change = (_joined(slot.member.states[index + part] for slot in slots) for part in (0, 1))
            if step @ change > 0:  # zero where there were fewer updates
                yield step, change

    def _keep(self, slots: Sequence[Slot], pairs: Collection[tuple[Vector, Vector]]) -> None:
        for slot in slots:
            slot.t += 1
        first = len(self.state_names) - 2 * len(pairs)
        for index in range(first):
            for slot in slots:
                slot.member.states[index].zero()
        for position, vectors in enumerate(pairs):
            for part, vector in enumerate(vectors):
                _divide(vector, [slot.member.states[first + 2 * position + part] for slot in slots])

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Refuse ``update()``, which cannot compute gradients.

        Raises:
            GraphError: always.
        """
        _refuse_update("LBFGS")


def direction_of(grad: Vector, pairs: _Pairs) -> Vector:
    """Return minus the inverse Hessian of the last pairs times the gradient, by two loops over the pairs."""
    q = -grad
    weights = []
    for step, change in reversed(pairs):
        weight = step @ q / (step @ change)
        weights.append(weight)
        q = q - weight * change
    if pairs:
        step, change = pairs[-1]
        q = q * (step @ change / (change @ change))
    for (step, change), weight in zip(pairs, reversed(weights), strict=True):
        q = q + (weight - change @ q / (step @ change)) * step
    return q


def _refuse_update(name: str) -> NoReturn:
    raise GraphError(
        f"{name}.update: the loss must be computed several times, got gradients of one pass\n"
        "  hint: solver.minimize(loss), an Updater, or solver.update_with(gradients)"
    )


def _require_plain(name: str, slots: Mapping[str, Slot]) -> None:
    for key, slot in slots.items():
        if slot.settings.rate != 1.0 or slot.settings.numbers:
            raise ArgumentError(f"{name}: groups of parameters must be frozen or as all others, got settings of {key}")


def _run_once(rule: Rule, members: Sequence[Member], number: float, targets: Sequence[ComputeTarget]) -> None:
    BoundUpdate(rule, members, np.array([number, 0.0]), targets).run()


def _empty(slot: Slot) -> NdArray:
    array = NdArray.of_shape(slot.variable.plain_shape)
    array.zero()
    return array


def _as_number(loss: Any) -> float:
    values = loss.d if isinstance(loss, Variable) else loss
    if not isinstance(values, (float, int, np.number, np.ndarray)):
        raise ArgumentError(f"update_with: gradients must return the loss, got {described(loss)}")
    return float(np.sum(values, dtype=np.float64))


def _joined(arrays: Iterator[NdArray]) -> Vector:
    return np.concatenate([np.asarray(array.get_data("r"), np.float64).ravel() for array in arrays])


def _values(slots: Sequence[Slot]) -> Vector:
    return _joined(slot.member.param for slot in slots)


def _gradients_of(slots: Sequence[Slot]) -> Vector:
    return _joined(slot.member.grad for slot in slots)


def _write(slots: Sequence[Slot], vector: Vector) -> None:
    _divide(vector, [slot.member.param for slot in slots])


def _divide(vector: Vector, arrays: Sequence[NdArray]) -> None:
    """Write the parts of a vector to arrays, in their order."""
    start = 0
    for array in arrays:
        array.copy_from(NdArray.from_numpy_array(vector[start : start + array.size].reshape(array.shape).astype(array.dtype)))
        start += array.size
