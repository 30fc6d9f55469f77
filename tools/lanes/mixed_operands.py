"""Mix Variables and NdArrays as operands of every public function.

    python -m tools.lanes.mixed_operands --count 20 --seed 0    # so many random shapes for each call

All calls must compute at once, and give what Variables give.
"""

import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.dispatch.registry import spec_of_api
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import GraphError, NNCoreError
from nn_core.functions.plugin_functions import build_function
from nn_core.testing.samples.registry import numbers_of, samples_of

from .reliability import record, report_option

#: Functions without inputs, whose kind `outputs` or the mode decides, and names in F that are no functions of arrays.
WITHOUT_INPUTS = {
    "arange",
    "constant",
    "linspace",
    "rand",
    "rand_beta",
    "rand_binomial",
    "rand_gamma",
    "randint",
    "randn",
}
NO_FUNCTIONS = {"function_api", "get_auto_forward", "get_current_context"}
#: Samples of one function that are tried.
N_SAMPLES = 3


class Case(NamedTuple):
    """A call: what is called with operands of some kind, and their values."""

    name: str
    call: Callable[..., Any]
    values: Sequence[Any]

    def __str__(self) -> str:
        return self.name


def variable(values: Any) -> Any:
    """Return a leaf."""
    return nn.Variable.from_numpy_array(values)


def array(values: Any) -> Any:
    """Return an NdArray."""
    return nn.NdArray.from_numpy_array(values)


def uncomputed(values: Any) -> Any:
    """Return the result of a function that has not run."""
    leaf = variable(values)
    return F.identity(leaf)


def computed(values: Any) -> Any:
    """Return the result of a function that has run."""
    result = uncomputed(values)
    result.forward()
    return result


def floats(*shape: int, low: float = 0.2, high: float = 1.7) -> np.ndarray[Any, Any]:
    """Random numbers that depend on the shape alone."""
    return np.random.default_rng(shape).uniform(low, high, shape).astype(np.float32)


def _statistics(*shape: int) -> list[np.ndarray[Any, Any]]:
    return [floats(*shape), *(floats(*[n if i == 1 else 1 for i, n in enumerate(shape)]) for _ in range(4))]


def _shift_and_scale(shape: Sequence[int], kept: Sequence[int]) -> list[np.ndarray[Any, Any]]:
    small = [n if i in kept else 1 for i, n in enumerate(shape)]
    return [floats(*shape), floats(*small), floats(*small)]


_ATTENTION = [floats(3, 2, 4), floats(5, 2, 4), floats(5, 2, 4), *(floats(4, 4) for _ in range(4))]


def _attention(*operands: Any) -> Any:
    query, key, value, q, k, v, out, bias, mask, padding, further = operands
    return F.multi_head_attention(
        query, key, value, 2, q, k, v, out, bias, None, None, None, further, further, 0.0, mask, padding
    )


