"""What all solvers have in common: which parameters they change, their states, and the care of gradients."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from nn_core.array import NdArray
from nn_core.context import get_current_context
from nn_core.errors import ArgumentError, FileFormatError, ShapeError
from nn_core.files import Entry, extension_of, read_entries, write_entries
from nn_core.solvers.hooks import Hook, active_hooks
from nn_core.solvers.update import BoundUpdate, Member, Rule, number_array, places_of
from nn_core.typing import Array, Namespace
from nn_core.variable import Variable


class SolverState:
    """What a solver remembers of one parameter.

    Attributes:
        pstate: Arrays by name, such as the moving means of Adam; they share memory with the solver's.
        t: Number of updates so far.
    """

    def __init__(self, pstate: dict[str, Variable], t: int) -> None:
        self.pstate = pstate
        self.t = t

    def __repr__(self) -> str:
        return f"SolverState(t={self.t}, pstate={self.pstate})"


class _Slot:
    """One parameter of a solver, with its states and its number of updates."""

    __slots__ = ("member", "t")

    def __init__(self, variable: Variable, states: Sequence[NdArray], t: int = 0) -> None:
        self.member = Member(variable, states)
        self.t = t

    @property
    def variable(self) -> Variable:
        """The parameter."""
        return self.member.variable


class _Group:
    """Parameters that are updated together, because they have taken the same number of updates."""

    __slots__ = ("hyper", "slots", "update")

    def __init__(self, slots: list[_Slot], hyper: Array, update: BoundUpdate) -> None:
        self.slots = slots
        self.hyper = hyper
        self.update = update


class Solver:
    """Base class of solvers.

    A solver is a subclass that names its numbers and states and defines `step`::

        class SignSgd(Solver):
            hyper_names = ("lr",)

            def __init__(self, lr=0.01):
                super().__init__(lr)

            @staticmethod
            def step(xp, w, g, states, hyper):
                lr, t = hyper
                w -= lr * xp.sign(g)

    A solver computes in the context in which it was made, in float32 or float64: parameters that functions read as
    half keep a float32 original here. A parameter whose gradient is zero because of ``zero_grad()`` and has not been
    written since is passed over, and its `t` does not move.

    Attributes:
        hyper_names: The numbers given to ``__init__``, learning rate first.
        state_names: Arrays kept for each parameter, of its shape, zero at first.
        decay_name: The number that ``weight_decay(rate)`` sets for the next update; None: it changes the gradients.
            A name that is not among `hyper_names` stands for a further number that is 0 otherwise.
        keeps_initial_rate: `step` gets the learning rate that the solver was made with.
    """

    hyper_names: ClassVar[tuple[str, ...]] = ()
    state_names: tuple[str, ...] = ()
    decay_name: str | None = None
    keeps_initial_rate: ClassVar[bool] = False

    def __init__(self, *hyper: float) -> None:
        self._types = [type(value) for value in hyper]
        numbers = [_checked_number(type(self).__name__, n, v) for n, v in zip(self.hyper_names, hyper, strict=True)]
        names = list(self.hyper_names)
        if self.decay_name is not None and self.decay_name not in names:
            names.append(self.decay_name)
            numbers.append(0.0)
        if self.keeps_initial_rate:
            names.append(f"initial {names[0]}")
            numbers.append(numbers[0])
        self._names = names
        self._numbers = numbers
        self._places = places_of(get_current_context())
        self._slots: dict[str, _Slot] = {}
        self._groups: list[_Group] = []
        self._skipped: list[_Slot] = []
        self._grad_updates: dict[str, tuple[list[_Slot], Array, BoundUpdate]] = {}
        self._usual_decay: float | None = None

    @staticmethod
    def step(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
        """Change the raw arrays of one parameter in place.

        Args:
            xp: Array namespace of all arrays.
            w: The parameter.
            g: Its gradient; not to be changed.
            states: The arrays of `state_names`.
            hyper: The numbers of `hyper_names`; the decay if it has a name of its own; the initial learning rate if
                `keeps_initial_rate`; and t, which is 1 at the first update.
        """
        raise NotImplementedError("a solver must define step(xp, w, g, states, hyper)")

    # -- parameters ------------------------------------------------------------------------------------------------

    def set_parameters(
        self, param_dict: Mapping[str, Variable], reset: bool = True, retain_state: bool = False
    ) -> None:
        """Choose the parameters to change.

        Args:
            param_dict: Variables by name, as ``nn_core.get_parameters()`` gives them.
            reset: Forget all parameters that were set before. If False, those under other names stay.
            retain_state: Without `reset`, a name that is known keeps its states and its number of updates.

        Raises:
            ArgumentError: when a value is not a Variable.
            ShapeError: when states are to be kept for a parameter of another shape.
        """
        for key, variable in param_dict.items():
            if not isinstance(variable, Variable):
                raise ArgumentError(f"set_parameters: {key} must be a Variable, got {type(variable).__name__}")
        slots = {} if reset else dict(self._slots)
        changed = reset or len(slots) != len(self._slots)
        for key, variable in param_dict.items():
            old = slots.get(key)
            if old is None or not retain_state:
                slots[key] = self._new_slot(variable)
                changed = True
            elif old.variable.cell is not variable.cell:
                if old.variable.shape != variable.shape:
                    raise ShapeError(
                        f"set_parameters: {key} must keep its shape to keep its states, "
                        f"got {variable.shape} for {old.variable.shape}"
                    )
                slots[key] = _Slot(variable, old.member.states, old.t)
                changed = True
        self._slots = slots
        if changed:
            self._unbind()

    def get_parameters(self) -> dict[str, Variable]:
        """The parameters by name."""
        return {key: slot.variable for key, slot in self._slots.items()}

    def remove_parameters(self, keys: Iterable[str]) -> None:
        """Forget the parameters called `keys`; names that are not known are passed over."""
        for key in keys:
            self._slots.pop(key, None)
        self._unbind()

    def clear_parameters(self) -> None:
        """Forget all parameters."""
        self._slots = {}
        self._unbind()

    # -- numbers ---------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Name of the method."""
        return type(self).__name__

    @property
    def info(self) -> dict[str, Any]:
        """The numbers by name."""
        given = zip(self.hyper_names, self._types, self._numbers, strict=False)
        return {name: kind(number) for name, kind, number in given}

    def learning_rate(self) -> float:
        """The learning rate."""
        return self._numbers[0]

    def set_learning_rate(self, learning_rate: float) -> None:
        """Change the learning rate of the following updates."""
        self._set_number(0, _checked_number("set_learning_rate", "learning_rate", learning_rate))

    # -- one training step -----------------------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Set all gradients to zero, lazily: the next backward pass writes them instead of adding."""
        for slot in self._slots.values():
            slot.member.grad.zero()

    def update(self, update_pre_hook: Hook | None = None, update_post_hook: Hook | None = None) -> None:
        """Change all parameters by one step.

        Args:
            update_pre_hook: Called without arguments before each parameter.
            update_post_hook: Called without arguments after each parameter.
        """
        hooks = active_hooks(update_pre_hook, update_post_hook)
        if hooks is not None:
            self._update_observed(*hooks)
        else:
            if not self._is_bound():
                self._bind(list(self._by_t().values()))
            self._run_groups()
        if self._usual_decay is not None and self.decay_name is not None:
            self._set_number(self._names.index(self.decay_name), self._usual_decay)
            self._usual_decay = None

    def weight_decay(self, decay_rate: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Add `decay_rate` times the parameter to each gradient, or let the next update decay the parameters itself.

        Args:
            decay_rate: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        rate = _checked_number("weight_decay", "decay_rate", decay_rate)
        if self.decay_name is None:
            self._change_grads(_WEIGHT_DECAY, rate, pre_hook, post_hook)
            return
        index = self._names.index(self.decay_name)
        if self._usual_decay is None:
            self._usual_decay = self._numbers[index]
        self._set_number(index, rate)

    def weight_decay_is_fused(self) -> bool:
        """Whether ``weight_decay()`` is left to the next ``update()``."""
        return self.decay_name is not None

    def clip_grad_by_norm(self, clip_norm: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Scale each gradient whose Euclidean norm is above `clip_norm` down to it.

        Args:
            clip_norm: The largest norm of the gradient of one parameter.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        norm = _checked_number("clip_grad_by_norm", "clip_norm", clip_norm)
        self._change_grads(_CLIP_GRAD_BY_NORM, norm, pre_hook, post_hook)

    def scale_grad(self, scale: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Multiply each gradient by `scale`.

        Args:
            scale: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        self._change_grads(_SCALE_GRAD, _checked_number("scale_grad", "scale", scale), pre_hook, post_hook)

    def check_inf_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has an infinite element."""
        return self._any_grad(lambda xp, g: xp.isinf(g).any(), pre_hook, post_hook)

    def check_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has an element that is not a number."""
        return self._any_grad(lambda xp, g: xp.isnan(g).any(), pre_hook, post_hook)

    def check_inf_or_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has an element that is infinite or not a number."""
        return self._any_grad(lambda xp, g: ~xp.isfinite(g).all(), pre_hook, post_hook)

    # -- states ----------------------------------------------------------------------------------------------------

    def get_states(self) -> dict[str, SolverState]:
        """The states by name of the parameter."""
        return {
            key: SolverState(
                {name: _as_variable(a) for name, a in zip(self.state_names, slot.member.states, strict=True)}, slot.t
            )
            for key, slot in self._slots.items()
        }

    def set_states(self, states: Mapping[str, SolverState]) -> None:
        """Take over the values of `states`; parameters that it does not name keep theirs.

        Raises:
            ArgumentError: when a parameter is not known, or the names of its states are not this solver's.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in either case.
        """
        for key, state in states.items():
            self._require_fitting("set_states", key, {name: v.shape for name, v in state.pstate.items()})
        for key, state in states.items():
            slot = self._slots[key]
            for name, array in zip(self.state_names, slot.member.states, strict=True):
                array.copy_from(state.pstate[name].data)
            slot.t = int(state.t)
        self._unbind()

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Write the states to a file, which takes the place of an older one only when it is complete.

        Args:
            path: Path that ends in .h5, .npz or .safetensors.

        Raises:
            ArgumentError: when the extension is another one.
        """
        extension = extension_of("save_states", path, None)
        entries: dict[str, Entry] = {}
        for position, (key, slot) in enumerate(self._slots.items()):
            group = {"index": position}
            for index, (name, array) in enumerate(zip(self.state_names, slot.member.states, strict=True)):
                entries[f"{key}/{name}"] = Entry(array.get_data("r"), {"index": index}, group)
            entries[f"{key}/t"] = Entry(number_array([slot.t]).astype("int64").reshape(()), {}, group)
        write_entries(path, entries, extension)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Read states that ``save_states()`` wrote; set the parameters first.

        Raises:
            FileFormatError: when the file is damaged, or is not one of states.
            ArgumentError: when it has states of a parameter that is not known, or of another method.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in any of these cases.
        """
        extension = extension_of("load_states", path, None)
        arrays: dict[str, dict[str, Array]] = {}
        for name, entry in read_entries(path, extension).items():
            key, _, state_name = name.rpartition("/")
            arrays.setdefault(key, {})[state_name] = entry.values
        states: dict[str, SolverState] = {}
        for key, values in arrays.items():
            t = values.pop("t", None)
            if t is None or t.size != 1 or t < 0:
                what = key or "an array"
                raise FileFormatError(f"{os.fspath(path)}: {what} must have a number of updates t, got {t}")
            self._require_fitting(f"load_states: {os.fspath(path)}", key, {n: v.shape for n, v in values.items()})
            states[key] = SolverState({n: Variable.from_numpy_array(v) for n, v in values.items()}, int(t.reshape(())))
        self.set_states(states)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.info.items())
        return f"{self.name}({numbers})"

    # -- inside ----------------------------------------------------------------------------------------------------

    def _new_slot(self, variable: Variable) -> _Slot:
        states = []
        for _ in self.state_names:
            array = NdArray(variable.shape)
            array.zero()
            states.append(array)
        return _Slot(variable, states)

    def _require_fitting(self, function: str, key: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
        slot = self._slots.get(key)
        if slot is None:
            known = ", ".join(self._slots) or "none"
            raise ArgumentError(f"{function}: a parameter must be set before its states, got {key} (set: {known})")
        if set(shapes) != set(self.state_names):
            raise ArgumentError(
                f"{function}: the states of {self.name} must be {', '.join(self.state_names) or 'none'}, "
                f"got {', '.join(sorted(shapes)) or 'none'} for {key}"
            )
        for name, shape in shapes.items():
            if tuple(shape) != slot.variable.shape:
                expected = slot.variable.shape
                raise ShapeError(
                    f"{function}: state {name} must have the shape of {key}, got {tuple(shape)} for {expected}"
                )

    def _set_number(self, index: int, value: float) -> None:
        self._numbers[index] = value
        for group in self._groups:
            group.hyper[index] = value

    def _unbind(self) -> None:
        self._groups = []
        self._skipped = []
        self._grad_updates = {}

    def _is_bound(self) -> bool:
        if not self._groups and not self._skipped:
            return False
        for group in self._groups:
            if not group.update.is_current():
                return False
        return all(slot.member.grad.zeroing for slot in self._skipped)

    def _active(self) -> list[_Slot]:
        """The parameters whose gradient may differ from zero."""
        return [slot for slot in self._slots.values() if not slot.member.grad.zeroing]

    def _by_t(self) -> dict[int, list[_Slot]]:
        groups: dict[int, list[_Slot]] = {}
        for slot in self._active():
            groups.setdefault(slot.t, []).append(slot)
        return groups

    def _bind(self, groups: Sequence[list[_Slot]]) -> None:
        rule = Rule(self.name, self.step)
        self._groups = []
        self._skipped = [slot for slot in self._slots.values() if slot.member.grad.zeroing]
        for slots in groups:
            hyper = number_array([*self._numbers, 0.0])
            update = BoundUpdate(rule, [slot.member for slot in slots], hyper, self._places)
            self._groups.append(_Group(slots, hyper, update))

    def _run_groups(self) -> None:
        for group in self._groups:
            t = group.slots[0].t + 1
            group.hyper[-1] = t
            group.update.run()
            for slot in group.slots:
                slot.t = t

    def _update_observed(self, before: Sequence[Hook], after: Sequence[Hook]) -> None:
        for slot in self._active():
            for hook in before:
                hook()
            self._bind([[slot]])
            self._run_groups()
            for hook in after:
                hook()
        self._unbind()

    def _change_grads(self, rule: Rule, number: float, pre: Hook | None, post: Hook | None) -> None:
        hooks = active_hooks(pre, post)
        slots = self._active()
        if not slots:
            return
        if hooks is None:
            known = self._grad_updates.get(rule.name)
            if known is None or known[0] != slots or not known[2].is_current():
                hyper = number_array([number])
                known = (slots, hyper, BoundUpdate(rule, [slot.member for slot in slots], hyper, self._places))
                self._grad_updates[rule.name] = known
            known[1][0] = number
            known[2].run()
            return
        for slot in slots:
            for hook in hooks[0]:
                hook()
            BoundUpdate(rule, [slot.member], number_array([number]), self._places).run()
            for hook in hooks[1]:
                hook()

    def _any_grad(self, check: Any, pre: Hook | None, post: Hook | None) -> bool:
        before, after = active_hooks(pre, post) or ([], [])
        place = self._places[0]
        xp = place.backend.namespace()
        found = False
        for slot in self._active():
            for hook in before:
                hook()
            grad = slot.member.grad
            found = bool(check(xp, grad.read(place.space, grad.dtype.name))) or found
            for hook in after:
                hook()
        return found


def _decay_grad(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    g += hyper[0] * w


def _scale_grad(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    g *= hyper[0]


def _clip_grad(xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]) -> None:
    norm = float(xp.sqrt(xp.sum(xp.square(g), dtype=xp.float64)))
    if norm > hyper[0]:
        g *= hyper[0] / norm


_WEIGHT_DECAY = Rule("WeightDecay", _decay_grad, changes_grads=True)
_SCALE_GRAD = Rule("ScaleGrad", _scale_grad, changes_grads=True)
_CLIP_GRAD_BY_NORM = Rule("ClipGradByNorm", _clip_grad, changes_grads=True)


def _as_variable(array: NdArray) -> Variable:
    variable = Variable(array.shape, need_grad=False)
    variable.data = array
    return variable


def _checked_number(function: str, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{function}: {name} must be a number, got {value!r}") from error
