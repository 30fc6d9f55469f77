"""The steps of solvers in C: how a parameter changes by its gradient."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import nn_core.solvers as S
from nn_core.ext import ArgumentError
from nn_ext_c.loops import Code, dot, merged, number
from nn_ext_c.program import Argument, Step, Value


@dataclass(frozen=True, slots=True)
class Rule:
    """How a solver changes a parameter.

    Attributes:
        statements: change an element `w` and the states by the gradient `g` and the size `step` of an update; the numbers of
            the solver are in braces.
        step: its size, from the learning rate `rate[0]` and the number `updates[0]` of the update, which begins with 1.
    """

    statements: tuple[str, ...]
    step: str = "rate[0]"


_CORRECTED: Final = "rate[0] * sqrtf(-expm1f((float)updates[0] * {log_beta2})) / -expm1f((float)updates[0] * {log_beta1})"
_MEANS: Final = ("mean = {beta1} * mean + {rest1} * g;", "var = {beta2} * var + {rest2} * g * g;")
#: The rules by the names of the solvers, whose states have the same names in C.
RULES: Final = {
    "Sgd": Rule(("w -= step * g;",)),
    "Momentum": Rule(("m = {momentum} * m + step * g;", "w -= m;")),
    "Nesterov": Rule(
        ("const float before = m;", "m = {momentum} * m - step * g;", "w += (1.0f + {momentum}) * m - {momentum} * before;")
    ),
    "Adagrad": Rule(("v += g * g;", "w -= step * g / (sqrtf(v) + {eps});")),
    "RMSprop": Rule(("v = {decay} * v + {rest} * g * g;", "w -= step * g / (sqrtf(v) + {eps});")),
    "Adam": Rule((*_MEANS, "w -= step * mean / (sqrtf(var) + {eps});"), _CORRECTED),
}


def rule_of(solver: S.Solver) -> Rule:
    """Return the rule of a solver.

    Raises:
        ArgumentError: when there is none.
    """
    name = type(solver).__name__
    if getattr(S, name, None) is not type(solver) or name not in RULES:
        raise ArgumentError(f"export_training: solver must be one of {', '.join(RULES)}, got {name}")
    return RULES[name]


def _numbers(solver: S.Solver) -> dict[str, str]:
    """Return the numbers of a solver, and what follows from them in double, as C writes them."""
    given: dict[str, float] = {name: float(getattr(solver, name)) for name in solver.hyper_names}
    for name, rest in (("beta1", "rest1"), ("beta2", "rest2"), ("decay", "rest")):
        if name in given:
            given[rest] = 1.0 - given[name]
            given[f"log_{name}"] = math.log(given[name]) if given[name] else -math.inf
    return {name: number(value) for name, value in given.items()}


def update(
    solver: S.Solver, parameter: Value, gradient: Value, states: Sequence[Value], rate: Value, count: Value, decay: float
) -> Step:
    """Return the step that changes a parameter.

    Args:
        solver: how.
        parameter: in memory that the context keeps.
        gradient: of the loss, in any order.
        states: of the solver for this parameter, in the order of its names.
        rate: the learning rate.
        count: of updates, this one included.
        decay: this times the parameter is added to the gradient.
    """
    rule, numbers = rule_of(solver), _numbers(solver)
    names = ["w", *solver.state_names]
    lengths, (kept, given) = merged(parameter.shape, [parameter.strides, gradient.strides])
    code = Code()
    code.line(f"const float step = {rule.step.format(**numbers)};")
    counters = code.loops(lengths)
    place = dot(counters, kept)
    added = f" + {number(decay)} * ws[{place}]" if decay else ""
    code.line(f"const float g = gs[{dot(counters, given)}]{added};")
    for name in names:
        code.line(f"float {name} = {name}s[{place}];")
    for statement in rule.statements:
        code.line(statement.format(**numbers))
    for name in names:
        code.line(f"{name}s[{place}] = {name};")
    written = [Argument(f"{name}s", value, True) for name, value in zip(names, (parameter, *states), strict=True)]
    read = [Argument("gs", gradient), Argument("rate", rate)]
    if "updates" in rule.step:
        read.append(Argument("updates", count))
    return Step(f"update_{type(solver).__name__}", code.text(), [*read, *written])
