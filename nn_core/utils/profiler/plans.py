"""A profiler of the time and the memory of training steps: the plans of graphs, measured while they run as usual."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from nn_core.engine.arrays.synced import HOST, ready
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.graph.backward_data import BackwardPlan
from nn_core.engine.graph.plan import WATCH, Entry, Plan
from nn_core.engine.graph.scopes import scopes_of
from nn_core.errors import ArgumentError, GraphError
from nn_core.typing import Step, extra, is_slow
from nn_core.utils.profiler.memory import Moment, moments, peak
from nn_core.utils.profiler.table import aligned, bytes_text

_LEVELS: Final = ("function", "scope", "kind", "pass")


@dataclass(frozen=True, slots=True)
class Row:
    """The time of a part of the steps.

    Attributes:
        name: Function, or functions that their backend merged, joined by " + "; a scope, a kind or a pass.
        scope: The scope of its parameters, or the one in which it was called where it has none;
            of merged functions that of the first.
        pass_name: "forward" or "backward"; "" where both are counted.
        n_calls: How often it ran.
        milliseconds: Sum over all runs.
        share: Of the time of all plans, from 0 to 1.
        n_bytes: Of the arrays that it makes, in one run.
        implementation: What its backend computes it with, where there is a choice: such as a primitive of a library.
    """

    name: str
    scope: str
    pass_name: str
    n_calls: int
    milliseconds: float
    share: float
    n_bytes: int
    implementation: str = ""


class Profiler:
    """Measures the passes of static graphs during a ``with`` block.

    Plans run the steps that they always run: neighbouring element-wise functions stay merged and are measured as one, and
    a clock is read in between, about 0.1 microseconds each time. On devices each part is waited for. The first run of a
    plan, which prepares it, does not count. Functions of ``nn.auto_forward()`` have no plans; `TimeProfiler` measures them.

    As an extension of a trainer it measures the whole training: ``trainer.extend(Profiler())`` writes profile.txt and
    profile.json, the trace, to the folder of the trainer.

    Args:
        max_runs: So many runs of plans keep their times one by one for the trace; all later ones are only added up.

    Example:
        >>> import numpy as np
        >>> import nn_core as nn, nn_core.functions as F
        >>> x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
        >>> x.grad.zero()
        >>> y = F.sum(F.exp(x) * 2)
        >>> with Profiler() as profiler:
        ...     for _ in range(3):
        ...         y.forward(clear_no_need_grad=True)
        ...         y.backward(clear_buffer=True)
        ...         profiler.step()
        >>> [row.name for row in profiler.rows() if row.pass_name == "forward"]
        ['Exp + MulScalar', 'Sum']
        >>> profiler.n_steps
        3
    """

    phase = "read"
    name = "profile"

    @fitted
    def __init__(self, max_runs: int = 1000) -> None:
        if max_runs < 0:
            raise ArgumentError(f"Profiler: max_runs must be at least 0, got {max_runs}")
        self.n_steps = 0
        self._max_runs = max_runs
        self._watched: dict[Plan, _Watched] = {}
        self._runs: list[_Run] = []
        self._steps: list[int] = []
        self._started = 0

    # -- watching --------------------------------------------------------------------------------------------------

    def __enter__(self) -> "Profiler":
        if WATCH.steps_of is not None:
            raise GraphError("Profiler: one profiler can watch at a time, got a second one")
        self._started = time.perf_counter_ns()
        WATCH.steps_of = self._steps_of
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        WATCH.steps_of = None

    def step(self) -> None:
        """Say that a step of training is over."""
        self.n_steps += 1
        self._steps.append(time.perf_counter_ns())

    def start(self, trainer: Any) -> None:
        """Begin to watch, as an extension of a trainer."""
        self.__enter__()

    def observe(self, trainer: Any) -> None:
        """Count a step."""
        self.step()

    def __call__(self, trainer: Any) -> None:
        """Write what was measured so far."""
        (trainer.out / "profile.txt").write_text(f"{self}\n", encoding="utf-8")
        self.save_trace(trainer.out / "profile.json")

    def stop(self, trainer: Any) -> None:
        """End watching."""
        self.__exit__(None, None, None)
        self(trainer)

    # -- results ---------------------------------------------------------------------------------------------------

    def rows(self, by: str = "function") -> list[Row]:
        """Return the times of the parts of all steps.

        Args:
            by: "function": each function of the graphs, in the order in which they run; "scope", "kind" (functions of one
                name) or "pass": sums, the longest first.

        Raises:
            ArgumentError: when `by` is something else.
        """
        if by not in _LEVELS:
            raise ArgumentError(f"Profiler: by must be one of {', '.join(_LEVELS)}, got {by!r}")
        for watched in self._watched.values():
            watched.settle()
        total = sum(sum(watched.totals) for watched in self._watched.values()) or 1
        rows = [row for watched in self._watched.values() for row in watched.rows(total)]
        if by == "function":
            return rows
        key: Callable[[Row], str] = {
            "scope": lambda row: row.scope,
            "kind": lambda row: row.name,
            "pass": lambda row: row.pass_name,
        }[by]
        sums = [_sum_of(name, list(group)) for name, group in groupby(sorted(rows, key=key), key)]
        return sorted(sums, key=lambda row: -row.milliseconds)

    def memory(self) -> list[Moment]:
        """Return the bytes that are in use at each part of a step: the last forward plan that ran, and the backward plan after
        it.

        Parameters, their gradients and the states of solvers are not part of it.
        """
        return moments([watched.plan for watched in self._last_step()])

    def table(self, by: str = "function", limit: int | None = None) -> str:
        """Return the rows as a table, and the largest memory in use; `limit`: how many rows, the longest ones."""
        rows = self.rows(by)
        if limit is not None:
            longest = sorted(rows, key=lambda row: -row.milliseconds)[:limit]
            rows = [row for row in rows if row in longest]
        steps = max(self.n_steps, 1)
        lines = [("name", "scope", "pass", "calls", "ms a step", "share", "makes", "by")]
        lines += [
            (
                r.name,
                r.scope,
                r.pass_name,
                str(r.n_calls),
                f"{r.milliseconds / steps:.4f}",
                f"{r.share:.1%}",
                bytes_text(r.n_bytes),
                r.implementation,
            )
            for r in rows
        ]
        found = self.memory()
        most = peak(found)
        tail = "" if most is None else f"\nmost memory in use: {bytes_text(most.n_bytes)}, at {most.name} ({most.pass_name})"
        slow = [f"\nslow: {r.name} ({r.pass_name}) runs by {r.implementation}" for r in rows if is_slow(r.implementation)]
        return f"{self.n_steps} steps, times of plans by {by}\n{aligned(lines)}{tail}{''.join(slow)}"

    def __str__(self) -> str:
        return "\n\n".join([self.table(), self.table("scope"), self.table("kind")])

    def save_trace(self, path: str | Path) -> None:
        """Write the runs as a trace that chrome://tracing and Perfetto show, with the memory in use as a counter.

        Args:
            path: A JSON file.
        """
        events = [*self._step_events(), *[event for run in self._runs for event in self._events_of(run)]]
        Path(path).write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")

    def _step_events(self) -> Iterator[dict[str, Any]]:
        for number, (start, end) in enumerate(zip([self._started, *self._steps], self._steps, strict=False)):
            yield self._event(f"step {number}", "step", 0, start, end)

    def _events_of(self, run: "_Run") -> Iterator[dict[str, Any]]:
        watched, thread, stamps = run
        if len(stamps) <= len(watched.parts):  # the pass was broken off
            return
        live = {moment.entry: moment.n_bytes for moment in moments([watched.plan])}
        for part, start, end in zip(watched.parts, stamps, stamps[1:], strict=False):
            yield self._event(part.name, watched.pass_name, thread, start, end, scope=part.scope)
            counter = {"ph": "C", "name": "bytes in use", "pid": 1, "tid": thread, "ts": self._microseconds(start)}
            yield {**counter, "args": {watched.pass_name: live.get(part.first, 0)}}

    def _event(self, name: str, category: str, thread: int, start: int, end: int, **args: str) -> dict[str, Any]:
        times = {"ts": self._microseconds(start), "dur": (end - start) / 1000}
        return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": thread, **times, "args": args}

    def _microseconds(self, stamp: int) -> float:
        return (stamp - self._started) / 1000

    def _last_step(self) -> "list[_Watched]":
        watched = list(self._watched.values())
        forward = [w for w in watched if w.pass_name == "forward"][-1:]
        return forward + [w for w in watched if w.pass_name == "backward"][-1:]

    def _steps_of(self, plan: Plan) -> Sequence[Step]:
        watched = self._watched.get(plan)
        if watched is None:
            watched = self._watched[plan] = _Watched(plan)
        keep = len(self._runs) < self._max_runs
        stamps = watched.begin()
        if keep:
            self._runs.append((watched, threading.get_ident() & 0xFFFF, stamps))
        return watched.steps()


@dataclass(frozen=True, slots=True)
class _MeasuredEntries:
    """Entries of a plan that are measured together: `first` is the number of the first one."""

    name: str
    scope: str
    first: int
    n_bytes: int
    implementation: str


class _Watched:
    """A plan whose steps have clocks in between."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.pass_name = "backward" if isinstance(plan, BackwardPlan) else "forward"
        self.parts: list[_MeasuredEntries] = []
        self.totals: list[int] = []
        self.n_runs = 0
        self._stamps: list[int] = []
        groups = list(_groups(plan.entries))
        # Backward, a function comes before those that it follows in the graph.
        scopes = _scopes(plan.entries) if self.pass_name == "forward" else _scopes(plan.entries[::-1])[::-1]
        bound: list[Step] = []
        seen: set[int] = set()
        lengths: list[int] = []
        for first, entries in groups:
            steps = plan.bound_steps(entries)
            waits = {entry.space for entry in entries if entry.space not in (None, HOST)}
            steps += [partial(ready, space) for space in waits if space is not None]
            names = dict.fromkeys(extra(step, "implementation") for step in steps)
            by = " + ".join(name for name in names if name)
            self.parts.append(_MeasuredEntries(_name(entries), scopes[first], first, _n_bytes(entries, seen), by))
            bound += steps
            lengths.append(len(steps))
        self.totals = [0] * len(groups)
        self._plain = self._with_clocks(bound, lengths)
        self._weights = plan.watched_weights(bound)
        self._trusting = self._plain if self._weights is None else self._with_clocks(self._weights.steps, lengths)

    def begin(self) -> list[int]:
        """Add up the last run; the list for the clocks of the next one."""
        self.settle()
        self._stamps = []
        return self._stamps

    def settle(self) -> None:
        """Add the times of the last run to the sums, if it came to its end."""
        stamps, self._stamps = self._stamps, []
        if len(stamps) > len(self.parts):
            self.n_runs += 1
            for number in range(len(self.parts)):
                self.totals[number] += stamps[number + 1] - stamps[number]

    def steps(self) -> Sequence[Step]:
        """Return the steps of the next run."""
        weights = self._weights
        return self._plain if weights is None or not weights.are_unchanged() else self._trusting

    def rows(self, total: int) -> list[Row]:
        """Return the parts with their times; `total`: nanoseconds of all plans."""
        return [
            Row(
                part.name,
                part.scope,
                self.pass_name,
                self.n_runs,
                spent / 1e6,
                spent / total,
                part.n_bytes,
                part.implementation,
            )
            for part, spent in zip(self.parts, self.totals, strict=True)
        ]

    def _with_clocks(self, steps: Sequence[Step], lengths: Sequence[int]) -> list[Step]:
        found: list[Step] = [self._clock]
        position = 0
        for length in lengths:
            found += [*steps[position : position + length], self._clock]
            position += length
        return found

    def _clock(self) -> None:
        self._stamps.append(time.perf_counter_ns())


