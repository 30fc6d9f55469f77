"""Compute every function in float16 and bfloat16, beside float64 from the same inputs, and count units in the last place.

    python -m tools.lanes.half_precision --count 300 --seed 0    # samples; 0 means all of them
    python -m tools.lanes.half_precision --write                 # write the bounds into docs/half_precision.md

A unit is the distance of neighbours in half precision next to the true number; for sums, whose terms cancel, at least next
to a sixteenth of the largest number of the array. Gradients are compared with those of what the forward pass has left: a
rule that reads results reads them rounded.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.context import context_scope
from nn_core.engine.arrays.casting import dtype_of
from nn_core.ext_utils import list_extensions
from nn_core.testing.cases import Case, cases, context_of
from nn_core.testing.checks.graph import Graph, _has_gradient
from nn_core.testing.operators import gradients_at
from nn_core.variable import Variable, forward_all

from .reliability import record, report_option

Array: TypeAlias = np.ndarray[Any, Any]

PAGE: Final = Path(__file__).parents[2] / "docs" / "half_precision.md"
START, END = "<!-- bounds: written by tools/lanes/half_precision.py -->", "<!-- end of bounds -->"

#: (bits of the fraction, exponent of the smallest normal number) of each dtype.
FORMATS: Final[Mapping[str, tuple[int, int]]] = {"float16": (10, -14), "bfloat16": (7, -126)}
#: A result rounded once is off by half a unit, and by a little more where float32 has rounded before.
ONCE: Final = 0.6


class Bound(NamedTuple):
    """By how many units results and gradients of some functions may be off, if by more than those that are rounded once."""

    functions: tuple[str, ...]
    forward: float
    gradient: float
    reason: str


BOUNDS: Final = (
    Bound(("BatchMatmul",), ONCE, 3.5, "the gradient of a broadcast matrix is a sum of rounded products"),
    Bound(("Dropout",), ONCE, 1.0, "the factor that is kept, 1 / (1 - p), is rounded"),
    Bound(("RNN", "LSTM", "GRU"), 1.0, 20.0, "the gradient reads the states of all steps, which are kept rounded"),
    Bound(("SpectralNorm",), ONCE, 2.5, "the gradient reads the rounded vectors of the iteration"),
    Bound(("MeanSubtraction",), ONCE, 1.0, "the gradient reads the rounded rate"),
    Bound(
        ("ScaledDotProductAttention", "DropoutAttention"),
        ONCE,
        20.0,
        "the gradient of the scores is a difference, of which the CPU computes one part from the rounded result",
    ),
    Bound(("multi_head_attention",), 8.0, 16.0, "products of products, each rounded"),
)
_OF: Final = {name: bound for bound in BOUNDS for name in bound.functions}
_ROUNDED_ONCE: Final = Bound((), ONCE, ONCE, "")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The largest distances of one call, in units, and how far they may be."""

    name: str
    forward: float
    gradient: float
    bound: Bound

    @property
    def is_finding(self) -> bool:
        """Whether a result is beyond its bound."""
        return self.forward > self.bound.forward or self.gradient > self.bound.gradient


def units(found: Any, true: Any, dtype: str, scale: float = 0.0) -> float:
    """Return the largest distance of `found` from `true`; infinite where one of them is no number and the other is one.

    Args:
        scale: The largest number of all arrays of the call.
    """
    found, true = np.asarray(found, np.float64), np.asarray(true, np.float64)
    with np.errstate(all="ignore"):
        limit = np.asarray(true.astype(dtype_of(dtype)), np.float64)
    finite = np.isfinite(limit) & np.isfinite(found)
    # beyond the largest number float32 results are right too: sums and parameters stay float32
    alike = (found == limit) | (np.isnan(found) & np.isnan(true)) | (np.isinf(limit) & np.isfinite(true))
    if not (finite | alike).all():
        return float("inf")
    if not finite.any():
        return 0.0
    fraction, smallest = FORMATS[dtype]
    most = float(np.abs(true[finite]).max())
    # what is 0 but for rounding in float64 is a sum whose terms cancel: only other arrays tell how large they are
    floor = max(most, scale if most < 1e-6 * scale else scale / 1024) / 16
    size = np.maximum(np.maximum(np.abs(true[finite]), floor), 2.0**smallest)
    return float((np.abs(found[finite] - true[finite]) / 2.0 ** (np.floor(np.log2(size)) - fraction)).max())


