"""Compute with memory that holds one thing or another before it is written: the results have the same bits.

    python -m tools.lanes.perturbed --count 500 --seed 0    # samples; 0 means all of them

Two processes fill fresh memory with different bytes, that of NumPy and of backends by what is done here, and what C++ code
takes by MALLOC_PERTURB_ of the GNU C library. They also take the samples in opposite orders, so that memory which is used
again holds something else.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
from nn_core.context import context_scope
from nn_core.engine.arrays import synced
from nn_core.ext_utils import list_extensions
from nn_core.testing.cases import Case, cases
from nn_core.testing.checks.graph import Graph, _has_gradient
from nn_core.variable import forward_all

from .reliability import record, report_option

#: 0x7f: large floats and integers; 0xff: NaN and -1.
PATTERNS: Final = (0x7F, 0xFF)


def filling(make: Callable[..., Any], pattern: int) -> Callable[..., Any]:
    """Return a function that makes uninitialised arrays, with the bytes of its arrays set to `pattern`."""

    @wraps(make)
    def filled(*args: Any, **kwargs: Any) -> Any:
        array = make(*args, **kwargs)
        if array.flags.c_contiguous and array.size and array.dtype.kind != "O":
            array.reshape(-1).view(np.uint8)[...] = pattern
        return array

    return filled


def perturb(pattern: int) -> None:
    """Fill what this process allocates from now on."""
    object.__setattr__(synced.HOST, "empty", filling(synced.HOST.empty, pattern))
    np.empty = filling(np.empty, pattern)
    np.empty_like = filling(np.empty_like, pattern)
    if "cpu" in list_extensions():
        from nn_ext_cpu import _native

        _native.empty = filling(_native.empty, pattern)


def results(case: Case) -> list[Any]:
    """Return the results and gradients of a sample in a graph, and the inputs, some of which it updates."""
    nn.seed(313)
    arrays: list[Any] = []
    with context_scope(case.context):
        graph = Graph(case)
        forward_all(graph.results)
        arrays += [np.array(result.data.get_data("r")) for result in graph.results]
        if _has_gradient(graph):
            root = graph.root()
            root.forward(clear_no_need_grad=True)
            arrays += graph.backward(root, clear_buffer=True)
        arrays += [None if x is None else np.array(x.data.get_data("r")) for x in graph.inputs]
    return arrays


def bits(case: Case) -> str:
    """Return a digest of the results and gradients of a sample in a graph, and of the inputs that it updates."""
    digest = hashlib.sha256()
    for array in results(case):
        digest.update(b"none" if array is None else repr((array.shape, array.dtype)).encode() + canonical(array).tobytes())
    return digest.hexdigest()


def canonical(array: Any) -> Any:
    """Return every NaN as the same NaN: the sign and payload of one that is computed depend on the order of operands."""
    return np.where(np.isnan(array), np.nan, array) if array.dtype.kind in "fc" else array


def chosen(count: int, seed: int) -> list[Case]:
    """`count` samples drawn from those of all operators, dtypes and backends; 0: all of them."""
    found = list(cases(sorted({"cpu", "reference"} & set(list_extensions())), fast=False))
    if count and count < len(found):
        found = [found[i] for i in sorted(np.random.default_rng(seed).choice(len(found), count, replace=False))]
    return found


def digests(pattern: int, count: int, seed: int) -> dict[str, str]:
    """Return the digest of each sample, with memory that holds `pattern`; odd patterns of `PATTERNS` go backwards."""
    picked = chosen(count, seed)
    perturb(pattern)
    return {str(case): bits(case) for case in (picked if pattern == PATTERNS[0] else reversed(picked))}


def _in_child(pattern: int, count: int, seed: int) -> dict[str, str]:
    environment = {**os.environ, "MALLOC_PERTURB_": str(pattern)}
    command = [
        sys.executable,
        "-m",
        "tools.lanes.perturbed",
        "--pattern",
        str(pattern),
        "--count",
        str(count),
        "--seed",
        str(seed),
    ]
    found: dict[str, str] = json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout)
    return found


def check(count: int, seed: int) -> Iterator[tuple[str, bool]]:
    """Each sample, and whether its bits depend on what memory held."""
    one, two = (_in_child(pattern, count, seed) for pattern in PATTERNS)
    for name, digest in one.items():
        yield name, two[name] != digest


@click.command()
@click.option("--count", default=500, help="Samples; 0: all.")
@click.option("--seed", default=0)
@click.option("--pattern", type=int, hidden=True, help="Of a child: which byte fills memory.")
@report_option
def main(count: int, seed: int, pattern: int | None, report: Path | None) -> None:
    """Compute samples with perturbed memory; the exit status is 1 if there is a finding."""
    if pattern is not None:
        click.echo(json.dumps(digests(pattern, count, seed)))
        return
    outcomes = dict(check(count, seed))
    for name in (findings := [name for name, differs in outcomes.items() if differs]):
        click.echo(f"--- {name} depends on what its memory held")
    part = "all samples, both backends" if not count else "samples"
    record(report, "perturbed memory", part, count=len(outcomes), findings=len(findings), seed=seed)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.perturbed")
