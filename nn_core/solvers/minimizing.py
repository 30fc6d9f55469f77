"""One step of training as one call, and what happens to gradients between backward and update."""

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import numpy as np

from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.modes import auto_forward, get_auto_forward
from nn_core.engine.graph.parameter_sources import known_parameters
from nn_core.errors import ArgumentError, GraphError
from nn_core.function import Function
from nn_core.logger import logger
from nn_core.solvers.choices import warn_of_shared
from nn_core.solvers.numbers import checked_number
from nn_core.variable import Variable

if TYPE_CHECKING:
    from nn_core.solvers.base import Solver

#: A Variable of a static graph, or a function that builds a dynamic one.
Loss: TypeAlias = Variable | Callable[..., Variable]


#: Solvers that were told of a loss of several elements.
_TOLD: Final[weakref.WeakSet["Solver"]] = weakref.WeakSet()


class Scale(Protocol):
    """A factor of the loss, such as ``nn_core.training.LossScale``: `step` says whether a step is taken."""

    scale: float

    def step(self, is_finite: bool) -> bool: ...


class SeveralPasses:
    """The part of a solver that computes the loss and its gradients several times in an update."""

    def update_with(
        self, gradients: Callable[[], Any], clip_norm: float | None = None, weight_decay: float | None = None
    ) -> Any:
        """Update by a function that sets the gradients to zero, computes the loss and its gradients, and returns the loss."""
        raise NotImplementedError


def follows_finiteness(loss_scale: Scale | None) -> bool:
    """Return whether `step` of a loss scale does what it is told, so that the device may decide before it is asked."""
    return bool(getattr(loss_scale, "follows_finiteness", False))


def _warn_of_sum(solver: "Solver", loss: Variable) -> None:
    """Log once for a solver that a loss of several elements is minimized as their sum."""
    if solver not in _TOLD:
        _TOLD.add(solver)
        text = "%s.minimize: loss must have one element, got shape %s, of which the sum is minimized\n  hint: F.mean(loss)"
        logger.warning(text, solver.name, loss.shape)


def _choose_parameters(solver: "Solver", loss: Variable) -> None:
    """Give a solver without parameters those of scopes and modules that a loss depends on and that need a gradient."""
    if solver.was_given_parameters:
        return
    functions: list[Function] = []
    loss.visit(functions.append)
    # a layer with fix_parameters=True reads a variable without a gradient of the same storage
    used = {variable.storage for function in functions for variable in function.inputs if variable.need_grad}
    chosen = {name: parameter for name, parameter in known_parameters(used).items() if parameter.storage in used}
    if chosen:
        solver.set_parameters(chosen)
        warn_of_shared(solver.name, solver)


def minimize(
    solver: "Solver",
    loss: Loss,
    batch: Sequence[Any],
    clip_norm: float | None,
    weight_decay: float | None,
    loss_scale: Scale | None,
) -> Variable:
    """Do what ``Solver.minimize`` describes."""
    limit = None if clip_norm is None else checked_number("minimize", "clip_norm", clip_norm)
    _require_scale(loss_scale)
    if isinstance(solver, SeveralPasses):
        return _minimize_in_passes(solver, loss, batch, limit, weight_decay, loss_scale)
    computed = _computed(loss, batch)
    if computed.size != 1:
        _warn_of_sum(solver, computed)
    _choose_parameters(solver, computed)
    solver.zero_grad()
    computed.backward(1 if loss_scale is None else loss_scale.scale, clear_buffer=True)
    if loss_scale is not None and follows_finiteness(loss_scale):
        norm = solver.update_if_finite(1.0 / loss_scale.scale, limit, weight_decay)
        loss_scale.step(math.isfinite(norm))
        return computed
    if (limit is not None or loss_scale is not None) and rescaled([solver], limit, loss_scale) is None:
        return computed
    if weight_decay is not None:
        solver.weight_decay(weight_decay)
    solver.update()
    return computed


