"""Solvers that take the steps of another one."""

from collections.abc import Sequence
from typing import ClassVar

from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.solvers.base import Solver
from nn_core.solvers.numbers import Number
from nn_core.solvers.states import kinds_of_states
from nn_core.typing import Array, Namespace


class Wrapping(Solver):
    """Base of solvers whose numbers and states are those of another one and some of their own.

    Attributes:
        own_names: Names of the numbers that it adds.
        own_states: Names of the states that it adds, of the parameter's shape.
        inner: The other solver, which keeps no parameters.
    """

    own_names: ClassVar[tuple[str, ...]] = ()
    own_states: ClassVar[tuple[str, ...]] = ()
    inner: Solver

    def __init__(self, solver: Solver, *own: float) -> None:
        name = type(self).__name__
        if not isinstance(solver, Solver):
            raise ArgumentError(f"{name}: solver must be a solver such as S.Adam(), got {described(solver)}")
        if solver.get_parameters():
            raise ArgumentError(
                f"{name}: solver must have no parameters, got {len(solver.get_parameters())}\n"
                f"  hint: call set_parameters() of {name}, whose steps they follow"
            )
        names = (*solver.hyper_names, *self.own_names)
        self.__dict__.update(
            inner=solver,
            hyper_names=names,
            fixed_names=solver.fixed_names,
            state_names=(*solver.state_names, *self.own_states),
            state_kinds=(*kinds_of_states(solver), *["whole"] * len(self.own_states)),
            decay_name=solver.decay_name,
            keeps_initial_rate=solver.keeps_initial_rate,
            numbers_by_name={n: Number(index, n, n in solver.fixed_names) for index, n in enumerate(names)},
        )
        super().__init__(*solver.info.values(), *own)

    def step(  # type: ignore[override]  # the rule of an object, not of a class
        self, xp: Namespace, w: Array, g: Array, states: Sequence[Array], hyper: Sequence[float]
    ) -> None:
        """Change `w` and the states in place."""
        first = len(self.inner.hyper_names)
        last = first + len(self.own_names)
        self._change(xp, w, g, states, hyper[first:last], [*hyper[:first], *hyper[last:]])

    def _change(
        self, xp: Namespace, w: Array, g: Array, states: Sequence[Array], own: Sequence[float], inner: Sequence[float]
    ) -> None:
        """Change `w` and the states in place, given its own numbers and those of the other solver."""
        raise NotImplementedError
