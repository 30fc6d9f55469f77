"""Iterations of solvers that compute the gradients of the same batches several times."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from nn_core.errors import ArgumentError
from nn_core.solvers.base import Solver
from nn_core.solvers.minimizing import SeveralPasses
from nn_core.training.reporting import Observation, observing, report_again, reported


def takes_passes(solvers: Collection[Solver], **others: Any) -> bool:
    """Return whether the solver of an updater computes gradients several times in an iteration.

    Args:
        solvers: All solvers.
        others: Arguments of the updater that cannot go with such a solver.

    Raises:
        ArgumentError: when there is such a solver, and another one or one of `others`.
    """
    found = next((solver for solver in solvers if isinstance(solver, SeveralPasses)), None)
    if found is None:
        return False
    if len(solvers) > 1:
        raise ArgumentError(f"Updater: {found.name} must be the only solver, got {len(solvers)}")
    for name, value in others.items():
        if value is not None and value != ():
            raise ArgumentError(f"Updater: {name} must not be given with {found.name}, got {value!r}")
    return True


def step_in_passes(
    solver: Any,
    batches: Sequence[Sequence[Any]],
    gradients: Callable[[Sequence[Any]], None],
    clip_norm: float | None,
    weight_decay: float | None,
) -> None:
    """Update by batches, and report what their first pass reports."""
    first: list[Observation] = []

    def compute() -> float:
        solver.zero_grad()
        with observing() as seen:
            for batch in batches:
                gradients(batch)
            loss = reported(seen, "loss")
        first.append(seen)
        return loss

    solver.update_with(compute, clip_norm, weight_decay)
    report_again(first[0])