def largest(founds: Sequence[Any], trues: Sequence[Any], dtype: str) -> float:
    """Return the largest distance in some arrays of one call; None is no array."""
    pairs = [(found, true) for found, true in zip(founds, trues, strict=True) if found is not None and true is not None]
    pairs = [(found, true) for found, true in pairs if true.dtype.kind == "f" and true.size]
    numbers = [np.abs(true[np.isfinite(true)]) for _, true in pairs]
    scale = max((float(each.max()) for each in numbers if each.size), default=0.0)
    return max((units(found, true, dtype, scale) for found, true in pairs), default=0.0)


def of_sample(case: Case) -> Outcome:
    """Return a sample of the conformance kit in a graph, forward and backward."""
    nn.seed(313)
    with context_scope(case.context):
        graph = Graph(case)
        root = graph.root() if _has_gradient(graph) else None
        forward_all(graph.results if root is None else [root])
        results = [np.array(result.data.get_data("r")) for result in graph.results]
        truth = graph.truth
        forward = largest(results, truth.visible, case.dtype)
        gradient = 0.0
        if root is not None:
            gradients = graph.backward(root)
            kept = [_as(result, true) for result, true in zip(results, truth.visible, strict=True)]
            left = [*kept, *truth.outputs[len(kept) :]]
            true = gradients_at(case.spec, list(truth.after), left, truth.grads, case.sample.args)
            gradient = largest(gradients, true, case.dtype)
    return Outcome(str(case), forward, gradient, _OF.get(case.spec.name, _ROUNDED_ONCE))


def _as(result: Array, true: Array) -> Array:
    """Convert what the forward pass has left to the dtype of the truth."""
    return result.astype(np.float64) if true.dtype.kind == "f" else true


def _drawn(*shape: int, scale: float = 1.0) -> Array:
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape) * scale


_ROWS: Final = _drawn(4, 33, scale=300.0)
_POSITIVE: Final = np.abs(_drawn(4, 33)) + 0.1
_WEIGHTS: Final = tuple(_drawn(8, 8, scale=0.5) for _ in range(4))
#: Functions that consist of others, on numbers whose squares float16 does not hold.
COMPOSITES: Final[Mapping[str, tuple[Callable[..., Any], Sequence[Array]]]] = {
    "clip": (lambda x: F.clip(x, -100, 100), [_ROWS]),
    "clip_by_norm": (lambda x: F.clip_by_norm(x, 1.0, axis=1), [_ROWS]),
    "clip_by_norm of an array": (lambda x, limit: F.clip_by_norm(x, limit, axis=1), [_ROWS, np.full((1, 1), 2.0)]),
    "logsumexp": (lambda x: F.logsumexp(x, axis=1), [_ROWS]),
    "logsumexp of many": (F.logsumexp, [np.ones(70_000)]),
    "multi_head_attention": (
        lambda q, *w: F.multi_head_attention(q, q, q, 2, *w)[0],
        [_drawn(5, 2, 8), *_WEIGHTS],
    ),
    "norm": (lambda x: F.norm(x, axis=1), [_ROWS]),
    "norm_normalization": (lambda x: F.norm_normalization(x, axes=1), [_ROWS]),
    "rsqrt": (F.rsqrt, [_POSITIVE]),
    "sqrt": (F.sqrt, [_POSITIVE]),
    "square": (F.square, [_POSITIVE]),
    "std": (lambda x: F.std(x, axis=1), [_ROWS]),
    "std of two": (lambda x: F.std(x, axis=1, ddof=1), [np.array([[300.0, -300.0], [7.0, 7.0]])]),
    "var": (lambda x: F.var(x, axis=1), [_ROWS]),
    "layer statistics": (lambda x: F.layer_normalization(x, None, None, output_stat=True)[2], [_ROWS]),
}