#: Functions whose signature is not that of an operator.
COMPOSITES: dict[str, list[tuple[Callable[..., Any], list[Any]]]] = {
    "argmax": [(lambda x: F.argmax(x, 1), [floats(3, 4)])],
    "argmin": [(lambda x: F.argmin(x, 1), [floats(3, 4)])],
    "clip": [(lambda x: F.clip(x, 0.2, 0.7), [floats(3, 4)])],
    "expand_dims": [(lambda x: F.expand_dims(x, 1), [floats(3, 4)])],
    "flatten": [(F.flatten, [floats(2, 3, 4)])],
    "logsumexp": [(lambda x: F.logsumexp(x, 1), [floats(3, 4)])],
    "matmul": [(F.matmul, [floats(2, 3, 4), floats(4, 2)])],
    "rsqrt": [(lambda x: F.rsqrt(x * x + 1), [floats(3, 4)])],
    "sqrt": [(lambda x: F.sqrt(x * x + 1), [floats(3, 4)])],
    "square": [(F.square, [floats(3, 4)])],
    "squeeze": [(F.squeeze, [floats(3, 1, 4)])],
    "std": [(lambda x: F.std(x, 1), [floats(3, 4)])],
    "var": [(lambda x: F.var(x, 1), [floats(3, 4)])],
    "batch_normalization": [
        (F.batch_normalization, _statistics(4, 3, 2)),
        (lambda *x: F.batch_normalization(*x, output_stat=True), _statistics(4, 3, 2)),
        (lambda *x: F.batch_normalization(*x, batch_stat=False), _statistics(4, 3, 2)),
    ],
    "clip_by_norm": [
        (lambda x: F.clip_by_norm(x, 0.5, axis=1), [floats(3, 4)]),
        (F.clip_by_norm, [floats(3, 4), floats(1, 1)]),
    ],
    "clip_by_value": [
        (F.clip_by_value, [floats(3, 4), floats(3, 4) * 0.5, floats(3, 4) * 0.9]),
        (lambda x, low: F.clip_by_value(x, low, 0.8), [floats(3, 4), floats(1, 4) * 0.5]),
        (lambda x, high: F.clip_by_value(x, 0.2, high), [floats(3, 4), floats(3, 1) * 0.9]),
    ],
    "dot": [
        (F.dot, [floats(2, 3, 4), floats(5, 4, 2)]),
        (F.dot, [floats(3, 4), floats(4)]),
        (F.dot, [floats(4), floats(4)]),
        (lambda a: F.dot(a, 2.0), [floats(3, 4)]),
    ],
    "fixed_point_quantize": [
        (F.fixed_point_quantize, [floats(3, 4)]),
        (lambda x: F.fixed_point_quantize(x, quantize=False), [floats(3, 4)]),
    ],
    "fused_batch_normalization": [
        (F.fused_batch_normalization, [*_statistics(4, 3, 2), floats(4, 3, 2)]),
        (lambda *x: F.fused_batch_normalization(*x, output_stat=True), _statistics(4, 3, 2)),
    ],
    "gather_nd": [
        (F.gather_nd, [floats(3, 4), np.array([[0, 2], [1, 3]])]),
        (lambda x: F.gather_nd(x, [[0, 2], [1, 3]]), [floats(3, 4)]),
    ],
    "group_normalization": [
        (lambda *x: F.group_normalization(*x, 2), _shift_and_scale((3, 4, 2), (1,))),
        (lambda *x: F.group_normalization(*x, 2, output_stat=True), _shift_and_scale((3, 4, 2), (1,))),
    ],
    "instance_normalization": [(lambda *x: F.instance_normalization(*x, output_stat=True), _shift_and_scale((3, 4, 2), (1,)))],
    "interpolate": [(lambda x: F.interpolate(x, scale=(2, 2)), [floats(1, 2, 3, 3)])],
    "layer_normalization": [(lambda *x: F.layer_normalization(*x, output_stat=True), _shift_and_scale((3, 4, 2), (1, 2)))],
    "max": [(lambda x: F.max(x, 1, with_index=True), [floats(3, 4)]), (F.max, [floats(3, 4)])],
    "mean": [(lambda x: F.mean(x, 1), [floats(3, 4)])],
    "mean_subtraction": [(F.mean_subtraction, [floats(5, 3), floats(3), np.array([2.0], np.float32)])],
    "min": [(lambda x: F.min(x, 1, only_index=True), [floats(3, 4)])],
    "min_max_quantize": [
        (F.min_max_quantize, [floats(3, 4), *(np.full((1, 1), v, np.float32) for v in (0.1, 1.2, 0, 255))]),
        (
            lambda *x: F.min_max_quantize(*x, quantize=False),
            [floats(3, 4), *(np.full((1, 1), v, np.float32) for v in (0.1, 1.2, 0, 255))],
        ),
    ],
    "multi_head_attention": [
        (_attention, [*_ATTENTION, floats(4), floats(3, 5), np.array([[0, 1, 0, 0, 1], [0, 0, 0, 1, 0]]), floats(1, 1, 4)])
    ],
    "norm": [(lambda x: F.norm(x, 2, 1), [floats(3, 4)])],
    "norm_normalization": [(lambda x: F.norm_normalization(x, 2, 1), [floats(3, 4)])],
    "patch_correlation": [
        (F.patch_correlation, [floats(1, 2, 4, 4), floats(1, 2, 4, 4) * 0.5]),
        (lambda *x: F.patch_correlation(*x, channel_last=True), [floats(1, 4, 4, 2), floats(1, 4, 4, 2) * 0.5]),
    ],
    "pow2_quantize": [(F.pow2_quantize, [floats(3, 4)])],
    "prod": [(lambda x: F.prod(x, 1), [floats(3, 4)])],
    "quantize_linear": [(F.quantize_linear, [floats(3, 4), floats(1, 1), np.array([[3]])])],
    "reduce": [(F.reduce, [floats(3, 4)])],
    "scatter_nd": [
        (lambda x, i: F.scatter_nd(x, i, shape=(3, 4)), [floats(2), np.array([[0, 2], [1, 3]])]),
        (lambda x, i, out: F.scatter_nd(x, i, out=out), [floats(2), np.array([[0, 2], [1, 3]]), floats(3, 4)]),
    ],
    "slice": [(lambda x: F.slice(x, (1,), (None,), (2,)), [floats(3, 4)])],
    "sort": [(lambda x: F.sort(x, with_index=True), [floats(3, 4)])],
    "spectral_norm": [
        (F.spectral_norm, [floats(4, 3), floats(4)]),
        (lambda *x: F.spectral_norm(*x, test=True, output_u=True), [floats(4, 3), floats(4)]),
    ],
    "sum": [(F.sum, [floats(3, 4)])],
    "sync_batch_normalization": [
        (lambda *x: F.sync_batch_normalization(*x, comm=None, output_stat=True), _statistics(4, 3, 2))
    ],
    "tensor_normalization": [
        (lambda x, *b: F.tensor_normalization(x, 1, *b, output_stat=True), _shift_and_scale((3, 4), (1,)))
    ],
    "tile": [(lambda x: F.tile(x, 2), [floats(3, 4)])],
    "weight_standardization": [(lambda x: F.weight_standardization(x, output_stat=True), [floats(3, 4)])],
}


