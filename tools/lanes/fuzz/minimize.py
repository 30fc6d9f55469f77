"""Make a program and its way smaller as long as they still show a difference; print them as a script."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

import nn_core as nn
from nn_core.errors import NNCoreError

from .namespace import HEAD
from .program import Program, Step
from .runner import Difference, Reference, Run, perform
from .ways import Way

Case = tuple[Program, Way]


def attempt(case: Case) -> tuple[Run, Difference | None] | None:
    """Run a case; None where the program cannot be built."""
    try:
        with nn.context_scope(nn.Context(["reference"])):
            reference = Reference(case[0])
        return perform(reference, case[1])
    except (NNCoreError, KeyError, IndexError, ValueError, TypeError, AttributeError):
        return None


def minimized(case: Case, rounds: int = 6, seconds: float = 15) -> tuple[Run, Difference]:
    """Return the smallest case that was found, with its difference."""
    first = attempt(case)
    assert first is not None and first[1] is not None
    run, difference = first
    kind = _kind(difference)
    end = time.monotonic() + seconds

    def differs(other: Case) -> bool:
        return time.monotonic() < end and _differs(other, kind)

    for _ in range(rounds):
        smaller = _smaller(case, differs)
        if smaller is None:
            break
        case = smaller
    last = attempt(case)
    assert last is not None
    return (last[0], last[1]) if last[1] is not None else (run, difference)


def _kind(difference: Difference) -> str:
    """Return the class of an exception, or how the result is wrong."""
    error = re.search(r": (\w+): ", difference.title)
    if error is not None:
        return error.group(1)
    return next((mark for mark in ("differs", "has shape", "must refuse", "longer") if mark in difference.title), "")


def _differs(case: Case, kind: str) -> bool:
    found = attempt(case)
    return found is not None and found[1] is not None and _kind(found[1]) == kind


def _smaller(case: Case, differs: Callable[[Case], bool]) -> Case | None:
    changed = False
    for change in (_fewer_actions, _fewer_switches, _fewer_roots, _fewer_steps, _fewer_flags):
        progress = True
        while progress:
            progress = False
            for other in change(case):
                if differs(other):
                    case, progress, changed = other, True, True
                    break
    return case if changed else None


def _fewer_actions(case: Case) -> Iterator[Case]:
    program, way = case
    n = len(way.actions)
    for size in (n // 2, n // 4, 1):
        for start in range(0, n, size or 1):
            if size:
                yield program, replace(way, actions=way.actions[:start] + way.actions[start + size :])


def _fewer_switches(case: Case) -> Iterator[Case]:
    program, way = case
    if way.without:
        yield program, replace(way, without=())
    for n in range(len(way.without)):
        yield program, replace(way, without=way.without[:n] + way.without[n + 1 :])
    if way.type_config != "float":
        yield program, replace(way, type_config="float")
    if way.backend != "reference":
        yield program, replace(way, backend="reference")


def _fewer_roots(case: Case) -> Iterator[Case]:
    program, way = case
    for root in program.roots[:-1]:
        yield program.with_roots(n for n in program.roots if n != root), way
    for step in reversed(program.steps):
        for number in step.outs:
            if number != program.loss:
                yield program.with_roots([*program.roots[:-1], number]), _renamed(way, program.loss, number)


def _renamed(way: Way, loss: int, other: int) -> Way:
    actions = tuple(
        replace(a, values=(a.values[0], other)) if a.kind == "forward" and a.values[1] == loss else a for a in way.actions
    )
    return replace(way, actions=actions)


def _fewer_steps(case: Case) -> Iterator[Case]:
    program, way = case
    for step in reversed(program.steps):
        if program.loss not in step.outs:
            yield program.without_step(step), way
            for source in step.inputs:
                if len(step.outs) == 1 and step.shapes[0] == _shape(program, source):
                    yield _bypassed(program, step, source), way


def _shape(program: Program, number: int) -> tuple[int, ...]:
    for item in program.items:
        if number in item.outs:
            return item.shapes[item.outs.index(number)] if isinstance(item, Step) else item.shape
    return ()


def _bypassed(program: Program, step: Step, source: int) -> Program:
    out = step.outs[0]
    items = tuple(
        replace(item, inputs=tuple(source if n == out else n for n in item.inputs)) if isinstance(item, Step) else item
        for item in program.items
        if item is not step
    )
    roots = tuple(source if n == out else n for n in program.roots)
    return replace(program, items=items, roots=roots).pruned()


def _fewer_flags(case: Case) -> Iterator[Case]:
    program, way = case
    for n, item in enumerate(program.items):
        if isinstance(item, Step) and item.flags - {"plain", "unlink"}:
            items = (*program.items[:n], replace(item, flags=item.flags & {"unlink"}), *program.items[n + 1 :])
            yield replace(program, items=items), way
    if program.batch:
        yield replace(program, batch=frozenset()), way


def script(run: Run, difference: Difference) -> str:
    """Return a program that fails as the run did."""
    data = [
        f"    {key!r}: np.array({np.asarray(array).tolist()!r}, dtype_of({array.dtype.name!r})).reshape({array.shape}),"
        for key, array in run.data.items()
    ]
    head = f"# program {run.program.seed}, {run.way.mode}: {difference.title.splitlines()[0]}\n{HEAD}"
    tables = ["D = {", *data, "}", "", "", "def data(*key):", "    return D[key]", "", ""]
    names = ["parameter = nn.parameter.get_parameter_or_create"] if run.reference.parameters else []
    return "\n".join([head, *tables, *names, *run.lines, difference.check, ""])
