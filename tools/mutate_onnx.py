"""Change bytes of models of ONNX and load them: each gives an error of nn_core, or what ONNX's own definitions compute.

    python -m tools.mutate_onnx --count 2000 --seed 0

The process has a limit on its memory; a model that needs more is a finding.
"""

import resource
import sys
import time
import warnings
from collections import Counter

import click
import numpy as np
import onnx
from onnx import parser
from onnx.reference import ReferenceEvaluator

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext import NNCoreError
from nn_ext_onnx import export_model
from nn_ext_onnx.backend import prepare

MEMORY_LIMIT_BYTES = 6 << 30
TIME_LIMIT_S = 20.0
TOLERANCE = 1e-3

_TEXTS = (
    """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x) => (float[2] y, float[3, 2] all) {
        n = Constant<value = int64 {3}>()  go = Constant<value = bool {1}>()  s = ReduceSum<keepdims = 0>(x, axis)
        y, all = Loop(n, go, s) <body = b (int64 i, bool c, float[2] p) => (bool k, float[2] t, float[2] u) {
            k = Identity(c)  t = Add(p, p)  u = Identity(t) }> }""".replace("(x, axis)", "(x, one)").replace(
        "n = Constant", "one = Constant<value = int64[1] {1}>()  n = Constant"
    ),
    """<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[2, 3] x) => (float[3, 2] y) {
        a = own.twice<alpha = 3.0>(x)  s = Shape(a)  first = Constant<value = int64[1] {0}>()  n = Gather(s, first)
        rest = Constant<value = int64[1] {-1}>()  target = Concat<axis = 0>(rest, n)  y = Reshape(a, target) }
       <domain: "own", opset_import: ["": 17]> twice<alpha>(a) => (b) {
        c = LeakyRelu<alpha: float = @alpha>(a)  b = Add(c, c) }""",
)


def models() -> list[bytes]:
    """Small models of several kinds."""
    nn.seed(0)
    with nn.parameter_scope("", {}):
        x = nn.Variable((2, 3))
        dense = export_model({"y": F.softmax(PF.affine(F.relu(PF.affine(x, 4, name="a")), 3, name="b"))}, {"x": x})
        images = nn.Variable((1, 2, 5, 5))
        h = F.max_pooling(PF.convolution(images, 3, (3, 3), pad=(1, 1), name="c"), (2, 2))
        conv = export_model({"y": F.mean(F.tanh(h), axis=(2, 3))}, {"x": images})
        steps, state = nn.Variable((3, 2, 2)), nn.Variable((1, 1, 2, 3))
        y, *_ = F.lstm(steps, state, state, nn.Variable.from_numpy_array(np.full((1, 4, 3, 5), 0.1, np.float32)))
        recurrent = export_model({"y": y}, {"x": steps, "h": state})
    made = [dense, conv, recurrent, *(parser.parse_model(text) for text in _TEXTS)]
    return [model.SerializeToString() for model in made]


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """A model with some bytes changed, removed, repeated or put in."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at, n = int(rng.integers(len(changed))), int(rng.integers(1, 9))
        kind = rng.integers(5)
        if kind == 0:
            changed[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            changed[at] = int(rng.integers(256))
        elif kind == 2 and len(changed) > n:
            del changed[at : at + n]
        elif kind == 3:
            changed[at:at] = changed[at : at + n]
        else:
            changed[at:at] = rng.bytes(n)
    return bytes(changed)


def outcome(data: bytes) -> str:
    """ "refused", "equal", "unjudged" where the definitions fail, or what is wrong."""
    model = onnx.ModelProto()
    try:
        prepared = prepare(data)
        model.ParseFromString(data)
        arrays = [_array(entry) for entry in model.graph.input if entry.name in prepared.names]
        found = prepared.run(arrays)
    except NNCoreError:
        return "refused"
    except Exception as error:  # whatever it is, it is a finding
        return f"{type(error).__name__}: {error}"
    try:
        expected = ReferenceEvaluator(model).run(None, dict(zip(prepared.names, arrays, strict=True)))
    except Exception:  # the definitions raise whatever NumPy raises
        return "unjudged"
    for mine, theirs in zip(found, expected, strict=True):
        wanted = np.asarray(theirs)
        if mine.shape != wanted.shape or not np.allclose(mine, wanted, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            return f"another result: {mine.shape} {mine.reshape(-1)[:4]} in place of {wanted.shape} {wanted.reshape(-1)[:4]}"
    return "equal"


def _array(entry: onnx.ValueInfoProto) -> np.ndarray:
    shape = [min(axis.dim_value, 8) for axis in entry.type.tensor_type.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
    return np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(dtype)


def findings(numbers: range, seed: int, outcomes: Counter[str]) -> list[str]:
    """Return what is wrong with the mutations of these numbers; `outcomes` counts the others."""
    originals, wrong = models(), []
    for number in numbers:
        rng = np.random.default_rng([seed, number])
        data = mutated(originals[number % len(originals)], rng)
        start = time.monotonic()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = outcome(data)
        if result in ("refused", "equal", "unjudged"):
            outcomes[result] += 1
        else:
            wrong.append(f"seed {seed}, number {number}: {result}")
        if time.monotonic() - start > TIME_LIMIT_S:
            wrong.append(f"seed {seed}, number {number}: took {time.monotonic() - start:.0f} s")
    return wrong


@click.command()
@click.option("--count", default=2000, help="How many mutations.")
@click.option("--seed", default=0, help="Seed of the mutations.")
@click.option("--first", default=0, help="Number of the first one.")
def main(count: int, seed: int, first: int) -> None:
    """Mutate, load, print what is wrong, and exit with 1 if anything is."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    outcomes: Counter[str] = Counter()
    wrong = findings(range(first, first + count), seed, outcomes)
    click.echo("\n".join([*wrong, ", ".join(f"{count} {name}" for name, count in outcomes.items())]))
    sys.exit(int(bool(wrong)))


if __name__ == "__main__":
    main()
