"""Compute samples in batches of many sizes, on one thread and on two, in deterministic mode: each has the same bits.

    python -m tools.lanes.batches --count 300 --seed 0    # samples of functions; 0 means all of them, with all sizes

Two kinds of calls: the samples of all functions, their rows drawn again and again until there are 33 of them, and layers
and networks of the sizes that people train. A function takes part if its samples do not meet: if the reference gives a row
the same result whatever stands in the other rows.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.context import context_scope
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import NNCoreError
from nn_core.ext_utils import list_extensions
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import is_deterministic, set_deterministic
from nn_core.testing.cases import DTYPES, context_of, functions_of
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of

from .perturbed import canonical
from .reliability import record, report_option

Numbers = np.ndarray[Any, Any]
#: The largest batch, and the sizes of the short form: each remainder of vectors and of blocks.
WHOLE: Final = 33
SIZES: Final = (1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33)
THREADS: Final = (1, 2)
#: Batches that the reference computes, to see whether their samples meet.
PROBES: Final = (1, 5)
#: By how much rows of the reference may differ that do not meet, in float64.
CLOSE: Final = 1e-9


@dataclass(frozen=True)
class Batched:
    """A call whose first axis is a batch.

    Attributes:
        call: Takes the inputs and returns results that have the batch first.
        inputs: With `WHOLE` rows where `rows` says so.
        rows: The numbers of the inputs that have a row for each sample.
    """

    name: str
    call: Callable[..., Any]
    inputs: Sequence[Numbers | None]
    rows: frozenset[int]

    def taken(self, size: int) -> list[Numbers | None]:
        """Return the inputs with the first `size` samples."""
        return [x[:size] if x is not None and n in self.rows else x for n, x in enumerate(self.inputs)]

    def results(self, size: int) -> list[Numbers]:
        """Return the results of the first `size` samples, and the gradients of what has a row for each."""
        inputs = [None if x is None else _variable(x) for x in self.taken(size)]
        outputs = self.call(*inputs)
        outputs = [y for y in (outputs if isinstance(outputs, (tuple, list)) else (outputs,)) if y.shape[:1] == (size,)]
        nn.forward_all(outputs)
        found = [y.d.copy() for y in outputs]
        roots = [y for y in outputs if y.need_grad and y.d.dtype.kind == "f"]
        if roots:
            for x in inputs:
                if x is not None and x.need_grad:
                    x.grad.zero()
            root = roots[0]
            root.backward(_gradient(root.shape))
            found += [inputs[n].g.copy() for n in sorted(self.rows) if inputs[n].need_grad]
        return found


def _variable(array: Numbers) -> nn.Variable:
    return nn.Variable.from_numpy_array(array.copy(), need_grad=array.dtype.kind == "f")


def _gradient(shape: Sequence[int]) -> Numbers:
    """Return a gradient whose rows do not depend on how many there are."""
    whole = np.random.default_rng(7).normal(size=(WHOLE, *shape[1:]))
    return whole[: shape[0]].astype(np.float32)


# The samples of functions


def rows_of(spec: FunctionSpec, sample: Sample) -> Batched | None:
    """Return the call with `WHOLE` rows, drawn from those of the sample; None if its samples meet, or have no axis."""
    numbers = numbers_of(spec, sample)
    rng = np.random.default_rng(WHOLE)
    for first in range(len(numbers)):
        size = _length(numbers[first])
        if size < 2:  # rows that are all the same do not show whether they meet
            continue
        alike = [n for n, x in enumerate(numbers) if n > first and _length(x) == size]
        for count in range(len(alike), -1, -1):
            for others in itertools.combinations(alike, count):
                chosen = frozenset({first, *others})
                drawn = rng.integers(size, size=WHOLE)
                inputs = [x[drawn] if x is not None and n in chosen else x for n, x in enumerate(numbers)]
                call = Batched(f"{spec.name} {sample.name}", _call_of(spec, sample), inputs, chosen)
                if not samples_meet(call):
                    return call
    return None


def _length(array: Numbers | None) -> int:
    return 0 if array is None or not array.ndim else len(array)


def _call_of(spec: FunctionSpec, sample: Sample) -> Callable[..., Any]:
    function = operator_of(spec)
    return lambda *inputs: function(*inputs, **sample.args)


def samples_meet(call: Batched) -> bool:
    """Return whether the reference gives a row another result in other company, or no result with a row for each sample."""
    with context_scope(nn.Context(["reference:double"])):
        try:
            whole, *parts = [call.results(size) for size in (WHOLE, *PROBES)]
        except NNCoreError:
            return True
    return not whole or not all(_alike(whole, part) for part in parts)


def _alike(whole: Sequence[Numbers], part: Sequence[Numbers]) -> bool:
    """Return whether the results of a smaller batch are those of the largest one, and zeros have the same signs."""
    return len(whole) == len(part) and all(
        np.allclose(y[: len(x)], x, CLOSE, CLOSE, equal_nan=True) and (np.signbit(y[: len(x)]) == np.signbit(x)).all()
        for y, x in zip(whole, part, strict=True)
    )


def samples(count: int, seed: int) -> Iterator[Batched]:
    """Draw samples of functions that always compute the same; 0: all of them."""
    pairs = [
        (spec, sample)
        for spec in functions_of([])
        if not (spec.has("seeded") or spec.has("dynamic_shape") or spec.updates)
        for sample in samples_of(spec)
    ]
    if count and count < len(pairs):
        pairs = [pairs[i] for i in sorted(np.random.default_rng(seed).choice(len(pairs), count, replace=False))]
    for spec, sample in pairs:
        if (call := rows_of(spec, sample)) is not None:
            yield call


# Layers and networks of usual sizes


def layer(
    function: Callable[..., Any], x: Sequence[int], *weights: Sequence[int], **arguments: Any
) -> Callable[[str], Batched]:
    """Return what makes a call of one function: samples of shape `x`, and weights that they share."""

    def batched(name: str) -> Batched:
        rng = np.random.default_rng(len(name))
        shapes = [(WHOLE, *x), *weights]
        inputs = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        return Batched(name, lambda *inputs: function(*inputs, **arguments), inputs, frozenset({0}))

    return batched


def paired(function: Callable[..., Any], *shapes: Sequence[int], **arguments: Any) -> Callable[[str], Batched]:
    """Return what makes a call of one function all of whose inputs have a row for each sample."""

    def batched(name: str) -> Batched:
        rng = np.random.default_rng(len(name))
        inputs = [rng.normal(size=(WHOLE, *shape)).astype(np.float32) for shape in shapes]
        return Batched(name, lambda *inputs: function(*inputs, **arguments), inputs, frozenset(range(len(shapes))))

    return batched


def _normalized(x: nn.Variable, *parameters: nn.Variable) -> nn.Variable:
    beta, gamma, mean, spread = parameters
    return F.batch_normalization(x, beta, gamma, mean, F.exp(spread), batch_stat=False)


def _perceptron(x: nn.Variable, *weights: nn.Variable) -> nn.Variable:
    for w in weights[:-1]:
        x = F.relu(F.affine(x, w))
    return F.log_softmax(F.affine(x, weights[-1]))


def _convnet(x: nn.Variable, a: nn.Variable, b: nn.Variable, w: nn.Variable) -> nn.Variable:
    x = F.max_pooling(F.relu(F.convolution(x, a, pad=(1, 1))), (2, 2))
    x = F.max_pooling(F.relu(F.convolution(x, b, pad=(1, 1))), (2, 2))
    return F.softmax(F.affine(x, w))


def _encoder(x: nn.Variable, w: nn.Variable, v: nn.Variable, up: nn.Variable, down: nn.Variable) -> nn.Variable:
    q, k, u = (F.affine(x, part, base_axis=2) for part in F.split(F.reshape(w, (64, 3, 64)), axis=1))
    x = x + F.affine(F.scaled_dot_product_attention(q, k, u), v, base_axis=2)
    x = x + F.affine(F.gelu(F.affine(x, up, base_axis=2)), down, base_axis=2)
    return F.layer_normalization(x, None, None, batch_axis=(0, 1))


def _recurrent(x: nn.Variable, w: nn.Variable) -> nn.Variable:
    h = F.constant(0, (x.shape[0], 48))
    for step in F.split(x, axis=1):
        h = F.tanh(F.affine(F.concatenate(step, h, axis=1), w))
    return h


_AFFINE = [(784, 256), (100, 384), (512, 384), (1000, 384), (1000, 64), (64, 10), (7, 3), (4096, 128), (300, 1)]
LAYERS: Final[Mapping[str, Callable[[str], Batched]]] = {
    **{f"affine {i} to {o}": layer(F.affine, (i,), (i, o), (o,)) for i, o in _AFFINE},
    "affine over 20 steps": layer(F.affine, (20, 96), (96, 200), (200,), base_axis=2),
    "batch_matmul": paired(F.batch_matmul, (40, 50), (50, 60)),
    "batch_matmul, long": paired(F.batch_matmul, (5, 3000), (3000, 7)),
    "convolution 3x3": layer(F.convolution, (32, 28, 28), (64, 32, 3, 3), (64,), pad=(1, 1)),
    "convolution 3x3, few channels": layer(F.convolution, (3, 33, 33), (16, 3, 3, 3), (16,), pad=(1, 1)),
    "convolution 1x1": layer(F.convolution, (64, 14, 14), (96, 64, 1, 1)),
    "convolution 7x7, stride 2": layer(F.convolution, (3, 64, 64), (32, 3, 7, 7), stride=(2, 2), pad=(3, 3)),
    "convolution in groups": layer(F.convolution, (32, 14, 14), (32, 4, 3, 3), group=8, pad=(1, 1)),
    "convolution, dilated": layer(F.convolution, (16, 40, 40), (16, 16, 3, 3), pad=(6, 6), dilation=(6, 6)),
    "convolution, 1-d": layer(F.convolution, (8, 400), (16, 8, 31), pad=(15,)),
    "depthwise_convolution": layer(F.depthwise_convolution, (32, 28, 28), (32, 3, 3), pad=(1, 1)),
    "deconvolution": layer(F.deconvolution, (32, 14, 14), (32, 16, 4, 4), (16,), stride=(2, 2)),
    "batch_normalization, trained": layer(_normalized, (32, 20, 20), *[(1, 32, 1, 1)] * 4),
    "layer_normalization": layer(F.layer_normalization, (300,), (1, 300), (1, 300)),
    "group_normalization": layer(F.group_normalization, (32, 9, 9), (1, 32, 1, 1), (1, 32, 1, 1), num_groups=4),
    "softmax": layer(F.softmax, (1000,)),
    "sum": layer(F.sum, (50, 700), axis=(1, 2)),
    "mean over the middle": layer(F.mean, (300, 40), axis=1),
    "norm": layer(F.norm, (50, 70), axis=(1, 2)),
    "cumsum": layer(F.cumsum, (300, 20), axis=1),
    "attention": paired(F.scaled_dot_product_attention, (4, 100, 32), (4, 100, 32), (4, 100, 32)),
    "average_pooling": layer(F.average_pooling, (16, 56, 56), kernel=(3, 3), stride=(2, 2)),
    "global_average_pooling": layer(F.global_average_pooling, (64, 13, 13)),
    "interpolate": layer(F.interpolate, (8, 32, 32), output_size=(57, 57), mode="linear"),
    "perceptron": layer(_perceptron, (784,), (784, 300), (300, 100), (100, 10)),
    "convolutional network": layer(_convnet, (1, 28, 28), (16, 1, 3, 3), (32, 16, 3, 3), (32 * 49, 10)),
    "encoder of a transformer": layer(_encoder, (30, 64), (64, 192), (64, 64), (64, 256), (256, 64)),
    "recurrent network": layer(_recurrent, (6, 24), (72, 48)),
}


# The search


def differing(call: Batched, sizes: Sequence[int]) -> list[str]:
    """Return in which batches, on how many threads, a sample's bits are not those of the largest batch on one thread."""
    nn.set_num_threads(1)
    whole = [y.copy() for y in call.results(WHOLE)]
    found = []
    for threads in THREADS:
        nn.set_num_threads(threads)
        for size in sizes:
            bits = call.results(size)
            if any(
                canonical(part).tobytes() != canonical(all_[:size]).tobytes() for part, all_ in zip(bits, whole, strict=True)
            ):
                found.append(f"{size} on {threads}")
    return found