def _minimize_in_passes(
    solver: Any,
    loss: Loss,
    batch: Sequence[Any],
    limit: float | None,
    weight_decay: float | None,
    loss_scale: Scale | None,
) -> Variable:
    if loss_scale is not None:
        raise ArgumentError(f"minimize: loss_scale must be None for {solver.name}, got {described(loss_scale)}")

    def gradients() -> Variable:
        computed = _computed(loss, batch)
        if computed.size != 1:
            _warn_of_sum(solver, computed)
        _choose_parameters(solver, computed)
        solver.zero_grad()
        computed.backward(clear_buffer=True)
        return computed

    first: Variable = solver.update_with(gradients, limit, weight_decay)
    return first


def _require_scale(loss_scale: Scale | None) -> None:
    if loss_scale is not None and not (hasattr(loss_scale, "scale") and callable(getattr(loss_scale, "step", None))):
        raise ArgumentError(f"minimize: loss_scale must be an nn_core.training.LossScale, got {described(loss_scale)}")


def rescaled(
    solvers: Sequence["Solver"], clip_norm: float | None, loss_scale: Scale | None, error_if_nonfinite: bool = False
) -> float | None:
    """Unscale, check and clip all gradients in one change of them.

    Returns:
        The Euclidean norm before clipping; None when it is not finite and the step is to be skipped, which needs a loss scale.

    Raises:
        GraphError: when it is not finite, if `error_if_nonfinite`.
    """
    norm = math.hypot(*[solver.grad_norm() for solver in solvers])
    if error_if_nonfinite and not math.isfinite(norm):
        raise GraphError(
            f"Updater: the norm of all gradients must be finite, got {norm}\n"
            "  hint: solver.check_inf_or_nan_grad(); lower the learning rate, or scale the loss (loss_scale)"
        )
    factor = 1.0
    if loss_scale is not None:
        factor = 1.0 / loss_scale.scale
        if not loss_scale.step(math.isfinite(norm)):
            return None
    norm *= factor
    if clip_norm is not None and norm > clip_norm:
        factor *= clip_norm / norm
    if factor != 1.0:
        for solver in solvers:
            solver.scale_grad(factor)
    return norm


def explained_rescaling(scale: float, clip_norm: float | None) -> tuple[float, float]:
    """Return the factor of all gradients and the limit of their norm, checked."""
    factor = checked_number("update_if_finite", "scale", scale)
    limit = math.inf if clip_norm is None else checked_number("update_if_finite", "clip_norm", clip_norm)
    if not limit >= 0:
        raise ArgumentError(f"update_if_finite: clip_norm must be at least 0, got {clip_norm!r}")
    return factor, limit


def rescaled_update(solver: "Solver", factor: float, limit: float, weight_decay: float | None) -> float:
    """Do what ``Solver.update_if_finite`` describes, where the host has to know the norm before the update."""
    norm = solver.grad_norm() * abs(factor)
    if not math.isfinite(norm):
        return norm
    if norm > limit:
        factor *= limit / norm
    if factor != 1.0:
        solver.scale_grad(factor)
    if weight_decay is not None:
        solver.weight_decay(weight_decay)
    solver.update()
    return norm


def _computed(loss: Loss, batch: Sequence[Any]) -> Variable:
    if isinstance(loss, Variable):
        if batch:
            raise ArgumentError(f"minimize: batch must be empty beside a Variable, got {len(batch)} arrays")
        if get_auto_forward():
            # forward() would compute it again, and draw other random numbers
            raise GraphError(
                "minimize: loss must be a function inside of auto_forward(), got a Variable\n"
                "  hint: pass the function that computes it, or call zero_grad(), loss.backward() and update()"
            )
        loss.forward(clear_no_need_grad=True)
        return loss
    if not callable(loss):
        raise ArgumentError(f"minimize: loss must be a Variable or a function that returns one, got {described(loss)}")
    with auto_forward():
        result = loss(*[Variable.from_numpy_array(np.asarray(values)) for values in batch])
    if not isinstance(result, Variable):
        raise ArgumentError(f"minimize: loss must return a Variable, got {described(result)}")
    return result
