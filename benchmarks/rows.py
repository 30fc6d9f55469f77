"""Thousands of calls of functions beside PyTorch, on the shapes of networks: the rows of `benchmarks.row_table`.

    OMP_NUM_THREADS=1 python -m benchmarks.rows                  every row; the 30 worst, and means by kind
    OMP_NUM_THREADS=1 python -m benchmarks.rows --every 10       each tenth
    OMP_NUM_THREADS=1 python -m benchmarks.rows --only convolution --json rows.json
    OMP_NUM_THREADS=1 python -m benchmarks.rows --work           no peer: rows that take far more time than their like

A row is timed forward and backward, where it has gradients, on one thread: the processor time of the process, best of several
rounds, in which both take turns. The ratio is ours divided by PyTorch's: below 1 we are faster. ``--work`` compares a row with
the rows of its kind that have about as much work, elements or products of elements: it finds the row that runs by another
method than its neighbours, on any machine, and exits with 1 if there is one.
"""

import argparse
import importlib
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
from benchmarks.row_table import Row, rows
from nn_core.ext_utils import get_extension_context

Step = Callable[[], object]
NAMES = ("x", "y", "z")
#: A row is a failure where it takes so many times what its class takes for its work, and so many milliseconds on top.
FACTOR, FLOOR = 5.0, 0.2


@dataclass(frozen=True, slots=True)
class Timed:
    """A row with milliseconds of ours, and PyTorch's if it was measured."""

    row: Row
    ours: float
    peer: float | None = None

    @property
    def ratio(self) -> float:
        """Ours divided by the peer's."""
        return self.ours / self.peer if self.peer else math.nan

    def __str__(self) -> str:
        return f"{self.ratio:7.2f} {self.ours:10.4f} {self.peer or math.nan:10.4f}  {self.row}"


def arrays_of(row: Row) -> list[np.ndarray[Any, Any]]:
    """Random values for the arrays of a row."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(row.dtype) for shape in row.shapes]
    if row.high is not None:
        arrays[0] = rng.integers(0, row.high, row.shapes[0])
    return arrays


def our_step(row: Row) -> Step:
    """Make a forward pass in nn_core, and a backward pass where the row has one."""
    with nn.context_scope(get_extension_context("cpu", type_config="double" if row.dtype == "float64" else "float")):
        arrays = arrays_of(row)
        inputs = [nn.Variable.from_numpy_array(a, need_grad=row.backward and a.dtype.kind == "f") for a in arrays]
        y = eval(row.ours, {"F": F, **dict(zip(NAMES, inputs, strict=False))})  # a text of our own table
    if isinstance(y, (tuple, list)):
        y = y[0]
    if not row.backward:
        return y.forward
    trained = [v for v in inputs if v.need_grad]

    def step() -> None:
        for variable in trained:
            variable.grad.zero()
        y.forward(clear_no_need_grad=True)
        y.backward(1, clear_buffer=True)

    return step


def peer_step(row: Row, torch: Any) -> Step:
    """Make the same in PyTorch."""
    inputs = [torch.tensor(a, requires_grad=row.backward and a.dtype.kind == "f") for a in arrays_of(row)]
    names = {"torch": torch, "T": torch.nn.functional, **dict(zip(NAMES, inputs, strict=False))}
    function = eval(f"lambda: {row.peer}", names)  # a text of our own table
    if not row.backward:
        return function
    ones = torch.ones_like(function())
    trained = [x for x in inputs if x.requires_grad]

    def step() -> None:
        for x in trained:
            x.grad = None
        function().backward(ones)

    return step


def best_times(steps: Sequence[Step], rounds: int, seconds: float) -> list[float]:
    """Milliseconds of each step: the best round, in which each runs for `seconds` at least, and once."""
    repeats = []
    for step in steps:
        step()
        start = time.process_time()
        step()
        repeats.append(max(1, int(seconds / max(time.process_time() - start, 1e-6))))
    best = [math.inf] * len(steps)
    for _ in range(rounds):
        for k, step in enumerate(steps):
            start = time.process_time()
            for _ in range(repeats[k]):
                step()
            best[k] = min(best[k], (time.process_time() - start) / repeats[k])
    return [1e3 * seconds for seconds in best]


def measured(row: Row, torch: Any, rounds: int, seconds: float) -> Timed:
    """Measure the times of a row."""
    steps = [our_step(row), *([peer_step(row, torch)] if torch is not None else [])]
    return Timed(row, *best_times(steps, rounds, seconds))


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the mean of the logarithms, as a ratio."""
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def summary(results: Sequence[Timed], worst: int) -> str:
    """Lay out the worst rows, and means over all rows and by kind."""
    by_kind: dict[str, list[float]] = defaultdict(list)
    for result in results:
        by_kind[result.row.kind].append(result.ratio)
    ratios = [result.ratio for result in results]
    lines = [f"{'ratio':>7} {'ours ms':>10} {'PyTorch':>10}  row"]
    lines += map(str, sorted(results, key=lambda result: -result.ratio)[:worst])
    lines += [
        f"{kind}: {len(some)} rows, geometric mean {geometric_mean(some):.2f}, largest {max(some):.2f}"
        for kind, some in sorted(by_kind.items())
    ]
    above = {limit: sum(ratio > limit for ratio in ratios) for limit in (1, 2)}
    lines.append(
        f"{len(ratios)} rows: geometric mean {geometric_mean(ratios):.3f}, "
        f"{above[1]} above 1 ({100 * above[1] / len(ratios):.1f} %), {above[2]} above 2"
    )
    return "\n".join(lines)


