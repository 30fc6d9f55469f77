"""Run a graph in one way and then in another: cached plans give the bits that a freshly built graph gives.

    python -m tools.lanes.pairs --count 100 --seed 0

A way is a choice of memory policy, hooks, roots, dtype of the data, and switched-off optimizations before a backward pass.
Each graph runs all ordered pairs of ways one after another, as a walk that has every way once after every way.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
from nn_core.ext_utils import get_extension_context, list_extensions
from nn_core.settings import OPTIMIZATIONS, without

from .fuzz.generate import generate
from .fuzz.namespace import fresh_namespace
from .fuzz.program import HALF_TYPES, Program, compiled
from .fuzz.runner import Reference
from .reliability import record, report_option

N_WAYS: Final = 32


@dataclass(frozen=True)
class Way:
    """A way to run a step.

    Attributes:
        clear: Whether the forward pass frees values that no gradient reads.
        hook: Whether hooks are called.
        more_roots: Whether other values are computed together with the loss.
        dtype: Of the arrays that are assigned to the leaves.
        without: Optimizations that are switched off.
    """

    clear: bool
    hook: bool
    more_roots: bool
    dtype: str
    without: tuple[str, ...]


def ways(rng: np.random.Generator) -> list[Way]:
    """All ways in random order, with one choice of optimizations besides all of them."""
    switched = tuple(OPTIMIZATIONS) if rng.random() < 0.3 else (str(rng.choice(list(OPTIMIZATIONS))),)
    flags = (False, True)
    found = [Way(*row) for row in itertools.product(flags, flags, flags, ("float32", "float64"), ((), switched))]
    return [found[i] for i in rng.permutation(N_WAYS)]


def walk(n: int) -> Iterator[int]:
    """Yield a closed walk that has each ordered pair of n numbers once: a de Bruijn sequence, by its Lyndon words."""
    for i in range(n):
        yield i
        for j in range(i + 1, n):
            yield from (i, j)


class Graph:
    """A program, built once."""

    def __init__(self, program: Program, reference: Reference, backend: str) -> None:
        self._program = program
        self._context = get_extension_context(backend)
        self.space = fresh_namespace() | {name: get_extension_context(backend, type_config=name) for name in HALF_TYPES}
        scope: dict[str, Any] = {}
        with nn.context_scope(self._context), nn.parameter_scope("pairs", scope):
            for leaf in program.leaves:
                self.space[f"v{leaf.number}"] = nn.Variable(leaf.shape, need_grad=leaf.need_grad)
            for step in program.steps:
                for line in step.lines():
                    exec(compiled(line), self.space)
            self._parameters = nn.get_parameters(grad_only=False)
        for name, parameter in self._parameters.items():
            parameter.d = reference.initial[name]

    def _variable(self, number: int) -> nn.Variable:
        found: nn.Variable = self.space[f"v{number}"]
        return found

    def step(self, way: Way) -> list[bytes]:
        """Return the bits of the roots and of all gradients."""
        trained = [self._variable(leaf.number) for leaf in self._program.leaves if leaf.need_grad]
        trained += [parameter for parameter in self._parameters.values() if parameter.need_grad]
        for leaf in self._program.leaves:
            values = leaf.values(self._program.seed, 0)
            self._variable(leaf.number).d = values.astype(way.dtype) if values.dtype.kind == "f" else values
        for variable in trained:
            variable.grad.zero()
        numbers = self._program.roots if way.more_roots else self._program.roots[-1:]
        roots = [self._variable(number) for number in numbers]
        hooks: dict[str, Any] = {"function_post_hook": lambda f: None} if way.hook else {}
        with ExitStack() as stack:
            if way.without:
                stack.enter_context(without(*way.without))
            nn.forward_all(roots, clear_no_need_grad=way.clear, **hooks)
            values = [root.d.tobytes() for root in roots]
            roots[-1].backward(clear_buffer=way.clear, **hooks)
        return values + [variable.g.tobytes() for variable in trained]


def programs(seed: int, count: int) -> Iterator[tuple[Program, Reference]]:
    """Random programs that a second pass finds as the first one did: without random functions and running statistics."""
    number = 1_000_000 * seed
    while count:
        with nn.context_scope(nn.Context(["reference"])):
            program = generate(number)
            reference = Reference(program)
        number += 1
        if not reference.once and not program.unlinked:
            count -= 1
            yield program, reference


def check(program: Program, reference: Reference, backend: str) -> Iterator[str]:
    """Run all ordered pairs of ways on one program; texts of what differs."""
    order = ways(np.random.default_rng([program.seed, 9]))
    fresh = []
    for way in order:
        nn.clear_caches()
        fresh.append(Graph(program, reference, backend).step(way))
    graph, before = Graph(program, reference, backend), None
    for number in [*walk(len(order)), 0]:
        if graph.step(order[number]) != fresh[number]:
            yield f"program {program.seed}, {backend}: {order[number]} after {before} differs from a graph that is built anew"
        before = order[number]


@click.command()
@click.option("--count", default=2, help="Graphs; the backends take turns.")
@click.option("--seed", default=0)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Run ordered pairs of ways; the exit status is 1 if there is a finding."""
    backends = sorted({"cpu", "reference"} & set(list_extensions()))
    graphs, findings = Counter[str](), Counter[str]()
    for (program, reference), backend in zip(programs(seed, count), itertools.cycle(backends)):
        graphs[backend] += 1
        for text in check(program, reference, backend):
            findings[backend] += 1
            click.echo(f"--- {text}")
    for backend, number in graphs.items():
        pairs = number * N_WAYS**2
        record(report, "pairs of ways", backend, count=pairs, findings=findings[backend], seed=seed, note=f"{number} graphs")
    sys.exit(findings.total() > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.pairs")