_Run = tuple[_Watched, int, list[int]]


def _groups(entries: Sequence[Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """Yield the entries that are measured together, with the number of the first one of each group.

    Backends merge neighbouring element-wise functions and copies, so that these have no times of their own.
    """
    number = 0
    for merges, alike in groupby(entries, _may_merge):
        members = list(alike)
        for group in [members] if merges else [[member] for member in members]:
            yield number, group
            number += len(group)


def _may_merge(entry: Entry) -> bool:
    return entry.node is None or (entry.node.python is None and entry.node.spec.has("pointwise"))


def _name(entries: Sequence[Entry]) -> str:
    """Return the functions in the order in which they run; copies are named where there is nothing else."""
    names = [entry.node.spec.name for entry in entries if entry.node is not None]
    return " + ".join(names) if names else "copy"


def _scopes(entries: Sequence[Entry]) -> list[str]:
    """Return the scope of each entry; copies count to the function before them."""
    found = iter(scopes_of([entry.node for entry in entries if entry.node is not None]))
    scopes, current = [], ""
    for entry in entries:
        current = current if entry.node is None else next(found)
        scopes.append(current)
    return scopes


def _n_bytes(entries: Sequence[Entry], seen: set[int]) -> int:
    """Bytes of the arrays that appear here for the first time in the pass, and do not come from before it."""
    total = 0
    for entry in entries:
        for array, slot in zip(entry.arrays, entry.slots, strict=False):
            if array is not None and slot is None and id(array) not in seen:
                seen.add(id(array))
                total += int(getattr(array, "nbytes", 0))
    return total


def _sum_of(name: str, rows: Sequence[Row]) -> Row:
    passes = {row.pass_name for row in rows}
    scopes = {row.scope for row in rows}
    return Row(
        name,
        scopes.pop() if len(scopes) == 1 else "",
        passes.pop() if len(passes) == 1 else "",
        sum(row.n_calls for row in rows),
        sum(row.milliseconds for row in rows),
        sum(row.share for row in rows),
        sum(row.n_bytes for row in rows),
    )