class Scaled(PythonFunction):
    """x0 * x1, in Python."""

    def min_outputs(self) -> int:
        return 1

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].d = inputs[0].d * inputs[1].d


#: Operators of Variable and NdArray, indexing, methods, functions of plugins and those written in Python.
OPERATORS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "add": (lambda a, b: a + b, [floats(3, 4), floats(3, 4)]),
    "sub": (lambda a, b: a - b, [floats(3, 4), floats(1, 4)]),
    "mul": (lambda a, b: a * b, [floats(3, 4), floats(4)]),
    "truediv": (lambda a, b: a / b, [floats(3, 4), floats(3, 1)]),
    "pow": (lambda a, b: a**b, [floats(3, 4), floats(3, 4)]),
    "numbers": (lambda a: -(((2 - a) * 3 + 1) / 4) + 2 / a - 2**a + a**2, [floats(3, 4)]),
    "matmul": (lambda a, b: a @ b, [floats(3, 4), floats(4, 2)]),
    "matmul vectors": (lambda a, b: a @ b, [floats(4), floats(4)]),
    "matmul vector": (lambda a, b: a @ b, [floats(2, 3, 4), floats(4)]),
    "matmul broadcast": (lambda a, b: a @ b, [floats(2, 1, 3, 4), floats(5, 4, 2)]),
    "slice": (lambda a: a[1:, None, ::-1], [floats(3, 4)]),
    "list": (lambda a: a[[0, 2]], [floats(3, 4)]),
    "index": (lambda a, i: a[i], [floats(3, 4), np.array([0, 2])]),
    "indices": (lambda a, i, j: a[i, j], [floats(3, 4), np.array([0, 2]), np.array([1, 1])]),
    "plugin": (build_function(spec_of_api("sub2")), [floats(3, 4), floats(3, 4)]),
    "python": (Scaled(), [floats(3, 4), floats(3, 4)]),
}

_IMAGE = [floats(2, 4, 5, 5)]
_ROWS = [floats(3, 4)]
_TOKENS = [floats(3, 2, 4), floats(5, 2, 4)]
_STATE = [floats(3, 2, 4), floats(1, 1, 2, 3)]
_CELL = [floats(2, 4), floats(2, 3), floats(2, 3)]

