"""Plant one NaN, infinity, negative zero or subnormal number in a sample: all ways to run it give the same pattern.

    python -m tools.lanes.specials --count 2000 --seed 0             # so many planted numbers; 0 means all of them
    python -m tools.lanes.specials --count 0 --ways 4 --dtype bfloat16 --backend cpu
    python -m tools.lanes.specials --count 0 --ways 2 --dtype float16 --share 1/8    # the first eighth of the samples
    PYTHONPATH=extensions/nn_ext_cuda/tests/emulation python -m tools.lanes.specials --emulated emulated_device --backend cuda

The number is in one place of one floating input, or of the gradient of one output. Results and gradients of the reference, run
function by function, are the standard. docs/special_values.md is the promise that this lane proves.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.context import context_scope
from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.graph.apply import operator_of
from nn_core.engine.graph.infer import input_entries
from nn_core.errors import NNCoreError
from nn_core.ext_utils import list_extensions
from nn_core.operators.spec.model import WHOLE_DTYPES, FunctionSpec
from nn_core.settings import OPTIMIZATIONS, without
from nn_core.testing.cases import DTYPES, context_of, functions_of
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of
from nn_core.variable import forward_all

from .reliability import record, report_option

#: A number of each kind that is neither zero nor normal in the dtype.
SUBNORMAL: Final[Mapping[str, float]] = {"float16": 2e-6, "bfloat16": 1e-39, "float32": 1e-40, "float64": 1e-310}
SPECIALS: Final[Mapping[str, float]] = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf, "-0.0": -0.0, "subnormal": 0.0}
#: Functions, and topics, that multiply what takes no part, such as padding, by 0, or leave it out, as they like: there NaN and
#: infinity may reach more than what depends on them, and become each other.
SPREADING: Final = frozenset(
    {"convolution", "attention", "image", "normalization", "CumProd"}
    | {"BinaryConnectConvolution", "BinaryWeightConvolution", "INQConvolution"}
    | {"RoiAlign", "RoiAlignBackward"}
    | {"BatchDet", "BatchLogdet", "BatchInv", "BatchCholesky"}
)
#: The same of topics in 16 bits: a state that is kept so may be 1.0, where its slope is 0 and that of the true one is not.
SPREADING_IN_HALF: Final = frozenset({"recurrent"})
#: Element-wise functions and moves that add up, or choose among equal numbers as 0.0 and -0.0 are.
UNSIGNED: Final = frozenset(
    {"Maximum2", "Minimum2", "MaximumScalar", "MinimumScalar", "Sort", "FixedPointQuantize"}
    | {"BinaryCrossEntropy", "PadBackward", "ShiftBackward"}
)
#: Functions of powers, to which subnormal numbers are zeros in float32.
UNDERFLOWING: Final = frozenset({"Norm"})
#: Passes of a static graph: from the second on, a plan has its steps bound and merged.
PASSES: Final = 2
#: Steps of a dynamic graph: from the third on, its backward pass is a template.
STEPS: Final = 3

Numbers = np.ndarray[Any, Any]
#: Results and gradients by what they are, or the class of the error that a call ends in.
Values = dict[str, Numbers]
Outcome = Values | str


@dataclass(frozen=True)
class Planted:
    """A special number in one place of a sample.

    Attributes:
        position: Of the input among the inputs; beyond them, of the output whose gradient has it.
        place: Of the element.
        chained: Whether the function is between others, which may be run together with it.
    """

    spec: FunctionSpec
    sample: Sample
    dtype: str
    special: str
    position: int
    place: int
    chained: bool

    def __str__(self) -> str:
        count = len(numbers_of(self.spec, self.sample))
        where = f"input {self.position}" if self.position < count else f"gradient of output {self.position - count}"
        chained = ", in a chain" if self.chained else ""
        return f"{self.spec.name} {self.sample.name} {self.dtype}: {self.special} at {self.place} of {where}{chained}"

    def plant(self, array: Numbers) -> Numbers:
        """`array` in the dtype of the sample with the number in its place."""
        changed = array.astype(dtype_of(self.dtype))
        place = self.place % changed.size
        number = SPECIALS.get(self.special, changed.reshape(-1)[place] + (self.special == "moved"))
        changed.reshape(-1)[place] = SUBNORMAL[self.dtype] if self.special == "subnormal" else number
        return changed

    def inputs(self) -> list[Numbers | None]:
        """Return the inputs in the dtype of the sample, with the number if it is in one of them."""
        found: list[Numbers | None] = []
        for n, array in enumerate(numbers_of(self.spec, self.sample)):
            if array is None or array.dtype.kind != "f":
                found.append(array if array is None else array.copy())
            else:
                found.append(self.plant(array) if n == self.position else array.astype(dtype_of(self.dtype)))
        return found

    def gradient(self, shape: tuple[int, ...], number: int) -> Numbers:
        """Return the gradient of output `number`, with the special number if it is there."""
        drawn: Numbers = np.random.default_rng([number, len(shape)]).uniform(0.5, 1.5, shape)
        here = number == self.position - len(numbers_of(self.spec, self.sample))
        return self.plant(drawn) if here and drawn.size else drawn.astype(dtype_of(self.dtype))


@dataclass(frozen=True)
class Way:
    """A way to run a sample.

    Attributes:
        run: One of `RUNS`.
        optimized: Whether the optimizations are on.
    """

    backend: str
    run: str
    optimized: bool

    def __str__(self) -> str:
        return f"{self.backend} {self.run}{'' if self.optimized else ', nothing optimized'}"


class Graph:
    """A planted sample as a graph: its results, and gradients of its floating inputs."""

    def __init__(self, planted: Planted, trained: bool) -> None:
        self._planted = planted
        self._inputs = [_variable(array, trained) for array in planted.inputs()]
        given = [_before(x) if planted.chained and x is not None and x.need_grad is not None else x for x in self._inputs]
        results = operator_of(planted.spec)(*given, **planted.sample.args)
        self.results: list[nn.Variable] = list(results) if isinstance(results, tuple) else [results]
        if planted.chained:
            self.results[0] = _after(self.results[0])
        self.differentiable = (
            trained
            and planted.spec.differentiable
            and planted.sample.gradient
            and any(x is not None and x.need_grad for x in self._inputs)
        )

    def plant(self, planted: Planted) -> None:
        """Take the numbers of another one, which has the same sample."""
        self._planted = planted
        for x, array in zip(self._inputs, planted.inputs(), strict=True):
            if x is not None and array is not None:
                x.data.get_data("w")[...] = array

    def values(self, clear: bool) -> Values:
        """Return the results; then the gradients of the inputs for each floating output, of the first one if it clears."""
        found = {f"output {n}": np.array(result.data.get_data("r")) for n, result in enumerate(self.results)}
        for number, result in enumerate(self.results if self.differentiable else []):
            if result.need_grad and result.dtype.kind not in "iub" and not (clear and number):
                found |= self._backward(number, result, clear)
        return found

    def _backward(self, number: int, result: nn.Variable, clear: bool) -> Values:
        trained = {n: x for n, x in enumerate(self._inputs) if x is not None and x.need_grad}
        for x in trained.values():
            x.grad.zero()
        result.backward(self._planted.gradient(result.shape, number), clear_buffer=clear)
        return {f"gradient of input {n} from output {number}": np.array(x.grad.get_data("r")) for n, x in trained.items()}


def _variable(array: Numbers | None, trained: bool) -> nn.Variable | None:
    if array is None:
        return None
    return nn.Variable.from_numpy_array(array, need_grad=trained and array.dtype.kind not in "iub")


def _before(x: nn.Variable) -> nn.Variable:
    """Return a function that changes no floating number, of which backends make one step with the next."""
    return F.mul_scalar(x, 1.0) if x.dtype.kind not in "iub" else x


def _after(y: nn.Variable) -> nn.Variable:
    """Functions that backends run together with the one before."""
    if y.dtype.kind in "iub":
        return y
    rectified = F.relu(y)
    if y.ndim == 4 and min(y.shape) > 1:
        rectified = F.max_pooling(rectified, (2, 2))
    return F.mul_scalar(rectified, 2.0)


#: The graph that ran a sample in some way, which the next number in the same sample runs in too.
Held = dict[str, Graph]


def keep(planted: Planted, held: Held) -> Values:
    """Keep all values."""
    return _static(planted, held, {}, clear=False)


def train(planted: Planted, held: Held) -> Values:
    """Clear what no gradient reads."""
    return _static(planted, held, {"clear_no_need_grad": True}, clear=True)


def infer(planted: Planted, held: Held) -> Values:
    """Clear everything but the results."""
    return _static(planted, held, {"clear_buffer": True}, trained=False)


def infer_needless(planted: Planted, held: Held) -> Values:
    """Clear what no gradient reads, where no input has one."""
    return _static(planted, held, {"clear_no_need_grad": True}, trained=False)


def _static(planted: Planted, held: Held, flags: dict[str, Any], trained: bool = True, clear: bool = False) -> Values:
    passes = 1
    # a second pass would not find what the first one did, and another number gives other shapes
    once = planted.spec.updates or planted.spec.has("seeded") or planted.spec.has("dynamic_shape")
    if once or "graph" not in held:
        held["graph"] = Graph(planted, trained)
        passes = 1 if once else PASSES
    else:
        held["graph"].plant(planted)
    graph, found = held["graph"], Values()
    for _ in range(passes):
        nn.seed(313)
        forward_all(graph.results, **flags)
        found = graph.values(clear)
    return found


def dynamic(planted: Planted, held: Held) -> Values:
    """Compute while the graph is built."""
    found: Values = {}
    for _ in range(1 if held else STEPS):
        nn.seed(313)
        with nn.auto_forward():
            held["graph"] = Graph(planted, True)
            found = held["graph"].values(True)
    return found


RUNS: Final[Mapping[str, Callable[[Planted, Held], Values]]] = {
    "keep": keep,
    "train": train,
    "infer": infer,
    "infer_needless": infer_needless,
    "dynamic": dynamic,
}
STANDARD: Final = Way("reference", "keep", False)
#: The places where the standard ends in an error, which the backward pass may have raised.
WITHOUT_GRADIENTS: Final = Way("reference", "infer", False)


class Bench:
    """All ways to run a sample, for one planted number after another; they share what was built and compiled for the first."""

    def __init__(self) -> None:
        self._held = dict[Way, Held]()

    def outcome(self, planted: Planted, way: Way) -> Outcome:
        """Return what `way` gives, or the class of the error in which it ends."""
        with ExitStack() as stack:
            stack.enter_context(context_scope(context_of(way.backend, planted.dtype)))
            stack.enter_context(np.errstate(all="ignore"))
            if not way.optimized:
                stack.enter_context(without(*OPTIMIZATIONS))
            try:
                return RUNS[way.run](planted, self._held.setdefault(way, {}))
            except Exception as error:
                self._held.pop(way)
                return f"{type(error).__name__}{'' if isinstance(error, NNCoreError) else ', which is none of ours'}"


def pattern(array: Numbers) -> Numbers:
    """Return a letter for each number: n, + or - for an infinity, p or m for a number beyond zero, 0 or _ for a zero."""
    if array.dtype.kind in "iub":
        return np.where(array != 0, "p", "0")
    wide = array.astype(np.float64)
    negative = np.signbit(wide)
    letters = np.where(negative, "m", "p")
    letters = np.where(wide == 0, np.where(negative, "_", "0"), letters)
    letters = np.where(np.isinf(wide), np.where(negative, "-", "+"), letters)
    return np.where(np.isnan(wide), "n", letters)


class Standard:
    """Return what the reference gives, and which numbers depend on the one that was planted."""

    def __init__(self, planted: Planted, bench: Bench) -> None:
        self._planted = planted
        self._bench = bench
        self.outcome = bench.outcome(planted, STANDARD)

    def differs(self, found: Outcome, way: Way = STANDARD) -> str:
        """Return how an outcome differs; empty where it does not."""
        expected = self.outcome
        if isinstance(expected, str) and way.run.startswith("infer"):
            expected = self._bench.outcome(self._planted, WITHOUT_GRADIENTS)
        if isinstance(found, str) or isinstance(expected, str):
            bad = found != expected or "none of ours" in found
            return f"{_text(found)} in place of {_text(expected)}" if bad else ""
        for name in [name for name in found if name in expected]:
            text = self._differs(name, found[name], expected[name])
            if text:
                return f"{name}: {text}"
        return ""

    def _differs(self, name: str, one: Numbers, other: Numbers) -> str:
        if one.shape != other.shape:
            return f"shape {one.shape} in place of {other.shape}"
        wrong = (pattern(one) != pattern(other)) & ~_close(one, other)
        if self._planted.special == "subnormal" and self._planted.spec.name in UNDERFLOWING:
            return ""
        pooled = self._planted.chained and one.ndim == 4
        if not (name.startswith("output") and _has_signs(self._planted.spec)) or pooled:
            wrong &= (one != 0) | (other != 0)
        if wrong.any() and self._is_spreading():
            lost = np.isfinite(one) & ~np.isfinite(other)
            wrong &= np.zeros_like(wrong) if self._may_end(name) else lost & self._depending(name)
        return _first(wrong, one, other)

    def _is_spreading(self) -> bool:
        spec, is_half = self._planted.spec, self._planted.dtype in ("float16", "bfloat16")
        return bool((SPREADING | SPREADING_IN_HALF if is_half else SPREADING) & {spec.topic, spec.name})

    def _may_end(self, name: str) -> bool:
        """Return whether a ReLU behind the function makes 0 of what is or is not NaN: of infinities, and of all gradients."""
        rectified = self._planted.chained or self._planted.spec.name.startswith("Fused")
        return rectified and (self._planted.special != "nan" or not name.startswith("output"))

    def _depending(self, name: str) -> Numbers:
        """Tell where a result changes with the number in the place, if it is an ordinary one, by more than rounding."""
        ordinary = (replace(self._planted, special=special, dtype="float64") for special in ("plain", "moved"))
        plain, moved = (Bench().outcome(planted, STANDARD) for planted in ordinary)
        assert not isinstance(plain, str) and not isinstance(moved, str)
        scale = np.max(np.abs(plain[name]), initial=1e-3)
        return np.asarray(np.abs(plain[name] - moved[name]) > 1e-9 * scale)


def _has_signs(spec: FunctionSpec) -> bool:
    """Return whether the sign of a zero is promised: where each element comes from one element, and nothing is chosen or
    added up.
    """
    moves = spec.has("view") or spec.topic == "shape"
    return (spec.has("pointwise") or moves) and spec.name not in UNSIGNED


def _text(found: Outcome) -> str:
    return found if isinstance(found, str) else "numbers"


def _first(wrong: Numbers, one: Numbers, other: Numbers) -> str:
    if not wrong.any():
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    return f"{one[place]} in place of {other[place]} at {place}, {int(wrong.sum())} of {wrong.size}"


def _close(one: Numbers, other: Numbers) -> Numbers:
    """Tell where both are finite, and zero or not, or of this sign or the other by rounding alone."""
    if one.dtype.kind in "iub" or other.dtype.kind in "iub":
        return np.zeros(one.shape, bool)
    left, right = one.astype(np.float64), other.astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    scale = max(1.0, float(np.max(np.abs(right), initial=0.0, where=np.isfinite(right))))
    both_zero = (left == 0) & (right == 0)
    near = np.abs(np.where(finite, left, 0) - np.where(finite, right, 0)) <= 1e-2 * scale
    return finite & near & ~both_zero


def all_planted(dtypes: Sequence[str], rng: np.random.Generator) -> Iterator[Planted]:
    """Each special number in each floating input and gradient of each sample, in a place that is drawn."""
    for dtype in dtypes:
        for spec in functions_of(["cpu"] if "cpu" in list_extensions() else ["reference"]):
            for sample in samples_of(spec):
                for chained in (False, True) if _is_floating(spec, sample) else (False,):
                    for position in _positions(spec, sample):
                        for special in SPECIALS:
                            yield Planted(spec, sample, dtype, special, position, int(rng.integers(2**31)), chained)


def _is_floating(spec: FunctionSpec, sample: Sample) -> bool:
    """Return whether the first output is, as it must be in a chain."""
    if spec.outputs[0].dtype != "same":
        return spec.outputs[0].dtype == "float"
    arrays = numbers_of(spec, sample)
    given = zip(input_entries(spec, len(arrays)), arrays, strict=True)
    kinds = [array.dtype.kind for entry, array in given if array is not None and entry.dtype == "same"]
    return kinds[:1] == ["f"]


def _positions(spec: FunctionSpec, sample: Sample) -> list[int]:
    inputs = numbers_of(spec, sample)
    found = [n for n, array in enumerate(inputs) if array is not None and array.dtype.kind == "f" and array.size]
    n_outputs = sum(output.dtype not in WHOLE_DTYPES for output in spec.outputs)
    return found + ([len(inputs) + n for n in range(n_outputs)] if spec.differentiable and sample.gradient else [])


def ways_of(backends: Sequence[str]) -> list[Way]:
    """All runs on some backends; those whose plans differ without optimizations also without them, the standard left out."""
    found = [Way(backend, run, True) for backend in backends for run in RUNS]
    found += [Way(backend, run, False) for backend in backends for run in ("keep", "infer", "dynamic")]
    return [way for way in found if way != STANDARD]


def check(group: Sequence[Planted], ways: Callable[[], Sequence[Way]]) -> Iterator[tuple[Planted, str]]:
    """Texts of what differs from the standard, each with the ways that give it, for numbers in one sample."""
    bench = Bench()
    for planted in group:
        standard, found = Standard(planted, bench), dict[str, list[str]]()
        for way in ways():
            text = standard.differs(bench.outcome(planted, way), way)
            if text:
                found.setdefault(text, []).append(str(way))
        for text, given in found.items():
            yield planted, f"{planted}: {text}; {', '.join(given)}"


def grouped(found: Sequence[Planted]) -> Iterator[list[Planted]]:
    """Yield those that differ in the number and its place alone."""
    for _, group in groupby(found, key=lambda one: (one.spec.name, one.sample.name, one.dtype, one.chained)):
        yield list(group)


def share_of(text: str) -> tuple[int, int]:
    """Return the index of the first group and the step between groups of a part such as "2/8".

    Raises:
        click.BadParameter: when there is no such part.
    """
    number, _, parts = text.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise click.BadParameter(f"must be a part such as 2/8, got {text!r}")
    return int(number) - 1, int(parts)


def _check_known(functions: Sequence[str]) -> None:
    """Refuse names of no function, with which nothing would be planted, and nothing found."""
    known = [spec.name for spec in functions_of(["cpu"])]
    for name in functions:
        if name not in known:
            close = ", ".join(get_close_matches(name, known)) or ", ".join(known)
            raise click.BadParameter(f"must be a function such as {close}, got {name!r}", param_hint="--function")


@click.command()
@click.option("--count", default=200, help="Planted numbers; 0: all.")
@click.option("--seed", default=0)
@click.option("--dtype", "dtypes", multiple=True, default=DTYPES, type=click.Choice(DTYPES), help="Only these.")
@click.option("--backend", "backends", multiple=True, default=("cpu", "reference"), help="Only these.")
@click.option("--function", "functions", multiple=True, help="Only these.")
@click.option("--ways", "n_ways", default=0, help="Ways drawn for each planted number; 0: all.")
@click.option(
    "--share", callback=lambda _, __, text: share_of(text), default="1/1", help="The samples of this part only, such as 2/8."
)
@click.option("--alone", is_flag=True, help="Each function by itself, not in chains.")
@click.option("--emulated", multiple=True, help="Import these modules first, which emulate a device: emulated_device.")
@report_option
def main(
    count: int,
    seed: int,
    dtypes: Sequence[str],
    backends: Sequence[str],
    functions: Sequence[str],
    n_ways: int,
    share: tuple[int, int],
    alone: bool,
    emulated: Sequence[str],
    report: Path | None,
) -> None:
    """Plant special numbers in samples; the exit status is 1 if there is a finding."""
    for module in emulated:
        import_module(module)
    _check_known(functions)
    rng = np.random.default_rng(seed)
    found = [planted for planted in all_planted(dtypes, rng) if not functions or planted.spec.name in functions]
    found = [planted for planted in found if not (alone and planted.chained)]
    if not found:
        raise click.UsageError("there must be a floating-point input to plant a number in, got functions without one")
    if count and count < len(found):
        found = [found[n] for n in sorted(rng.choice(len(found), count, replace=False))]
    findings = Counter[str]()
    ways = ways_of(backends)

    def drawn() -> list[Way]:
        return [ways[n] for n in sorted(rng.choice(len(ways), n_ways, replace=False))] if n_ways else ways

    groups = list(grouped(found))[share[0] :: share[1]]
    for group in groups:
        for planted, text in check(group, drawn):
            findings[planted.spec.name] += 1
            click.echo(f"--- {text}")
    click.echo(f"{dict(findings)}")
    part = f"{'all samples' if not count else 'samples'}, {', '.join(backends)}"
    record(report, "specials", part, count=sum(map(len, groups)), findings=findings.total(), seed=seed)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.specials")
