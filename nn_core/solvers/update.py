"""Change many parameters by one rule: by a backend's multi-tensor kernel if it has one, else array by array.

The work is prepared and bound to the arrays once. Running it again costs a look at each array, to see that its memory
is still the one that was bound.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, Protocol, TypeAlias

import numpy as np

from nn_core.context import Context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import GRAPH_VERSION, Key, Space
from nn_core.engine.dispatch.plugin_manager import PLUGINS, get_backend
from nn_core.engine.graph.sandboxed_kernel import is_trusted, is_write, read_only
from nn_core.errors import ArgumentError, BackendNotFoundError, BackendUnavailableError, PluginError
from nn_core.settings import disabled_optimizations, is_enabled
from nn_core.solvers.foreign_updates import guarded_update
from nn_core.typing import Array, Backend, Namespace, Refusal, Step, extra
from nn_core.variable import Variable

#: ``step(xp, param, grad, states, hyper)`` changes raw arrays in place; `hyper` are floats.
UpdateStep: TypeAlias = Callable[[Namespace, Array, Array, Sequence[Array], Sequence[float]], None]


class UpdateRunner(Protocol):
    """A prepared multi-tensor update."""

    def bind(
        self,
        params: Sequence[Array],
        grads: Sequence[Array],
        states: Sequence[Sequence[Array]],
        hyper: Array,
    ) -> Step:
        """Return a function without arguments that updates these arrays.

        ``states[k][i]`` is state k of parameter i. `hyper` is a float64 NumPy array that the solver changes between
        runs, so it is read at each run; the class of the solver documents its order. All arrays are C-contiguous.

        A runner with an attribute `guards` that is true takes one more argument, `guard`: the `array` of a `Verdict`. Its
        step changes nothing while the number in it is infinite or NaN.
        """
        ...


class Verdict(Protocol):
    """The norm of all gradients, which a step of the rule Rescale leaves on the device; its attribute `verdict`.

    Attributes:
        array: The norm as an array of the backend, for updates that depend on it.
    """

    array: Array

    def read(self) -> float:
        """Return the norm on the host, which waits for the device."""
        ...


class UpdateKernel(Protocol):
    """An update kernel of a backend: ``backend.updates[name]``, by the name of the solver's class.

    The names WeightDecay (hyper: rate), ScaleGrad (scale), ClipGradByNorm (norm) and Rescale (factor, limit) stand for
    changes of the gradients; they have no states and write `grads`, while solvers write `params` and `states`. Rescale
    multiplies all gradients by the factor, and by limit / norm where their common norm is then above the limit, unless
    the norm is not finite; its step has a `Verdict`.
    """

    def prepare(self, sizes: Sequence[int], dtype: str) -> UpdateRunner | Refusal:
        """Prepare the update of parameters with these numbers of elements."""
        ...


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to change parameters, or (`changes_grads`) their gradients; `name` finds a backend's kernel for it.

    `reads_t`: whether the last of its numbers counts, which is how often the parameter was updated.
    """

    name: str
    step: UpdateStep
    changes_grads: bool = False
    reads_t: bool = True


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """The backend, memory space and dtype in which a solver computes."""

    backend: Backend
    space: Space
    dtype: str


class Member:
    """One parameter and the states that a solver keeps for it."""

    __slots__ = ("states", "variable")

    def __init__(self, variable: Variable, states: Sequence[NdArray]) -> None:
        self.variable = variable
        self.states = tuple(states)

    @property
    def param(self) -> NdArray:
        """The values."""
        return self.variable.storage.data

    @property
    def grad(self) -> NdArray:
        """The gradient."""
        return self.variable.storage.grad


def targets_of(context: Context) -> tuple[ComputeTarget, ...]:
    """Return the backends of `context` that can be used here, in order; parameters never have less than float32."""
    targets: list[ComputeTarget] = []
    first_error: Exception | None = None
    for name, dtype in context.entries:
        try:
            backend = get_backend(name)
        except (BackendNotFoundError, BackendUnavailableError, PluginError) as error:
            first_error = first_error or error
            continue
        wide = "float64" if dtype == "float64" else "float32"
        targets.append(ComputeTarget(backend, space_of(backend, context.device_id), wide))
    if not targets and first_error is not None:
        raise first_error
    return tuple(targets)


