"""Compute shapes and graphs that never come back: the caches stay within their budget, and the process within a limit.

    python -m tools.lanes.growth --shapes 2000 --structures 20000 --seed 0

Static graphs, dynamic graphs, and one static graph whose input changes its shape take turns.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.runtime.caches import caches
from nn_core.ext_utils import get_extension_context, list_extensions
from nn_core.settings import cache_mb, set_cache_mb

from .reliability import record, report_option

#: The budget of the caches, and how far the process may grow: allocators and libraries keep some memory of their own.
BUDGET_MB: Final = 48
LIMIT_MB: Final = BUDGET_MB + 64
#: Steps after which the process has loaded what it needs.
WARM_UP: Final = 20
Step = Callable[[int], None]


def resident_mb() -> float:
    """Memory of this process in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cached_mb() -> float:
    """Memory that the caches say they hold."""
    return sum(report.n_bytes for report in caches()) / 2**20


def _network(x: nn.Variable) -> nn.Variable:
    h = F.relu(PF.convolution(x, 64, (3, 3), pad=(1, 1), stride=(2, 2), name="a"))
    h = F.relu(PF.batch_normalization(PF.convolution(h, 128, (3, 3), pad=(1, 1), name="b"), name="b"))
    return F.mean(PF.convolution(h, 64, (1, 1), name="c") ** 2)


def _shape(number: int) -> tuple[int, ...]:
    """Return a shape of images for each number."""
    height, width = divmod(number, 60)
    return (1, 8, 8 + height, 8 + width)


def shapes(seed: int) -> Step:
    """Return a step for images of a shape that no earlier step had."""
    reshaped = nn.Variable(_shape(0))
    result = _network(reshaped)

    def step(number: int) -> None:
        shape = _shape(number)
        values = np.random.default_rng([seed, number]).random(shape, np.float32)
        way = number % 3
        if way == 0:
            reshaped.reset_shape(shape, True)
            reshaped.d = values
            _train(result, dynamic=False)
            return
        x = nn.Variable.from_numpy_array(values)
        with nn.auto_forward(way == 2):
            _train(_network(x), dynamic=way == 2)

    return step


def _train(loss: nn.Variable, *, dynamic: bool) -> None:
    for parameter in nn.get_parameters().values():
        parameter.grad.zero()
    if not dynamic:
        loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    if not np.isfinite(loss.d):
        raise AssertionError(f"the loss must be finite, got {loss.d}")


_UNARY: Final = (F.tanh, F.sigmoid, F.relu, F.sin, F.cos, F.elu, F.swish, F.softplus, F.abs)
_BINARY: Final = (F.add2, F.sub2, F.mul2, F.maximum2, F.minimum2)


def structures(seed: int) -> Step:
    """Return a step for a graph of random functions, in threes of which one is static."""

    def step(number: int) -> None:
        rng = np.random.default_rng([seed, number])
        leaf = nn.Variable.from_numpy_array(rng.normal(size=(3, 4)).astype(np.float32), need_grad=True)
        dynamic = number % 3 > 0
        with nn.auto_forward(dynamic):
            values = [leaf]
            for _ in range(int(rng.integers(3, 25))):
                a, b = (values[i] for i in rng.integers(len(values), size=2))
                if rng.random() < 0.6:
                    values.append(_UNARY[rng.integers(len(_UNARY))](a))
                else:
                    values.append(_BINARY[rng.integers(len(_BINARY))](a, b))
            loss = F.mean(F.tanh(values[-1]) * float(rng.random()))
        leaf.grad.zero()
        _train(loss, dynamic=dynamic)

    return step


LANES: Final[dict[str, Callable[[int], Step]]] = {"ever-new shapes": shapes, "random structures": structures}


def check(lane: str, count: int, seed: int, figures: dict[str, float]) -> Iterator[str]:
    """Run a lane; texts of what grew too far. `figures` gets the most that the caches held, and the growth."""
    before = cache_mb()
    set_cache_mb(BUDGET_MB)
    nn.clear_caches()
    backend = "cpu" if "cpu" in list_extensions() else "reference"
    try:
        with nn.context_scope(get_extension_context(backend)), nn.parameter_scope("growth", {}):
            step = LANES[lane](seed)
            start = 0.0
            figures.update(cached=0.0, grown=0.0)
            for number in range(count):
                step(number)
                if number == WARM_UP:
                    start = resident_mb()
                figures["cached"] = max(figures["cached"], cached_mb())
                if number > WARM_UP:
                    figures["grown"] = max(figures["grown"], resident_mb() - start)
    finally:
        set_cache_mb(before)
    if figures["cached"] > BUDGET_MB:
        yield f"{lane}: the caches held {figures['cached']:.0f} MB, of {BUDGET_MB} MB"
    if figures["grown"] > LIMIT_MB:
        yield f"{lane}: the process grew by {figures['grown']:.0f} MB, of {LIMIT_MB} MB"


@click.command()
@click.option("--shapes", "n_shapes", default=200, help="Ever-new shapes.")
@click.option("--structures", "n_structures", default=2000, help="Random structures.")
@click.option("--seed", default=0)
@report_option
def main(n_shapes: int, n_structures: int, seed: int, report: Path | None) -> None:
    """Compute what never comes back; the exit status is 1 if there is a finding."""
    n_findings = 0
    for lane, count in zip(LANES, (n_shapes, n_structures), strict=True):
        figures: dict[str, Any] = {}
        findings = list(check(lane, count, seed, figures))
        n_findings += len(findings)
        for text in findings:
            click.echo(f"--- {text}")
        note = f"caches at most {figures['cached']:.0f} MB of {BUDGET_MB}, grew by {figures['grown']:.0f} MB of {LIMIT_MB}"
        record(report, "memory", lane, count=count, findings=len(findings), seed=seed, note=note)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.growth")
