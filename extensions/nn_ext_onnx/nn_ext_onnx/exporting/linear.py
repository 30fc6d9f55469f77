"""Matrix products and small dense linear algebra."""

from collections.abc import Sequence

import numpy as np

from nn_ext_onnx.exporting.registry import Call, NotExportableError, converter, size_of
from nn_ext_onnx.exporting.values import Value

#: Steps of Newton's iteration for inverses: enough for condition numbers up to 1e5.
_STEPS = 40
_LARGEST_MATRIX = 32


@converter("Affine")
def _affine(call: Call) -> Value:
    return affine(call, call[1], call.optional(2), call.args["base_axis"], call.shapes[1])


def affine(call: Call, weight: Value, bias: Value | None, base_axis: int, weight_shape: Sequence[int]) -> Value:
    """Flatten the first input to a matrix, multiply, add the bias."""
    n_inputs, outputs = weight_shape[0], tuple(weight_shape[1:])
    weight = weight if len(outputs) == 1 else weight.reshape((n_inputs, size_of(outputs)))
    if base_axis == call.ndim - 1 and len(outputs) == 1 and call.ndim > 2:
        y = call.x.op("MatMul", weight)
        return y if bias is None else y + bias
    rows = call.x if (call.ndim, base_axis) == (2, 1) else call.x.op("Flatten", axis=base_axis)
    flat_bias = bias if bias is None or len(outputs) == 1 else bias.reshape((size_of(outputs),))
    y = rows.op("Gemm", weight, flat_bias)
    return y if (base_axis, len(outputs)) == (1, 1) else y.reshape(call.output_shape)


@converter("BatchMatmul")
def _batch_matmul(call: Call) -> Value:
    a, b = (
        transposed(value, len(shape)) if call.args[flag] else value
        for value, shape, flag in zip((call[0], call[1]), call.shapes, ("transpose_a", "transpose_b"), strict=True)
    )
    return a.op("MatMul", b)


def transposed(x: Value, ndim: int) -> Value:
    """Return the last two axes swapped."""
    return x.transpose([*range(ndim - 2), ndim - 1, ndim - 2])


@converter("BatchDet")
def _det(call: Call) -> Value:
    return call.x.op("Det")


@converter("BatchLogdet")
def _logdet(call: Call) -> Value:
    return call.x.op("Det").op("Abs").op("Log")


@converter("BatchInv")
def _inv(call: Call) -> Value:
    """Newton's iteration y = y (2 - x y), from x' / (|x|_1 |x|_inf), where it converges for every invertible x."""
    x, size = call.x.op("Abs"), (call.ndim - 2, call.ndim - 1)
    norms = [x.reduce("ReduceSum", [axis]).reduce("ReduceMax", size) for axis in size]
    y = transposed(call.x, call.ndim) / (norms[0] * norms[1])
    twice = call.graph.constant(2 * np.eye(call.shape[-1]))
    for _ in range(_STEPS):
        y = y.op("MatMul", twice - call.x.op("MatMul", y))
    return y


@converter("BatchCholesky")
def _cholesky(call: Call) -> Value:
    """Column by column, each from what the columns before leave of the matrix."""
    n = call.shape[-1]
    if n > _LARGEST_MATRIX:
        raise NotExportableError(f"matrices must have at most {_LARGEST_MATRIX} rows, got {n}")
    down, across = call.ndim - 2, call.ndim - 1
    rest = (call.x + transposed(call.x, call.ndim)) * 0.5
    columns = []
    for k in range(n):
        pivot = rest.slice(down, k, k + 1).slice(across, k, k + 1).op("Sqrt")
        below = call.graph.constant((np.arange(n) >= k).astype(float).reshape(n, 1))
        column = rest.slice(across, k, k + 1) * below / pivot
        columns.append(column)
        rest = rest - column.op("MatMul", transposed(column, call.ndim))
    lower = call.graph.op("Concat", *columns, axis=across) if columns else call.x
    return transposed(lower, call.ndim) if call.args["upper"] else lower


@converter("Einsum")
def _einsum(call: Call) -> Value:
    return call.graph.op("Einsum", *call.inputs, equation=call.args["equation"].replace(" ", ""))
