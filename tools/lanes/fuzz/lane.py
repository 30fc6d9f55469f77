"""The lane of random programs: many programs from a seed, each in several ways."""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import nn_core as nn

from .generate import generate
from .minimize import minimized, script
from .runner import COUNTS, Difference, Reference, perform
from .ways import draw_way

#: The modes that the second way of a program is drawn from; the first one is static. More programs find more than more
#: ways of one.
MODES = ("static", "dynamic", "dynamic", "dynamic", "imperative", "mixed", "mixed")


@dataclass(frozen=True)
class Finding:
    """A difference: where it was found, and the smallest script that shows it."""

    seed: int
    title: str
    script: str


def check_program(seed: int, *, minimize: bool = True, leave_out: Sequence[str] = ()) -> Finding | None:
    """Run the program of a seed in several ways; the first difference."""
    COUNTS.programs += 1
    with nn.context_scope(nn.Context(["reference"])):
        try:
            program = generate(seed)
            reference = Reference(program)
        except Exception as error:
            lines = traceback.format_exc()
            return Finding(seed, f"while it was made, {type(error).__name__}: {error}", lines)
    rng = np.random.default_rng([seed, 5])
    for mode in ("static", str(rng.choice(MODES))):
        way = draw_way(rng, program, mode, leave_out)
        run, difference = perform(reference, way)
        if difference is not None:
            if minimize:
                run, difference = _small(run, difference, (program, way))
            return Finding(seed, f"{mode}, {difference.title.splitlines()[0]}", script(run, difference))
    return None


def _small(run: object, difference: Difference, case: object) -> tuple[object, Difference]:
    try:
        return minimized(case)  # type: ignore[arg-type]
    except AssertionError:
        return run, difference  # it depends on what the process did before


def check_programs(
    seed: int,
    count: int,
    seconds: float = float("inf"),
    *,
    minimize: bool = True,
    leave_out: Sequence[str] = (),
    progress: Callable[[int], None] | None = None,
) -> Iterator[Finding]:
    """Yield the findings among `count` programs, at most for some seconds."""
    end = time.monotonic() + seconds
    for n in range(count):
        if time.monotonic() > end:
            return
        finding = check_program(1_000_000 * seed + n, minimize=minimize, leave_out=leave_out)
        if progress is not None:
            progress(n + 1)
        if finding is not None:
            yield finding
