"""Decay, scaling and clipping of gradients before an update, and the search for NaN and infinity."""

import functools
import math
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

import numpy as np

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import GRAPH_VERSION, SyncedArray, ready, zero_all
from nn_core.errors import GraphError
from nn_core.solvers.groups import Frozen, active, all_unwritten, divided
from nn_core.solvers.hooks import Hook, active_hooks
from nn_core.solvers.states import Slot
from nn_core.solvers.update import BoundUpdate, ComputeTarget, Member, Rule, Verdict
from nn_core.typing import Array, Namespace, extra

#: ``check(xp, grad)`` is an array without axes that is true or false.
Check: TypeAlias = Callable[[Namespace, Array], Any]


def _decay(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    g += hyper[0] * w


def _scale(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    g *= hyper[0]


def _clip(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    norm = float(xp.sqrt(xp.sum(xp.square(g), dtype=xp.float64)))
    # squares of large numbers overflow
    if math.isinf(norm) and math.isfinite(largest := float(xp.max(xp.abs(g)))):
        norm = largest * float(xp.sqrt(xp.sum(xp.square(g / largest), dtype=xp.float64)))
    if norm > hyper[0]:
        g *= hyper[0] / norm


def not_finite(xp: Namespace, grad: Array) -> Any:
    """Return whether an element is NaN or infinite."""
    return ~xp.isfinite(grad).all()


def _by_kernels_alone(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    raise NotImplementedError("Rescale needs all gradients at once")


WEIGHT_DECAY: Final = Rule("WeightDecay", _decay, changes_grads=True)
SCALE_GRAD: Final = Rule("ScaleGrad", _scale, changes_grads=True)
CLIP_GRAD_BY_NORM: Final = Rule("ClipGradByNorm", _clip, changes_grads=True)
RESCALE: Final = Rule("Rescale", _by_kernels_alone, changes_grads=True)


class _Known:
    """A rule bound to the gradients of some parameters; those of `skipped` hold nothing."""

    __slots__ = ("frozen", "hyper", "skipped", "update")

    def __init__(self, rule: Rule, given: Collection[Slot], targets: Sequence[ComputeTarget]) -> None:
        slots, self.skipped = divided(given)
        self.frozen = Frozen(given)
        self.hyper = np.zeros(2, np.float64)
        # A change of gradients sees no states.
        members = [Member(slot.variable, ()) for slot in slots]
        self.update = BoundUpdate(rule, members, self.hyper, targets)

    def is_current(self) -> bool:
        """Return whether the same gradients as before are to be changed, in the memory that was bound."""
        return self.frozen.is_current() and self.update.is_current() and all_unwritten(self.skipped)

    def run(self, *numbers: float) -> None:
        self.hyper[: len(numbers)] = numbers
        self.update.run()


class Gradients:
    """Changes and checks of the gradients of a solver's parameters; those that hold nothing are passed over."""

    def __init__(self, targets: Sequence[ComputeTarget]) -> None:
        self.targets = targets
        self._known: dict[str, _Known] = {}
        self._by_decay: dict[float, list[Slot]] | None = None
        self._whole: list[SyncedArray] = []
        self._views: list[NdArray] = []
        self._zeroed_version: int | None = None

    def zero(self, slots: Collection[Slot]) -> None:
        """Set all gradients to zero, lazily."""
        # Whoever gives a parameter another gradient, or a gradient other memory, counts the version up.
        if self._zeroed_version != GRAPH_VERSION.value:
            self._zeroed_version = GRAPH_VERSION.value
            grads = [slot.member.grad for slot in slots]
            self._whole = [grad.synced for grad in grads if grad._window is None]
            self._views = [grad for grad in grads if grad._window is not None]
        zero_all(self._whole)
        for view in self._views:
            view.fill(0.0)

    def change(
        self, rule: Rule, number: float, slots: Collection[Slot], pre: Hook | None = None, post: Hook | None = None
    ) -> None:
        """Apply `rule` with its one number, which is multiplied by those of groups if it is the rate of weight decay."""
        hooks = active_hooks(pre, post)
        if hooks is not None:
            self._change_observed(rule, number, slots, *hooks)
        elif rule is not WEIGHT_DECAY:
            self._change_all(rule.name, rule, number, slots)
        else:
            for factor, alike in self._grouped_by_decay(slots).items():
                if factor:
                    self._change_all(f"{rule.name} {factor}", rule, number * factor, alike)

    def _grouped_by_decay(self, slots: Collection[Slot]) -> dict[float, list[Slot]]:
        if self._by_decay is None:
            self._by_decay = {}
            for slot in slots:
                self._by_decay.setdefault(slot.settings.decay, []).append(slot)
        return self._by_decay

    def _change_observed(
        self, rule: Rule, number: float, slots: Collection[Slot], before: Sequence[Hook], after: Sequence[Hook]
    ) -> None:
        for slot in active(slots):
            for hook in before:
                hook()
            _Known(rule, [slot], self.targets).run(number * (slot.settings.decay if rule is WEIGHT_DECAY else 1.0))
            for hook in after:
                hook()

    def _change_all(self, key: str, rule: Rule, number: float, slots: Collection[Slot]) -> None:
        """Apply `rule`, bound under `key`, with one number for all of `slots`."""
        known = self._known.get(key)
        if known is None or not known.is_current():
            if not active(slots):
                return
            known = self._known[key] = _Known(rule, slots, self.targets)
        known.run(number)

    def verdict(self, slots: Collection[Slot]) -> Verdict | None:
        """Return the place where `rescale` leaves the norm; None without a kernel that rescales all gradients at once."""
        if not any(RESCALE.name in extra(target.backend, "updates") for target in self.targets):
            return None
        known = self._known.get(RESCALE.name)
        if known is None or not known.is_current():
            if not active(slots):
                return None
            known = self._known[RESCALE.name] = _Known(RESCALE, slots, self.targets)
        return known.update.verdict

    def rescale(self, factor: float, limit: float) -> None:
        """Multiply the gradients of the last `verdict` by `factor`, and clip their common norm to `limit`, unless infinite."""
        self._known[RESCALE.name].run(factor, limit)

    def any(self, check: Check, slots: Collection[Slot], pre: Hook | None = None, post: Hook | None = None) -> bool:
        """Return whether `check` is true of any gradient."""
        before, after = active_hooks(pre, post) or ([], [])
        target = self.targets[0]
        xp = target.backend.namespace()
        found: list[Any] = []
        for slot in active(slots):
            for hook in before:
                hook()
            grad = slot.member.grad
            values = grad.read(target.space, grad.dtype.name)
            ready(target.space)
            found.append(check(xp, values))
            for hook in after:
                hook()
        # the answers are joined on the device, and the host waits once for all of them
        return bool(functools.reduce(operator.or_, found)) if found else False

    def require_finite(self, function: str, slots: Mapping[str, Slot]) -> None:
        """Raise a GraphError that names the parameters whose gradients have NaN or infinity, if there are any."""
        if not self.any(not_finite, slots.values()):
            return
        raise non_finite_gradients(function, [name for name, slot in slots.items() if self.any(not_finite, [slot])])

    def norm(self, slots: Collection[Slot]) -> float:
        """Return the Euclidean norm of all gradients together: sums in float64 on the device, read once."""
        return norm_of(self, slots)

    def squared_norms(self, slots: Collection[Slot]) -> list[Any]:
        """Return the sum of squares of each gradient, in float64 on the device: nothing waits for it."""
        return self.squares([slot.member.grad for slot in active(slots)])

    def squares(self, arrays: Sequence[NdArray]) -> list[Any]:
        """Return the sum of squares of each array, in float64 on the device."""
        target = self.targets[0]
        xp = target.backend.namespace()
        grads = [array.read(target.space, array.dtype.name) for array in arrays]
        ready(target.space)
        with np.errstate(over="ignore"):  # infinity is an answer, of which callers take note
            return [xp.sum(xp.square(grad), dtype=xp.float64) for grad in grads]

    def largest(self, slots: Collection[Slot]) -> float:
        """Return the largest magnitude of an element of any gradient."""
        target = self.targets[0]
        xp = target.backend.namespace()
        grads = [slot.member.grad.read(target.space, slot.member.grad.dtype.name) for slot in active(slots)]
        ready(target.space)
        return max((float(xp.max(xp.abs(grad))) for grad in grads if grad.size), default=0.0)

    def forget(self) -> None:
        """Bind anew: the parameters have changed."""
        self._known.clear()
        self._by_decay = None
        self._zeroed_version = None


class _Norms(Protocol):
    """Parts of the norm of all gradients together."""

    def squared_norms(self, slots: Collection[Slot]) -> list[Any]: ...

    def largest(self, slots: Collection[Slot]) -> float: ...

    def change(self, rule: Rule, number: float, slots: Collection[Slot]) -> None: ...


def norm_of(gradients: _Norms, slots: Collection[Slot]) -> float:
    """Return the Euclidean norm of all gradients together, which overflows only where it is infinite."""
    total = float(sum(gradients.squared_norms(slots), start=0.0))
    if math.isinf(total) and math.isfinite(largest := gradients.largest(slots)):
        gradients.change(SCALE_GRAD, 1.0 / largest, slots)  # squares of large numbers overflow
        norm = largest * math.sqrt(sum(gradients.squared_norms(slots), start=0.0))
        gradients.change(SCALE_GRAD, largest, slots)
        return norm
    return math.sqrt(total) if total >= 0.0 else total


def non_finite_gradients(function: str, names: Sequence[str]) -> GraphError:
    """Return the error about gradients with NaN or infinity."""
    return GraphError(
        f"{function}: all gradients must be finite, got NaN or infinity in those of {', '.join(names)}\n"
        "  hint: lower the learning rate, or scale the loss (nn_core.training.LossScale)"
    )