def of_composite(name: str, backend: str, dtype: str) -> Outcome:
    """Return a function that consists of others, forward, backward and by `nn.grad`, beside the reference in float64."""
    function, arrays = COMPOSITES[name]
    arrays = [np.asarray(array.astype(dtype_of(dtype)), np.float64) for array in arrays]
    found, backward, built = _run(function, arrays, context_of(backend, dtype))
    true, gradients, _ = _run(function, arrays, context_of("reference", "float64"))
    gradient = max(largest(each, gradients, dtype) for each in (backward, built))
    bound = _OF.get(name, _ROWS_BOUND)
    return Outcome(f"{backend}-{name}-{dtype}", largest(found, true, dtype), gradient, bound)


#: Results of functions of others may be read rounded, too: by a factor of two in each function that reads one.
_ROWS_BOUND: Final = Bound((), ONCE, 2.0, "")


def _run(function: Callable[..., Any], arrays: Sequence[Array], context: nn.Context) -> tuple[list[Array], ...]:
    """Return the result, the gradients of the inputs by `backward`, and by `nn.grad`."""
    with context_scope(context):
        inputs = [Variable.from_numpy_array(array, need_grad=True) for array in arrays]
        y = function(*inputs)
        built = nn.grad([y], inputs)
        for variable in inputs:
            variable.grad.zero()
        y.forward()
        y.backward(1.0)
        forward_all(built)
        results = [y], inputs, built
        data = ([np.array(v.data.get_data("r"), np.float64) for v in results[0]],)
        grads = [np.array(v.grad.get_data("r"), np.float64) for v in inputs]
        return (*data, grads, [np.array(v.data.get_data("r"), np.float64) for v in built])


def chosen(count: int, seed: int, backends: Sequence[str]) -> list[Case]:
    """`count` samples drawn from those of all functions in half precision; 0: all of them."""
    found = [case for case in cases(backends, fast=False) if case.dtype in FORMATS]
    if count and count < len(found):
        found = [found[i] for i in sorted(np.random.default_rng(seed).choice(len(found), count, replace=False))]
    return found


def check(count: int, seed: int) -> Iterator[Outcome]:
    """Yield the outcome of each sample and of each function of others."""
    backends = sorted({"cpu", "reference"} & set(list_extensions()))
    for case in chosen(count, seed, backends):
        yield of_sample(case)
    for backend in backends:
        for dtype in FORMATS:
            for name in COMPOSITES:
                yield of_composite(name, backend, dtype)


def table() -> str:
    """Return the bounds as a table in Markdown."""
    lines = ["| functions | results | gradients | because |", "|---|---|---|---|"]
    lines.append(f"| all others | {ONCE:g} | {ONCE:g} | computed in float32 and rounded once |")
    for bound in BOUNDS:
        names = ", ".join(f"`{name}`" for name in bound.functions)
        lines.append(f"| {names} | {bound.forward:g} | {bound.gradient:g} | {bound.reason} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """Return the page with the table between its marks."""
    head, rest = text.split(START)
    return f"{head}{START}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


@click.command()
@click.option("--count", default=300, help="Samples; 0: all.")
@click.option("--seed", default=0)
@click.option("--write", is_flag=True, help="Only write the bounds into the page.")
@report_option
def main(count: int, seed: int, write: bool, report: Path | None) -> None:
    """Count units in the last place; the exit status is 1 if there is a finding."""
    if write:
        PAGE.write_text(page(PAGE.read_text()))
        return
    outcomes = list(check(count, seed))
    findings = [outcome for outcome in outcomes if outcome.is_finding]
    for each in findings:
        click.echo(f"--- {each.name}: results {each.forward:.3g}, gradients {each.gradient:.3g} units")
    part = "all samples, both backends" if not count else "samples"
    worst = f"at most {max(o.forward for o in outcomes):.2g} units forward, {max(o.gradient for o in outcomes):.2g} backward"
    record(report, "half precision", part, count=len(outcomes), findings=len(findings), seed=seed, note=worst)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.half_precision")