_NEVER: Final = object()


class BoundUpdate:
    """One rule bound to the arrays of some parameters.

    Args:
        rule: The update rule.
        members: The parameters.
        hyper: The numbers of the rule, read at each run.
        targets: Where to compute; the first one that has a kernel for the rule is taken, else the first one.
        guard: Change nothing while the number in this array of a `Verdict` is not finite, if `is_guarded`.

    Attributes:
        is_guarded: Whether the kernel respects the guard.
        verdict: What the step found out about the gradients, if it is that of the rule Rescale by a kernel.
    """

    __slots__ = (
        "_disabled", "_guards", "_key", "_refreshed", "_step", "_storages", "_use", "_version", "_written", "is_guarded",
        "synced", "verdict",
    )  # fmt: skip

    def __init__(
        self, rule: Rule, members: Sequence[Member], hyper: Array, targets: Sequence[ComputeTarget], guard: Array | None = None
    ) -> None:
        target, runner = _prepared(rule, members, targets)
        self._key: Key = (target.space, target.dtype)
        self._use = target.space.use
        changed, read_only = _roles(rule, members)
        for array in changed:
            array.readwrite(*self._key)
        for array in read_only:
            array.synced.make_contiguous(self._key)
        self._written = [array.synced for array in changed]
        self._refreshed = [array.synced for array in read_only if array.synced.latest != self._key]
        for synced in self._refreshed:
            synced.valid.discard(self._key)
        self._storages = [(member.variable, member.param, member.grad) for member in members]
        self._use()
        own_guard = guard if getattr(runner, "guards", False) else None
        self.is_guarded = own_guard is not None
        self._step = _bound_step(rule, members, hyper, target, runner, own_guard)
        self.verdict: Verdict | None = getattr(self._step, "verdict", None)
        self.synced = [array.synced for array in (*changed, *read_only)]
        for synced in self.synced:  # whoever gives one other memory counts GRAPH_VERSION up
            synced.bound = True
        self._guards = [(synced, synced.latest, synced.copies[self._key]) for synced in self.synced]
        self._disabled = disabled_optimizations()
        self._version = GRAPH_VERSION.value

    def is_current(self) -> bool:  # noqa: C901  # every update, for each parameter
        """Return whether the arrays are still in the memory that they had when they were bound."""
        for synced in self.synced:
            if synced.pending_fill is not None:
                return False
        if self._version == GRAPH_VERSION.value:
            return True
        if self._disabled != disabled_optimizations():
            return False
        for variable, param, grad in self._storages:
            storage = variable.storage
            if storage.data is not param or storage.grad is not grad:
                return False
        for synced, latest, array in self._guards:
            if synced.latest != latest or synced.copies.get(self._key) is not array:
                return False
        self._version = GRAPH_VERSION.value
        return True

    def run(self, count: Iterable[object] = ()) -> None:
        """Change the parameters; only while `is_current()`. What `count` does belongs to the change."""
        for synced in self._refreshed:
            synced.valid.discard(self._key)
            synced.read(self._key)
        for synced in self._written:  # before the step: an interrupt must not leave copies that pass for valid
            synced.modifications += 1
            if len(synced.valid) != 1:
                synced.valid = {self._key}
        self._use()
        # the step returns None, so it is made once; one call for both, so that Ctrl-C comes before or after them
        deque(chain(islice(iter(self._step, _NEVER), 1), count), maxlen=0)


def _roles(rule: Rule, members: Sequence[Member]) -> tuple[list[NdArray], list[NdArray]]:
    """Return the arrays that a rule changes, and those that it only reads."""
    params, grads = [member.param for member in members], [member.grad for member in members]
    states = [state for member in members for state in member.states]
    return ([*grads, *states], params) if rule.changes_grads else ([*params, *states], grads)


