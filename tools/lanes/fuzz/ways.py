"""The ways in which a program is run: mode, backend, optimizations, and an order of passes with what happens between."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.settings import OPTIMIZATIONS

from .palette import FEWEST
from .program import Leaf, Program

#: Forward passes after which every gradient can be computed, and others.
COMPLETE: Final = ("keep", "train", "hook", "hook_train", "all", "all_train")
PARTIAL: Final = ("infer", "keep", "train", "hook", "all")
#: Ways to write a leaf besides assigning an array: numbers keep its dtype, and so do values that are written in place.
WRITES: Final = ("number", "fill", "zero", "in place", "cast")
#: Numbers that are written to a whole leaf, or to one element.
SPECIALS: Final = (np.nan, np.inf, -np.inf)
SPECIAL_WRITES: Final = ("number", "fill", "element", "element", "element")
DTYPES: Final = (*["float32"] * 4, "float64", "float64", "float16", "bfloat16")
#: Number types of the context of a run, and the dtype that says how exactly it computes.
TYPE_CONFIGS: Final = {"float": "float32", "double": "float32", "half": "float16", "bfloat16": "bfloat16"}
_FREQUENCIES: Final = (0.8, 0.04, 0.08, 0.08)
#: Solvers, with numbers that move parameters far enough to see it.
SOLVERS: Final = {
    "Sgd": "S.Sgd(lr=0.1)",
    "Momentum": "S.Momentum(lr=0.1)",
    "Nesterov": "S.Nesterov(lr=0.1)",
    "Adagrad": "S.Adagrad(lr=0.1)",
    "RMSprop": "S.RMSprop(lr=0.05)",
    "Adadelta": "S.Adadelta(eps=0.01)",
    "Adam": "S.Adam(alpha=0.1)",
    "Adamax": "S.Adamax(alpha=0.1)",
}


@dataclass(frozen=True)
class Action:
    """One thing that a run does.

    Attributes:
        kind: "switch", "flag", "batch", "data", "write", "forward", "build", "read", "backward", "gradients", "zero" or
            "update".
        values: Its arguments, see `runner`.
    """

    kind: str
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Way:
    """A run of a program: "static", "dynamic", "imperative", or "mixed".

    Attributes:
        variables: The inputs that are Variables in a mixed run, in which others are NdArrays.
        auto: Whether functions of Variables alone compute at once there.
        type_config: The number type of the context, one of `TYPE_CONFIGS`.
    """

    mode: str
    backend: str
    without: tuple[str, ...]
    actions: tuple[Action, ...]
    variables: frozenset[int] = frozenset()
    auto: bool = False
    type_config: str = "float"

    @property
    def imperative(self) -> bool:
        """Whether there are NdArrays among the values."""
        return self.mode in ("imperative", "mixed")


def draw_way(rng: np.random.Generator, program: Program, mode: str, leave_out: Sequence[str] = ()) -> Way:
    """Return a random way of a mode, without some kinds of actions."""
    backend = "cpu" if rng.random() < 0.8 else "reference"
    rounds = 1 if mode in ("imperative", "mixed") else int(rng.integers(1, 4))
    actions: list[Action] = []
    for n in range(rounds):
        actions += _DRAWS[mode](rng, program, n)
    if "policies" in leave_out and mode == "static":
        complete = next(a for a in actions if a.kind == "forward" and a.values[1] == program.loss and a.values[0] != "infer")
        actions = [complete if a.kind == "forward" else a for a in actions]
    if "dtypes" in leave_out:
        actions = [Action("data", (a.values[0], "float32")) if a.kind == "data" else a for a in actions]
    actions = [action for action in actions if action.kind not in leave_out]
    switches = () if "switch" in leave_out else _switches(rng)
    type_config = "float" if "types" in leave_out else str(rng.choice(list(TYPE_CONFIGS), p=_FREQUENCIES))
    if mode != "mixed":
        return Way(mode, backend, switches, tuple(actions), type_config=type_config)
    variables = frozenset(leaf.number for leaf in program.leaves if _chance(rng, 0.5))
    return Way(mode, backend, switches, tuple(actions), variables, _chance(rng, 0.3), type_config)


def _switches(rng: np.random.Generator) -> tuple[str, ...]:
    kind = rng.random()
    if kind < 0.5:
        return ()
    if kind < 0.65:
        return tuple(OPTIMIZATIONS)
    return (str(rng.choice(list(OPTIMIZATIONS))),)


def _chance(rng: np.random.Generator, probability: float) -> bool:
    return bool(rng.random() < probability)


def _one(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[rng.integers(len(values))]


def _data(rng: np.random.Generator, n: int) -> Action:
    return Action("data", (int(rng.integers(0, 3)) if n else 0, _one(rng, DTYPES)))


def _writes(rng: np.random.Generator, program: Program, probability: float) -> list[Action]:
    """Return another value for one leaf that takes any numbers, and one that is no ordinary number."""
    leaves = [leaf for leaf in program.leaves if leaf.source is None and not leaf.integer]
    if not leaves:
        return []
    actions = _write(rng, _one(rng, leaves)) if _chance(rng, probability) else []
    if _chance(rng, 0.1):
        leaf, how, special = _one(rng, leaves), _one(rng, SPECIAL_WRITES), _one(rng, SPECIALS)
        value = (special, int(rng.integers(1000))) if how == "element" else special
        actions.append(Action("write", (leaf.number, how, value)))
    return actions


def _write(rng: np.random.Generator, leaf: Leaf) -> list[Action]:
    how = _one(rng, WRITES)
    if how == "in place":
        return [Action("write", (leaf.number, how, int(rng.integers(0, 3))))]
    if how == "cast":
        return [Action("write", (leaf.number, how, _one(rng, DTYPES)))]
    number = 0.0 if how == "zero" else round(float(rng.uniform(leaf.low, leaf.high)), 2)
    return [Action("write", (leaf.number, how, number))] if leaf.low <= number <= leaf.high else []


def _batch(rng: np.random.Generator, program: Program) -> list[Action]:
    if not program.batch:
        return []
    least = FEWEST if any("normalization" in step.text for step in program.steps) else 1
    return [Action("batch", (int(rng.integers(least, least + 4)),))]


def _static(rng: np.random.Generator, program: Program, n: int) -> list[Action]:
    actions: list[Action] = []
    if n and _chance(rng, 0.15):
        actions.append(Action("switch", _switches(rng)))
    if n and _chance(rng, 0.2):
        actions.append(_flag(rng, program))
    actions += _batch(rng, program) if n and _chance(rng, 0.5) else []
    actions.append(_data(rng, n))
    actions += _writes(rng, program, 0.35 if n else 0.0)
    values = [number for step in program.steps for number in step.outs]
    for _ in range(int(rng.integers(0, 2))):
        actions.append(Action("forward", (_one(rng, PARTIAL), _one(rng, [program.loss, *values]))))
        actions += [Action("read")] if _chance(rng, 0.1) else []
    actions.append(Action("forward", (_one(rng, COMPLETE), program.loss)))
    actions += [Action("read")] if _chance(rng, 0.25) else []
    if _chance(rng, 0.1):
        actions.append(Action("forward", (_one(rng, PARTIAL), _one(rng, [program.loss, *values]))))
    actions += _backward(rng)
    if _chance(rng, 0.2):
        actions.append(Action("forward", ("infer", program.loss)))
    return actions


def _backward(rng: np.random.Generator) -> list[Action]:
    actions: list[Action] = []
    if _chance(rng, 0.9):
        actions.append(Action("backward", (_one(rng, ["plain", "clear", "clear", "hook", "scale"]),)))
        if actions[-1].values[0] != "clear" and _chance(rng, 0.15):
            actions.append(Action("backward", (_one(rng, ["plain", "clear", "scale"]),)))
        actions += [Action("read")] if _chance(rng, 0.1) else []
        actions += [Action("gradients")] if _chance(rng, 0.3) else []
        actions += [Action("update", (_one(rng, tuple(SOLVERS)),))] if _chance(rng, 0.3) else []
    actions += [Action("zero")] if _chance(rng, 0.7) else []
    return actions


def _flag(rng: np.random.Generator, program: Program) -> Action:
    if _chance(rng, 0.5):
        leaves = [leaf.number for leaf in program.leaves if leaf.need_grad]
        if leaves:
            return Action("flag", (_one(rng, leaves), "need_grad", _chance(rng, 0.4)))
    steps = [step for step in program.steps if "unlink" not in step.flags]
    if not steps:
        return Action("zero")
    return Action("flag", (_one(rng, steps).outs[0], "persistent", _chance(rng, 0.6)))


def _dynamic(rng: np.random.Generator, program: Program, n: int) -> list[Action]:
    actions: list[Action] = []
    if n and _chance(rng, 0.1):
        actions.append(Action("switch", _switches(rng)))
    actions += _batch(rng, program) if n and _chance(rng, 0.2) else []
    actions += [_data(rng, n), *_writes(rng, program, 0.2), Action("build")]
    actions += [Action("read")] if _chance(rng, 0.4) else []
    if _chance(rng, 0.25):
        actions.append(Action("forward", (_one(rng, COMPLETE), program.loss)))
    return [*actions, *_backward(rng)]


def _imperative(rng: np.random.Generator, program: Program, n: int) -> list[Action]:
    return [_data(rng, n), *_writes(rng, program, 0.2), Action("build"), Action("read")]


_DRAWS: Final = {"static": _static, "dynamic": _dynamic, "imperative": _imperative, "mixed": _imperative}