LAYERS: dict[str, list[tuple[Callable[..., Any], list[Any]]]] = {
    "affine": [
        (lambda x: PF.affine(x, 3), _ROWS),
        (lambda x: PF.affine(x, 3, apply_w=PF.weight_normalization, apply_b=F.tanh), _ROWS),
        (lambda x: PF.affine(x, 3, apply_w=PF.spectral_norm, name="s"), _ROWS),
        (lambda x: PF.affine(inp=x, n_outmaps=3, apply_w=F.weight_standardization, name="k"), _ROWS),
    ],
    "batch_normalization": [
        (PF.batch_normalization, _IMAGE),
        (lambda x: PF.batch_normalization(x, output_stat=True), _IMAGE),
    ],
    "binary_connect_affine": [(lambda x: PF.binary_connect_affine(x, 3), _ROWS)],
    "binary_connect_convolution": [(lambda x: PF.binary_connect_convolution(x, 3, (3, 3)), _IMAGE)],
    "binary_weight_affine": [(lambda x: PF.binary_weight_affine(x, 3), _ROWS)],
    "binary_weight_convolution": [(lambda x: PF.binary_weight_convolution(x, 3, (3, 3)), _IMAGE)],
    "convolution": [
        (lambda x: PF.convolution(x, 3, (3, 3)), _IMAGE),
        (lambda x: PF.convolution(x, 3, (3, 3), apply_w=PF.weight_normalization, name="w"), _IMAGE),
        (lambda x: PF.convolution(x, 3, (3, 3), apply_w=F.weight_standardization, name="s"), _IMAGE),
    ],
    "cpd3_convolution": [(lambda x: PF.cpd3_convolution(x, 3, (3, 3), r=2), _IMAGE)],
    "deconvolution": [(lambda x: PF.deconvolution(x, 3, (3, 3), apply_w=PF.spectral_norm), _IMAGE)],
    "deformable_convolution": [
        (lambda x, offset: PF.deformable_convolution(x, 3, (3, 3), offset, pad=(1, 1)), [*_IMAGE, floats(2, 18, 5, 5)])
    ],
    "depthwise_convolution": [(lambda x: PF.depthwise_convolution(x, (3, 3)), _IMAGE)],
    "depthwise_deconvolution": [(lambda x: PF.depthwise_deconvolution(x, (3, 3)), _IMAGE)],
    "embed": [(lambda x: PF.embed(x, 5, 3, apply_w=F.tanh), [np.array([[0, 4], [2, 1]])])],
    "fixed_point_quantized_affine": [(lambda x: PF.fixed_point_quantized_affine(x, 3), _ROWS)],
    "fixed_point_quantized_convolution": [(lambda x: PF.fixed_point_quantized_convolution(x, 3, (3, 3)), _IMAGE)],
    "fused_batch_normalization": [
        (lambda x, z: PF.fused_batch_normalization(x, z, output_stat=True), [*_IMAGE, floats(2, 4, 5, 5)])
    ],
    "group_normalization": [(lambda x: PF.group_normalization(x, 2, output_stat=True), _IMAGE)],
    "gru": [(PF.gru, _STATE)],
    "inq_affine": [(lambda x: PF.inq_affine(x, 3, seed=3, inq_iterations=(1,)), _ROWS)],
    "inq_convolution": [(lambda x: PF.inq_convolution(x, 3, (3, 3), seed=3, inq_iterations=(1,)), _IMAGE)],
    "instance_normalization": [(lambda x: PF.instance_normalization(x, output_stat=True), _IMAGE)],
    "layer_normalization": [(lambda x: PF.layer_normalization(x, output_stat=True), _ROWS)],
    "lstm": [(PF.lstm, [*_STATE, floats(1, 1, 2, 3)])],
    "lstm_cell": [(lambda x, h, c: PF.lstm_cell(x, h, c, 3), _CELL)],
    "mean_subtraction": [(PF.mean_subtraction, _ROWS)],
    "min_max_quantize": [(PF.min_max_quantize, _ROWS)],
    "min_max_quantized_affine": [(lambda x: PF.min_max_quantized_affine(x, 3), _ROWS)],
    "min_max_quantized_convolution": [(lambda x: PF.min_max_quantized_convolution(x, 3, (3, 3)), _IMAGE)],
    "multi_head_attention": [(lambda q, k: PF.multi_head_attention(q, k, k, 2), _TOKENS)],
    "pow2_quantized_affine": [(lambda x: PF.pow2_quantized_affine(x, 3), _ROWS)],
    "pow2_quantized_convolution": [(lambda x: PF.pow2_quantized_convolution(x, 3, (3, 3)), _IMAGE)],
    "prelu": [(PF.prelu, _IMAGE)],
    "pruned_affine": [(lambda x: PF.pruned_affine(x, 3), _ROWS)],
    "pruned_convolution": [(lambda x: PF.pruned_convolution(x, 3, (3, 3)), _IMAGE)],
    "rnn": [(PF.rnn, _STATE)],
    "spectral_norm": [(PF.spectral_norm, _ROWS)],
    "svd_affine": [(lambda x: PF.svd_affine(x, 3, r=2), _ROWS)],
    "svd_convolution": [(lambda x: PF.svd_convolution(x, 3, (3, 3), r=2), _IMAGE)],
    "sync_batch_normalization": [(lambda x: PF.sync_batch_normalization(x, None, output_stat=True), _IMAGE)],
    "transformer": [
        (
            lambda s, t: PF.transformer(s, t, 4, 2, 1, 1, dim_feedforward=6, dropout=0.0),
            [floats(3, 2, 4), floats(2, 2, 4)],
        )
    ],
    "transformer_decode": [(lambda t, m: PF.transformer_decode(t, m, 4, 2, 6, dropout=0.0), _TOKENS)],
    "transformer_encode": [(lambda s: PF.transformer_encode(s, 4, 2, 6, dropout=0.0), [floats(3, 2, 4)])],
    "weight_normalization": [(PF.weight_normalization, _ROWS)],
}