def check(calls: Iterator[Batched], sizes: Sequence[int], dtype: str) -> Iterator[tuple[str, list[str]]]:
    """Run the calls on the CPU backend in deterministic mode; each with what differs."""
    threads, before = nn.num_threads(), is_deterministic()
    set_deterministic(True)
    try:
        with context_scope(context_of("cpu", dtype)):
            for call in calls:
                yield call.name, differing(call, sizes)
    finally:
        set_deterministic(before)
        nn.set_num_threads(threads or 1)


@click.command()
@click.option("--count", default=300, help="Samples of functions; 0: all, in batches of all sizes.")
@click.option("--seed", default=0)
@click.option("--dtype", default="float32", type=click.Choice(DTYPES))
@click.option("--only", default="", help="Calls whose names have this text.")
@report_option
def main(count: int, seed: int, dtype: str, only: str, report: Path | None) -> None:
    """Compute samples in batches of many sizes; the exit status is 1 if there is a finding."""
    if "cpu" not in list_extensions():
        raise click.UsageError("batches: nn-ext-cpu must be installed: pip install nn-ext-cpu")
    sizes = SIZES if count else range(1, WHOLE + 1)
    parts = {
        "samples of functions": samples(count, seed),
        "layers and networks": (make(name) for name, make in LAYERS.items()),
    }
    found_any = False
    for part, calls in parts.items():
        outcomes = Counter[bool]()
        for name, found in check((call for call in calls if only in call.name), sizes, dtype):
            outcomes[bool(found)] += 1
            if found:
                click.echo(f"--- {name}: a sample has other bits in batches of {', '.join(found)} threads")
        note = f"{len(sizes)} sizes, {len(THREADS)} numbers of threads, both passes"
        record(report, "batches", f"{part}, {dtype}", count=outcomes.total(), findings=outcomes[True], seed=seed, note=note)
        found_any = found_any or outcomes[True] > 0
    sys.exit(found_any)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.batches")