def classes(results: Iterable[Timed]) -> Mapping[tuple[str, str, int], list[Timed]]:
    """Return results of one kind and dtype whose work is within the same power of eight."""
    found: dict[tuple[str, str, int], list[Timed]] = defaultdict(list)
    for result in results:
        found[result.row.kind, result.row.dtype, round(math.log(result.row.work, 8))].append(result)
    return found


def cliffs(results: Iterable[Timed]) -> list[tuple[Timed, float]]:
    """Rows that take more than `FACTOR` times the median of their class by work, with that ratio."""
    found = []
    for members in classes(results).values():
        median = statistics.median(member.ours / member.row.work for member in members)
        for member in members:
            expected = median * member.row.work
            if member.ours > FACTOR * expected + FLOOR:
                found.append((member, member.ours / expected))
    return found


def remaining_cliffs(results: Sequence[Timed], rounds: int, seconds: float) -> list[tuple[Timed, float]]:
    """Return the rows of `cliffs` that stay so when they are measured again: other work on the machine does not come back."""
    again = {id(result): measured(result.row, None, 3 * rounds, seconds) for result, _ in cliffs(results)}
    return cliffs([again.get(id(result), result) for result in results])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows whose name or kind has this text")
    parser.add_argument("--every", type=int, default=1, help="each so-manieth row")
    parser.add_argument("--worst", type=int, default=30, help="how many rows to print")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.004, help="processor time of a round")
    parser.add_argument("--work", action="store_true", help="compare rows with each other instead of with PyTorch")
    parser.add_argument("--json", type=Path, help="write the times to this file too")
    options = parser.parse_args()
    torch = None if options.work else importlib.import_module("torch")
    if torch is not None:
        torch.set_num_threads(1)
    chosen = [row for row in rows() if options.only in f"{row.name} {row.kind}"][:: options.every]
    results = [measured(row, torch, options.rounds, options.seconds) for row in chosen]
    if options.json:
        options.json.write_text(json.dumps([[str(r.row), r.row.kind, r.ours, r.peer] for r in results], indent=0) + "\n")
    if not options.work:
        print(summary(results, options.worst))
        return
    found = remaining_cliffs(results, options.rounds, options.seconds)
    for result, factor in found:
        print(f"{factor:6.1f} times its class, {result.ours:.3f} ms: {result.row}")
    print(f"{len(results)} rows in {len(classes(results))} classes, {len(found)} beyond {FACTOR} times theirs")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