def _bound_step(
    rule: Rule,
    members: Sequence[Member],
    hyper: Array,
    target: ComputeTarget,
    runner: UpdateRunner | None,
    guard: Array | None,
) -> Step:
    """Return the kernel of the backend on all arrays at once, or the rule on one parameter after the other."""
    key = target.space, target.dtype
    params = [member.param.read(*key) for member in members]
    grads = [member.grad.read(*key) for member in members]
    states = [[state.read(*key) for state in member.states] for member in members]
    if runner is None or not all(_is_contiguous(array) for array in (*params, *grads)):
        return _one_by_one(rule, target, params, grads, states, hyper)
    by_name = [list(arrays) for arrays in zip(*states, strict=True)]
    if guard is None:
        return runner.bind(params, grads, by_name, hyper)
    guarded: Callable[..., Step] = runner.bind
    return guarded(params, grads, by_name, hyper, guard=guard)


def _prepared(
    rule: Rule, members: Sequence[Member], targets: Sequence[ComputeTarget]
) -> tuple[ComputeTarget, UpdateRunner | None]:
    sizes = [member.param.size for member in members]
    for target in targets if is_enabled("multi_tensor") else ():
        kernel = _kernel_of(rule, target.backend)
        if kernel is not None:
            runner = kernel.prepare(sizes, target.dtype)
            if not isinstance(runner, Refusal):
                return target, runner
    return targets[0], None


def _kernel_of(rule: Rule, backend: Backend) -> UpdateKernel | None:
    """Return the kernel that a backend has for a rule, or that the plugin of the solver has for the backend."""
    updates: Mapping[str, UpdateKernel] = extra(backend, "updates")
    kernel, plugin = updates.get(rule.name), backend.name.partition(".")[0]
    if kernel is None:
        kernel, plugin = PLUGINS.offers.update_kernel(backend.name, rule.name)
    if kernel is None:
        return None
    guarded: UpdateKernel = guarded_update(kernel, plugin, rule.name, changes_grads=rule.changes_grads)
    return guarded


def _one_by_one(
    rule: Rule,
    target: ComputeTarget,
    params: Sequence[Array],
    grads: Sequence[Array],
    states: Sequence[Sequence[Array]],
    hyper: Array,
) -> Step:
    xp = target.backend.namespace()
    # a rule of somebody else could change the gradients, which the program may look at
    shown = grads if rule.changes_grads or is_trusted(rule.step.__module__) else [read_only(array) for array in grads]
    changed = [*(grads if rule.changes_grads else params), *chain.from_iterable(states)]

    def run() -> None:
        target.space.flush()
        numbers = hyper.tolist()
        before = [_copied(array, target) for array in changed]
        try:
            with np.errstate(all="ignore"):  # NaN and infinity are answers, as kernels give them
                for param, grad, state in zip(params, shown, states, strict=True):
                    rule.step(xp, param, grad, state, numbers)
        except BaseException as error:  # Ctrl-C too: some arrays are those of the next step, the others are not
            for array, values in zip(changed, before, strict=True):
                array[...] = values
            _explain(rule, error)
            raise

    return run


def _explain(rule: Rule, error: BaseException) -> None:
    """Raise what some exceptions of a rule mean."""
    if isinstance(error, StopIteration):  # whoever runs the step would take it for its end
        raise ArgumentError(f"{rule.name}.step: the rule must change arrays, got a StopIteration") from error
    if isinstance(error, ValueError) and is_write(error):
        raise ArgumentError(f"{rule.name}.step: the rule must not change the gradient, got: {error}") from error


def _copied(array: Array, target: ComputeTarget) -> Array:
    copy = target.space.empty(tuple(array.shape), target.dtype)
    copy[...] = array
    return copy


def _is_contiguous(array: Array) -> bool:
    flags = getattr(array, "flags", None)
    return flags is None or bool(flags.c_contiguous)
