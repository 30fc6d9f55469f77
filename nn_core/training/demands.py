"""Checks of the arguments of an updater."""

from collections.abc import Mapping, Sequence
from typing import Any

from nn_core.engine.error_messages.refusal import checked_flag, described
from nn_core.errors import ArgumentError, ShapeError
from nn_core.solvers.base import Solver
from nn_core.training.loss_scale import LossScale
from nn_core.variable import Variable


def require_parts(data: Any, loss: Any, solver: Any) -> None:
    """Refuse data, a loss or a solver of a wrong kind."""
    if not hasattr(data, "next"):
        raise ArgumentError(f"Updater: data must be a DataIterator or have next(), got {described(data)}")
    if not isinstance(loss, Variable) and not callable(loss):
        raise ArgumentError(f"Updater: loss must be a Variable or a function that returns one, got {described(loss)}")
    if isinstance(loss, Variable) and loss.size != 1:
        raise ShapeError(f"Updater: loss must have one element, got shape {loss.shape}\n  hint: F.mean(loss)")
    if not isinstance(solver, (Solver, Mapping)):
        raise ArgumentError(f"Updater: solver must be a solver, or solvers by name, got {described(solver)}")


def require_clipping(clip_norm: float | None, error_if_nonfinite: bool, loss_scale: LossScale | float | None) -> None:
    """Refuse a norm that is not above 0, and `error_if_nonfinite` without one."""
    if clip_norm is not None and not clip_norm > 0:
        raise ArgumentError(f"Updater: clip_norm must be greater than 0, got {clip_norm}")
    if checked_flag("Updater: error_if_nonfinite", error_if_nonfinite) and (clip_norm is None or loss_scale is not None):
        raise ArgumentError(
            "Updater: error_if_nonfinite must be set with clip_norm and without loss_scale, which skips such steps, "
            f"got clip_norm={clip_norm}"
        )


def require_division(is_usual_step: bool, sharded_gradients: bool, hooks: Sequence[object]) -> None:
    """Refuse to divide gradients that something else changes, or adds up in a way of its own."""
    if not checked_flag("Updater: sharded_gradients", sharded_gradients):
        return
    if hooks:
        raise ArgumentError(f"Updater: hooks must be none with sharded_gradients, got {len(hooks)}")
    if not is_usual_step:
        raise ArgumentError("Updater: step() must be that of Updater with sharded_gradients, got one of a subclass")