def operators_of_specification() -> Iterator[Case]:
    """Each function that has the signature of its operator, on the first samples."""
    for name in sorted(set(F.__all__) - set(COMPOSITES) - WITHOUT_INPUTS - NO_FUNCTIONS):
        spec = spec_of_api(name)
        function = getattr(F, name)
        taken = 0
        for sample in samples_of(spec):
            numbers = numbers_of(spec, sample)
            if taken == N_SAMPLES or any(array is not None and array.size == 0 for array in numbers):
                continue
            taken += 1
            arguments = dict(sample.args)
            if spec.has("seeded") and "seed" in {arg.name for arg in spec.args}:
                arguments.setdefault("seed", 7)
            places = [i for i, array in enumerate(numbers) if array is not None]

            def call(*operands: Any, _f: Any = function, _n: int = len(numbers), _p: Any = places, _a: Any = arguments):
                inputs: list[Any] = [None] * _n
                for place, operand in zip(_p, operands, strict=True):
                    inputs[place] = operand
                return _f(*inputs, **_a)

            yield Case(f"{name}-{sample.name}", call, [numbers[i] for i in places])
        assert taken, f"{name} has no sample"


def listed(table: dict[str, list[tuple[Callable[..., Any], list[Any]]]]) -> list[Case]:
    """Return the rows of a table as cases."""
    return [Case(f"{name}-{position}", *row) for name, rows in table.items() for position, row in enumerate(rows)]


CASES: Final = [
    *operators_of_specification(),
    *listed(COMPOSITES),
    *(Case(f"operator {name}", *row) for name, row in OPERATORS.items()),
]
LAYER_CASES: Final = listed(LAYERS)
#: Draws of sizes until the arguments of a call fit one.
TRIES: Final = 6


def check(case: Case) -> None:
    """Compare each mixture of kinds with Variables alone; values that were never computed are refused."""
    nn.seed(313)
    case.call(*map(variable, case.values))  # makes the parameters
    before = {path: p.d.copy() for path, p in nn.get_parameters(grad_only=False).items()}

    def restore() -> None:
        for path, parameter in nn.get_parameters(grad_only=False).items():
            parameter.d = before[path]

    def fresh(kinds: Sequence[Callable[[Any], Any]]) -> list[Any]:
        return [kind(values) for kind, values in zip(kinds, case.values, strict=True)]

    n = len(case.values)
    operands = fresh([variable] * n)
    with nn.auto_forward():  # a seeded function counts its passes, and its first one is that of the imperative call
        expected = [result.d.copy() for result in flat(case.call(*operands))]
    rewritten = operands_after(operands)
    after = {path: p.d.copy() for path, p in nn.get_parameters(grad_only=False).items()}
    for kinds in mixtures(n):
        restore()
        mixed = fresh(kinds)
        given = case.call(*mixed)
        assert all(isinstance(result, nn.NdArray) for result in flat(given)), f"{case}: {given}"
        same(case, kinds, [result.data for result in flat(given)], expected)
        same(case, kinds, operands_after(mixed), rewritten)
        parameters = {path: p.d for path, p in nn.get_parameters(grad_only=False).items()}
        same(case, kinds, list(parameters.values()), list(after.values()))
    if n > 1:
        refuses_what_was_not_computed(case, n, fresh)


