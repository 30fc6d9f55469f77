"""The base class of solvers: which parameters they change, their numbers, and the steps of training."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from nn_core.context import get_current_context
from nn_core.errors import ArgumentError, ShapeError
from nn_core.solvers.gradients import CLIP_GRAD_BY_NORM, SCALE_GRAD, WEIGHT_DECAY, Gradients
from nn_core.solvers.groups import Groups
from nn_core.solvers.hooks import Hook, active_hooks
from nn_core.solvers.states import Slot, SolverState, States, new_slot
from nn_core.solvers.update import Rule, places_of
from nn_core.typing import Array, Namespace
from nn_core.variable import Variable


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
        names = list(self.hyper_names)
        numbers = [_checked_number(type(self).__name__, n, v) for n, v in zip(names, hyper, strict=True)]
        if self.decay_name is not None and self.decay_name not in names:
            names.append(self.decay_name)
            numbers.append(0.0)
        if self.keeps_initial_rate:
            numbers.append(numbers[0])
        places = places_of(get_current_context())
        self._types = [type(value) for value in hyper]
        self._numbers = numbers
        self._decay_index = None if self.decay_name is None else names.index(self.decay_name)
        self._usual_decay: float | None = None
        self._slots: dict[str, Slot] = {}
        self._groups = Groups(Rule(self.name, self.step), places, numbers)
        self._gradients = Gradients(places)

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
        slots = {} if reset else dict(self._slots)
        changed = reset
        for key, variable in param_dict.items():
            if not isinstance(variable, Variable):
                raise ArgumentError(f"set_parameters: {key} must be a Variable, got {type(variable).__name__}")
            old = slots.get(key)
            if old is None or not retain_state:
                slots[key] = new_slot(variable, len(self.state_names))
                changed = True
            elif old.variable.cell is not variable.cell:
                if old.variable.shape != variable.shape:
                    shapes = f"{variable.shape} for {old.variable.shape}"
                    raise ShapeError(f"set_parameters: {key} must keep its shape to keep its states, got {shapes}")
                slots[key] = Slot(variable, old.member.states, old.t)
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
        self._groups.set_number(0, _checked_number("set_learning_rate", "learning_rate", learning_rate))

    # -- one training step -----------------------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Set all gradients to zero, lazily: the next backward pass writes them instead of adding."""
        self._gradients.zero(self._slots.values())

    def update(self, update_pre_hook: Hook | None = None, update_post_hook: Hook | None = None) -> None:
        """Change all parameters by one step.

        Args:
            update_pre_hook: Called without arguments before each parameter.
            update_post_hook: Called without arguments after each parameter.
        """
        hooks = active_hooks(update_pre_hook, update_post_hook)
        if hooks is None:
            self._groups.run(self._slots.values())
        else:
            self._groups.run_observed(self._slots.values(), *hooks)
        if self._usual_decay is not None and self._decay_index is not None:
            self._groups.set_number(self._decay_index, self._usual_decay)
            self._usual_decay = None

    def weight_decay(self, decay_rate: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Add `decay_rate` times the parameter to each gradient, or let the next update decay the parameters itself.

        Args:
            decay_rate: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        rate = _checked_number("weight_decay", "decay_rate", decay_rate)
        if self._decay_index is None:
            self._gradients.change(WEIGHT_DECAY, rate, self._slots.values(), pre_hook, post_hook)
            return
        if self._usual_decay is None:
            self._usual_decay = self._numbers[self._decay_index]
        self._groups.set_number(self._decay_index, rate)

    def weight_decay_is_fused(self) -> bool:
        """Whether ``weight_decay()`` is left to the next ``update()``."""
        return self._decay_index is not None

    def clip_grad_by_norm(self, clip_norm: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Scale each gradient whose Euclidean norm is above `clip_norm` down to it.

        Args:
            clip_norm: The largest norm of the gradient of one parameter.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        norm = _checked_number("clip_grad_by_norm", "clip_norm", clip_norm)
        self._gradients.change(CLIP_GRAD_BY_NORM, norm, self._slots.values(), pre_hook, post_hook)

    def scale_grad(self, scale: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Multiply each gradient by `scale`.

        Args:
            scale: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        factor = _checked_number("scale_grad", "scale", scale)
        self._gradients.change(SCALE_GRAD, factor, self._slots.values(), pre_hook, post_hook)

    def check_inf_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has an infinite element; the hooks are called before and after each parameter."""
        return self._gradients.any(lambda xp, g: xp.isinf(g).any(), self._slots.values(), pre_hook, post_hook)

    def check_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has a NaN; the hooks are called before and after each parameter."""
        return self._gradients.any(lambda xp, g: xp.isnan(g).any(), self._slots.values(), pre_hook, post_hook)

    def check_inf_or_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Whether any gradient has an element that is infinite or NaN; hooks as in the other checks."""
        return self._gradients.any(lambda xp, g: ~xp.isfinite(g).all(), self._slots.values(), pre_hook, post_hook)

    # -- states ----------------------------------------------------------------------------------------------------

    def get_states(self) -> dict[str, SolverState]:
        """The states by name of the parameter; the arrays share memory with the solver's."""
        return self._states().get()

    def set_states(self, states: Mapping[str, SolverState]) -> None:
        """Take over the values of `states`; parameters that it does not name keep theirs.

        Raises:
            ArgumentError: when a parameter is not known, or the names of its states are not this solver's.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in either case.
        """
        self._states().set(states)
        self._unbind()

    def save_states(self, path: str | os.PathLike[str]) -> None:
        """Write the states to a file, which takes the place of an older one only when it is complete.

        Args:
            path: Path that ends in .h5, .npz or .safetensors.

        Raises:
            ArgumentError: when the extension is another one.
        """
        self._states().save(path)

    def load_states(self, path: str | os.PathLike[str]) -> None:
        """Read states that ``save_states()`` wrote; set the parameters first.

        Raises:
            FileFormatError: when the file is damaged, or is not one of states.
            ArgumentError: when it has states of a parameter that is not known, or of another method.
            ShapeError: when a state has not the shape of its parameter. Nothing is changed in any of these cases.
        """
        self._states().load(path)
        self._unbind()

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.info.items())
        return f"{self.name}({numbers})"

    def _states(self) -> States:
        return States(self.name, self.state_names, self._slots)

    def _unbind(self) -> None:
        self._groups.unbind()
        self._gradients.forget()


def _checked_number(function: str, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{function}: {name} must be a number, got {value!r}") from error
