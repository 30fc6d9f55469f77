"""Numbers that an argument cannot be, such as a share of 2, are refused by all functions alike."""

import math

import pytest

from nn_core.errors import ArgumentError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import ArgSpec, FunctionSpec

#: Names that mean the same in all functions, and the range of their values.
RANGES = {
    "decay": (0, 1),
    "decay_rate": (0, 1),
    "eps": (0, None),
    "epsilon": (0, None),
    "clip_norm": (0, None),
    "iou_threshold": (0, 1),
    "prob": (0, 1),
    "rate": (0, 1),
}
NAMED = [(spec, arg) for spec in SPECS for arg in spec.args if arg.name in RANGES]
LIMITED = [(spec, arg) for spec in SPECS for arg in spec.args if arg.minimum is not None or arg.maximum is not None]


def ids(pairs: list[tuple[FunctionSpec, ArgSpec]]) -> list[str]:
    return [f"{spec.name}-{arg.name}" for spec, arg in pairs]


@pytest.mark.parametrize(("spec", "arg"), NAMED, ids=ids(NAMED))
def test_what_has_one_meaning_has_one_range(spec: FunctionSpec, arg: ArgSpec) -> None:
    assert (arg.minimum, arg.maximum) == RANGES[arg.name]


def given(spec: FunctionSpec, arg: ArgSpec, value: float) -> dict[str, object]:
    number = int(value) if arg.type in ("int", "ints") else value
    required = {other.name: (1, 1) if other.type == "ints" else 1 for other in spec.args if other.required}
    return {**required, arg.name: (number, number) if arg.type in ("ints", "floats") else number}


@pytest.mark.parametrize(("spec", "arg"), LIMITED, ids=ids(LIMITED))
def test_values_outside_are_refused(spec: FunctionSpec, arg: ArgSpec) -> None:
    shapes = [(4, 4, 4, 4)] * max(len(spec.inputs), 1)
    outside = [limit + step for limit, step in ((arg.minimum, -1), (arg.maximum, 1)) if limit is not None]
    if arg.type in ("float", "floats"):
        outside.append(math.nan)
    for value in outside:
        with pytest.raises(ArgumentError, match=rf"^{spec.api}: {arg.name} must be at (least|most) "):
            resolve_args(spec, given(spec, arg, value), shapes)