def mixtures(n: int) -> list[tuple[Callable[[Any], Any], ...]]:
    """Kinds of n operands, an NdArray among them: all mixtures of up to three; of more, one that differs from the others."""
    kinds = (array, variable, computed)
    if n <= 3:
        return [mixture for mixture in itertools.product(kinds, repeat=n) if array in mixture]
    found: dict[Any, None] = {(array,) * n: None}
    for place, other in itertools.product(range(n), kinds[1:]):
        for inner, outer in ((array, other), (other, array)):
            found[tuple(inner if i == place else outer for i in range(n))] = None
    return list(found)


def refuses_what_was_not_computed(case: Case, n: int, fresh: Callable[..., list[Any]]) -> None:
    """Check that a Variable that was never computed is refused beside NdArrays."""
    for place in range(n):
        kinds = tuple(uncomputed if i == place else array for i in range(n))
        try:
            case.call(*fresh(kinds))
        except GraphError as error:
            assert "must be computed before" in str(error), f"{case}: {error}"
        else:
            raise AssertionError(f"{case}: operand {place} was not computed before, and the call was not refused")


def flat(results: Any) -> list[Any]:
    """Return the results of a call as a list."""
    return list(results) if isinstance(results, (list, tuple)) else [results]


def operands_after(operands: Sequence[Any]) -> list[Any]:
    """Return the values of operands, which the call may have changed."""
    return [(operand.d if isinstance(operand, nn.Variable) else operand.data).copy() for operand in operands]


def same(case: Case, kinds: Sequence[Any], given: Sequence[Any], expected: Sequence[Any]) -> None:
    """Check that results agree in number, shape and values."""
    names = [kind.__name__ for kind in kinds]
    assert len(given) == len(expected), f"{case} of {names}"
    for one, other in zip(given, expected, strict=True):
        assert one.shape == other.shape, f"{case} of {names}"
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=f"{case} of {names}")


def grown(case: Case, rng: np.random.Generator) -> Case:
    """Return the case with larger operands: equal sizes stay equal, and what is new repeats what is there, so that indices
    fit.
    """
    sizes = sorted({size for values in case.values for size in np.shape(values) if size > 1})
    chosen = rng.choice(sizes, int(rng.integers(1, len(sizes) + 1)), replace=False) if sizes else ()
    larger = {int(size): int(size + rng.integers(1, 4)) for size in chosen}
    values = []
    for value in map(np.asarray, case.values):
        pads = [(0, larger.get(size, size) - size) for size in value.shape]
        values.append(np.pad(value, pads, mode="wrap") if value.size and value.ndim else value)
    return case._replace(values=values)


def fits(case: Case) -> bool:
    """Return whether the arguments of the call allow these shapes."""
    nn.clear_parameters()
    try:
        with nn.auto_forward():
            case.call(*map(variable, case.values))
    except NNCoreError:
        return False
    return True


def check_shapes(case: Case, count: int, seed: int) -> Iterator[str]:
    """Check the case with `count` random shapes that fit its arguments; "" for each that is right, or what is wrong."""
    rng = np.random.default_rng([seed, *str(case).encode()])
    for _ in range(count):
        found = next((drawn for _ in range(TRIES) if fits(drawn := grown(case, rng))), None)
        if found is None:
            continue
        nn.clear_parameters()
        try:
            check(found)
        except Exception:
            yield f"{case}, shapes {[np.shape(value) for value in found.values]}: {traceback.format_exc()}"
        else:
            yield ""
    nn.clear_parameters()


@click.command()
@click.option("--count", default=2, help="Random shapes of each call.")
@click.option("--seed", default=0)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Mix operands of random shapes; the exit status is 1 if there is a finding."""
    n_findings = 0
    for name, cases in (("functions", CASES), ("parametric functions", LAYER_CASES)):
        checked = [text for case in cases for text in check_shapes(case, count, seed)]
        findings = [text for text in checked if text]
        n_findings += len(findings)
        for text in findings:
            click.echo(f"--- {text}")
        note = f"{len(cases)} calls, {len(checked)} of {count * len(cases)} draws of shapes fit their arguments"
        record(report, "mixed operands", name, count=len(checked), findings=len(findings), seed=seed, note=note)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.mixed_operands")
