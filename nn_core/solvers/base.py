"""The base class of solvers: which parameters they change, their numbers, and the steps of training."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from nn_core.context import get_current_context
from nn_core.engine.error_messages.overlooked import overlook
from nn_core.engine.error_messages.refusal import (
    checked_flag,
    door,
    fitted,
    fitted_methods,
    name_lack,
    refuses_rest,
    require_fit,
)
from nn_core.engine.runtime.html import table
from nn_core.errors import ArgumentError, SignatureError, UnknownAttributeError
from nn_core.logger import logger
from nn_core.solvers.gradients import CLIP_GRAD_BY_NORM, SCALE_GRAD, WEIGHT_DECAY, Gradients, not_finite
from nn_core.solvers.groups import Groups, why_nothing
from nn_core.solvers.hooks import Hook, active_hooks
from nn_core.solvers.minimizing import Loss, Scale, explained_rescaling, minimize, rescaled_update
from nn_core.solvers.numbers import (
    RATE_NAMES,
    Number,
    checked_number,
    explain_calls,
    first_rate,
    kind_of,
    shown,
    unknown_number,
)
from nn_core.solvers.parameters import ChosenParameters
from nn_core.solvers.states import Slot
from nn_core.solvers.update import ComputeTarget, Rule, targets_of
from nn_core.typing import Array, Namespace
from nn_core.variable import Variable

#: Attributes that a copy of a solver makes anew.
_BOUND: Final = frozenset({"_groups", "_gradients", "_latecomers"})


@fitted_methods("step")
class Solver(ChosenParameters):
    """Base class of solvers.

    A solver is a subclass that names its numbers and states and defines `step`.

    A solver computes in the context in which it was made, in float32 or float64: parameters that functions read as
    half keep a float32 original here.

    Two kinds of parameters are passed over, with their states and their `t`, by the update and by everything that
    changes or checks gradients: those that are frozen, by a group of parameters or as long as their ``need_grad`` is
    False, and those whose gradient nobody has written since ``zero_grad()``, or ever. An update that finds no parameters,
    or no gradient before the first one that does, is logged as one warning.

    A gradient with NaN or infinity makes its elements of the parameter NaN or infinite, and in Lars and Lamb, which take
    norms, the whole parameter; no rule leaves a parameter that looks sound and no longer moves. ``update_if_finite()`` and
    ``minimize(loss_scale=...)`` skip such a step and change nothing; clipping refuses it with `error_if_nonfinite`.

    A learning rate of 0 leaves the parameters where they are, apart from the momentum of earlier steps. Rules that follow
    a schedule by the ratio of the rate and the one given to the constructor (AdamW, SgdW, AdaBound, AMSBound) take the
    first other rate instead where that one is 0.

    The numbers are attributes: ``solver.alpha`` reads and ``solver.alpha = 0.01`` changes the one called alpha, checked
    as the constructor checks it. The solvers of nn_core have no room for other attributes; assigning one raises an
    UnknownAttributeError. Subclasses of a program's own may have attributes of any name, also of a method that they
    replace; those that name no numbers may wrap another solver, and forward what they like to it.

    A solver can be pickled and copied (``copy.deepcopy``) by value: the numbers, the parameters, their states. To keep
    it together with the module that it trains, pickle or copy both at once, as a tuple.

    Attributes:
        hyper_names: The numbers given to ``__init__``, learning rate first.
        state_names: Arrays kept for each parameter, zero at first.
        state_kinds: Their shapes, keys of `nn_core.solvers.states.STATE_KINDS`; empty: that of the parameter.
        decay_name: The number that ``weight_decay(rate)`` sets for the next update; None: it changes the gradients.
            A name that is not among `hyper_names` stands for a further number that is 0 otherwise.
        keeps_initial_rate: `step` gets the learning rate that the solver was made with, or the first other one if that was
            0; infinity as long as all were 0, so that the ratio of the two rates is 0.
        fixed_names: The numbers on which states depend, and so cannot be changed later.
        reads_t: Whether `step` reads t. If not, parameters are updated together that differ in it. True for a class that
            defines `step` and does not say.

    Raises:
        ArgumentError: when a number is not one that the rule can work with; the message names the bound.

    Example:
        >>> from nn_core.solver import Solver
        >>> class SignSgd(Solver):
        ...     hyper_names = ("lr",)
        ...
        ...     def __init__(self, lr=0.01):
        ...         super().__init__(lr)
        ...
        ...     @staticmethod
        ...     def step(xp, w, g, states, hyper):
        ...         lr, t = hyper
        ...         w -= lr * xp.sign(g)
        >>> w = nn.Variable.from_numpy_array([4.0], need_grad=True)
        >>> solver = SignSgd(0.5)
        >>> solver.set_parameters({"w": w})
        >>> loss = solver.minimize(F.sum(w * w))
        >>> w.d.tolist()
        [3.5]
    """

    hyper_names: tuple[str, ...] = ()
    state_names: tuple[str, ...] = ()
    state_kinds: tuple[str, ...] = ()
    decay_name: str | None = None
    keeps_initial_rate: bool = False
    fixed_names: tuple[str, ...] = ()
    reads_t: ClassVar[bool] = True
    #: Numbers that a class cannot have as attributes, since each of its solvers has others.
    numbers_by_name: Mapping[str, Number] = MappingProxyType({})
    _is_closed: ClassVar[bool] = True

    def __init_subclass__(cls, *, closed: bool = False, **options: Any) -> None:
        """Make the numbers attributes.

        Args:
            closed: Whether instances have no room for attributes other than those of the class.

        Raises:
            ArgumentError: when a number has the name of a method.
        """
        super().__init_subclass__(**options)
        cls._is_closed = closed
        if "step" in vars(cls):
            cls.reads_t = bool(vars(cls).get("reads_t", True))
        explain_calls(cls)
        for index, name in enumerate(cls.hyper_names):
            if hasattr(Solver, name):
                raise ArgumentError(f"{cls.__name__}: a number must not have the name of a method, got {name!r}")
            setattr(cls, name, Number(index, name, name in cls.fixed_names))

    def __init__(self, *hyper: float) -> None:
        names = list(self.hyper_names)
        if len(hyper) != len(names):
            wanted = ", ".join(names) or "no numbers; S.Sgd and its like are solvers"
            raise SignatureError(f"{type(self).__name__}: must be given {wanted}, got {len(hyper)} arguments")
        numbers = [checked_number(type(self).__name__, n, v) for n, v in zip(names, hyper, strict=True)]
        if self.decay_name is not None and self.decay_name not in names:
            names.append(self.decay_name)
            numbers.append(0.0)
        if self.keeps_initial_rate:
            numbers.append(first_rate(numbers[0]))
        self._context = get_current_context()
        self._types = [kind_of(name, value) for name, value in zip(self.hyper_names, hyper, strict=True)]
        self._numbers = numbers
        self._decay_index = None if self.decay_name is None else names.index(self.decay_name)
        self._usual_decay: float | None = None
        self._has_warned = False
        self._slots: dict[str, Slot] = {}
        self._bind_to(targets_of(self._context))

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

    # -- numbers ---------------------------------------------------------------------------------------------------

    @shown
    def info(self) -> dict[str, Any]:
        """Return the numbers by name."""
        given = zip(self.hyper_names, self._types, self._numbers, strict=False)
        return {name: kind(number) for name, kind, number in given}

    def learning_rate(self) -> float:
        """Return the learning rate."""
        return self._numbers[0]

    @fitted
    def set_learning_rate(self, learning_rate: float) -> None:
        """Change the learning rate of the following updates."""
        self._set_number(0, checked_number("set_learning_rate", "learning_rate", learning_rate))

    def _set_number(self, index: int, value: float) -> None:
        if index == 0 and self.keeps_initial_rate and math.isinf(self._numbers[-1]):
            self._groups.set_number(len(self._numbers) - 1, first_rate(value))
        if index == self._decay_index and self._usual_decay is not None:
            self._usual_decay = value  # weight_decay() has replaced the number for one update
        else:
            self._groups.set_number(index, value)

    if not TYPE_CHECKING:  # a checker would take these two as leave for any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            if name in self.numbers_by_name:
                self.numbers_by_name[name].__set__(self, value)
                return
            if not self._is_free(name):
                error = UnknownAttributeError(self._unknown(name))
                if self._is_closed:
                    raise error
                overlook(error, "which is no number of the rule")
            object.__setattr__(self, name, value)

        def __getattr__(self, name: str) -> Any:
            if name in self.numbers_by_name:
                return self.numbers_by_name[name].__get__(self, type(self))
            raise UnknownAttributeError(self._unknown(name))

    def _is_free(self, name: str) -> bool:
        if name.startswith("_") or name in self.hyper_names or name in ("state_names", "decay_name"):
            return True
        if not self._is_closed:  # a class of the program; one without numbers may wrap another solver
            return name not in RATE_NAMES or not self.hyper_names
        return not hasattr(Solver, name) and hasattr(type(self), name)

    def _unknown(self, name: str) -> str:
        return unknown_number(type(self).__name__, self.hyper_names, name)  # `name` may be forwarded to what is missing

    # -- one training step -----------------------------------------------------------------------------------------

    @fitted
    def minimize(
        self,
        loss: Loss,
        *batch: Any,
        clip_norm: float | None = None,
        weight_decay: float | None = None,
        loss_scale: Scale | None = None,
    ) -> Variable:
        """Run a whole step: compute the loss and its gradients, starting from zero, and update the parameters.

        Args:
            loss: A Variable of a static graph, or a function that builds a dynamic one, called inside of ``auto_forward()``.
                A solver that was given no parameters takes those of the first loss: all of scopes and modules that it
                depends on and that need a gradient.
            batch: Arrays that the function gets as Variables.
            clip_norm: Largest Euclidean norm of all gradients together.
            weight_decay: Rate for ``weight_decay()``, after clipping.
            loss_scale: A ``nn_core.training.LossScale``; a step whose gradients are not finite is skipped.

        Returns:
            The loss, computed before the update; of SAM and LBFGS a static one, which has the value of their last pass.

        Raises:
            ArgumentError: when `loss` is neither, or a batch is given beside a Variable.
            GraphError: for a Variable inside of ``auto_forward()``, which was computed when it was built.
        """
        return minimize(self, loss, batch, clip_norm, weight_decay, loss_scale)

    @refuses_rest
    def zero_grad(self, *surplus: NoReturn, **unknown: NoReturn) -> None:
        """Set all gradients to zero, lazily: the next backward pass writes them instead of adding."""
        if surplus or unknown:
            require_fit(Solver.zero_grad, (self, *surplus), unknown)
        self._gradients.zero(self._slots.values())

    @refuses_rest
    def update(
        self,
        update_pre_hook: Hook | None = None,
        update_post_hook: Hook | None = None,
        *surplus: NoReturn,
        **unknown: NoReturn,
    ) -> None:
        """Change all parameters by one step.

        Args:
            update_pre_hook: Called without arguments before each parameter.
            update_post_hook: Called without arguments after each parameter.
        """
        if surplus or unknown:
            require_fit(Solver.update, (self, update_pre_hook, update_post_hook, *surplus), unknown)
        hooks = active_hooks(update_pre_hook, update_post_hook)
        try:
            if hooks is None:
                if not self._groups.run(self._slots.values()):
                    self._warn_of_nothing()
            else:
                self._groups.run_observed(self._slots.values(), *hooks)
        except MemoryError as error:
            name_lack(Solver.update, error)
            raise
        if self._latecomers is not None:
            self._warn_of_latecomers()
        self._end_decay()

    @door
    def update_if_finite(self, scale: float = 1.0, clip_norm: float | None = None, weight_decay: float | None = None) -> float:
        """Multiply all gradients by `scale`, clip them together, and update, unless an element is infinite or NaN.

        A backend with kernels for it does this without waiting: the host reads the norm when the step is done.

        Args:
            scale: The factor, such as 1 / loss scale.
            clip_norm: The largest Euclidean norm of all gradients together, once they are scaled; None: any.
            weight_decay: Rate for ``weight_decay()``, after clipping.

        Returns:
            The norm of the scaled gradients before clipping. If it is not finite, parameters and states are unchanged.

        Raises:
            ArgumentError: when `clip_norm` is negative, or a number is none.

        Example:
            >>> w = nn.Variable.from_numpy_array([3.0, 4.0], need_grad=True)
            >>> solver = S.Sgd(1.0)
            >>> solver.set_parameters({"w": w})
            >>> loss = F.sum(w * w)
            >>> loss.forward()
            >>> solver.zero_grad()
            >>> loss.backward(8.0)  # as if the loss were 8 times as large
            >>> solver.update_if_finite(1 / 8, clip_norm=5.0), w.d.tolist()
            (10.0, [0.0, 0.0])
        """
        factor, limit = explained_rescaling(scale, clip_norm)
        slots = self._slots.values()
        verdict = self._gradients.verdict(slots)
        if verdict is None or not self._groups.guard(slots, verdict.array):
            return rescaled_update(self, factor, limit, weight_decay)
        self._gradients.rescale(factor, limit)
        if weight_decay is not None:
            self.weight_decay(weight_decay)
        self._groups.run_guarded()
        if self._latecomers is not None:
            self._warn_of_latecomers()
        self._end_decay()
        norm = verdict.read()
        if not math.isfinite(norm):
            self._groups.take_back()
        return norm

    def _end_decay(self) -> None:
        """Give the number back that ``weight_decay()`` has replaced for one update."""
        if self._usual_decay is not None and self._decay_index is not None:
            self._groups.set_number(self._decay_index, self._usual_decay)
            self._usual_decay = None

    @door
    def weight_decay(self, decay_rate: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Add `decay_rate` times the parameter to each gradient, or let the next update decay the parameters itself.

        Args:
            decay_rate: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        rate = checked_number("weight_decay", "decay_rate", decay_rate)
        if self._decay_index is None:
            self._gradients.change(WEIGHT_DECAY, rate, self._slots.values(), pre_hook, post_hook)
            return
        if self._usual_decay is None:
            self._usual_decay = self._numbers[self._decay_index]
        self._groups.set_number(self._decay_index, rate)

    def weight_decay_is_fused(self) -> bool:
        """Return whether ``weight_decay()`` is left to the next ``update()``."""
        return self._decay_index is not None

    @door
    def clip_grad_by_norm(
        self,
        clip_norm: float,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        error_if_nonfinite: bool = False,
    ) -> None:
        """Scale each gradient whose Euclidean norm is above `clip_norm` down to it.

        Args:
            clip_norm: The largest norm of the gradient of one parameter.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
            error_if_nonfinite: Refuse gradients with NaN or infinity, for which the host waits. If False, those with NaN
                stay as they are, and an infinite element becomes NaN, the others of its parameter 0.

        Raises:
            ArgumentError: when `clip_norm` is negative or not a number.
            GraphError: when `error_if_nonfinite` is set and an element is NaN or infinite; no gradient is changed.
        """
        norm = checked_number("clip_grad_by_norm", "clip_norm", clip_norm)
        if checked_flag("clip_grad_by_norm: error_if_nonfinite", error_if_nonfinite):
            self._gradients.require_finite("clip_grad_by_norm", self._slots)
        self._gradients.change(CLIP_GRAD_BY_NORM, norm, self._slots.values(), pre_hook, post_hook)

    @door
    def grad_norm(self) -> float:
        """Return the Euclidean norm of all gradients together; infinite or NaN when an element is.

        The sums are taken in float64 on the device and read once.
        """
        return self._gradients.norm(self._slots.values())

    @fitted
    def clip_grad_by_global_norm(self, clip_norm: float, error_if_nonfinite: bool = False) -> float:
        """Scale all gradients by one factor so that the Euclidean norm of all together is at most `clip_norm`.

        Args:
            clip_norm: The largest norm of all gradients together, at least 0.
            error_if_nonfinite: Refuse gradients with NaN or infinity. If False, those with NaN stay as they are, and with
                an infinite element, infinite ones become NaN and all others 0.

        Returns:
            The norm before.

        Raises:
            ArgumentError: when `clip_norm` is negative or not a number.
            GraphError: when `error_if_nonfinite` is set and an element is NaN or infinite; no gradient is changed.
        """
        must_be_finite = checked_flag("clip_grad_by_global_norm: error_if_nonfinite", error_if_nonfinite)
        limit = checked_number("clip_grad_by_global_norm", "clip_norm", clip_norm)
        if not limit >= 0:
            raise ArgumentError(f"clip_grad_by_global_norm: clip_norm must be at least 0, got {clip_norm!r}")
        norm = self.grad_norm()
        if must_be_finite and not math.isfinite(norm):
            self._gradients.require_finite("clip_grad_by_global_norm", self._slots)
        if norm > limit:
            self.scale_grad(limit / norm)
        return norm

    @fitted
    def scale_grad(self, scale: float, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> None:
        """Multiply each gradient by `scale`.

        Args:
            scale: The factor.
            pre_hook: Called without arguments before each parameter.
            post_hook: Called without arguments after each parameter.
        """
        factor = checked_number("scale_grad", "scale", scale)
        self._gradients.change(SCALE_GRAD, factor, self._slots.values(), pre_hook, post_hook)

    def check_inf_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Return whether any gradient has an infinite element; the hooks are called before and after each parameter."""
        return self._gradients.any(lambda xp, g: xp.isinf(g).any(), self._slots.values(), pre_hook, post_hook)

    def check_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Return whether any gradient has a NaN; the hooks are called before and after each parameter."""
        return self._gradients.any(lambda xp, g: xp.isnan(g).any(), self._slots.values(), pre_hook, post_hook)

    def check_inf_or_nan_grad(self, pre_hook: Hook | None = None, post_hook: Hook | None = None) -> bool:
        """Return whether any gradient has an element that is infinite or NaN; hooks as in the other checks."""
        return self._gradients.any(not_finite, self._slots.values(), pre_hook, post_hook)

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.info.items())
        return f"{self.name}({numbers})"

    def _repr_html_(self) -> str:
        rows = [*self.info.items(), ("parameters", len(self._slots))]
        return table(("", "value"), rows, self.name)

    def _warn_of_nothing(self) -> None:
        """Log once that an update could not change anything, unless that can be meant."""
        if self._has_warned or any(slot.t for slot in self._slots.values()):
            return
        reason = why_nothing(self._slots.values())
        if reason is not None:
            logger.warning("%s.update: %s", self.name, reason)
            self._has_warned = True

    def _warn_of_latecomers(self) -> None:
        latecomers, self._latecomers = self._latecomers, None
        if latecomers is not None:
            latecomers.warn(self.name)

    def __getstate__(self) -> dict[str, Any]:
        """Return all that is not bound to the memory of the parameters, or to the parameters of the process."""
        self._groups.require_states()
        return {name: value for name, value in self.__dict__.items() if name not in _BOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind_to(targets_of(self._context))

    def _bind_to(self, targets: tuple[ComputeTarget, ...]) -> None:
        self._groups = Groups(
            Rule(type(self).__name__, self.step, reads_t=self.reads_t), targets, self._numbers, self._decay_index
        )
        self._gradients = Gradients(targets)

    def _unbind(self) -> None:
        self._groups.unbind()
        self._gradients.forget()
