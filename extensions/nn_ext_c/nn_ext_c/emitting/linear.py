"""Products of matrices."""

import math
from collections.abc import Sequence

from nn_ext_c.emitting.blocks import Totals, blocks, last_in_memory
from nn_ext_c.emitting.registry import Call, NotExportableError, emitter, reshaped
from nn_ext_c.loops import Code, dot
from nn_ext_c.program import Argument, Step, Value


@emitter("Affine")
def _affine(call: Call) -> Value:
    base_axis = call.args["base_axis"]
    y = multiplied(call, call.x, base_axis, call[1], call.optional(2))
    return reshaped(call.program, call.name, y, call.output_shape)


def multiplied(call: Call, x: Value, base_axis: int, weight: Value, bias: Value | None) -> Value:
    """Rows of x times a weight of (inputs, outputs...), as (rows, outputs)."""
    n_rows, n_inputs = math.prod(x.shape[:base_axis]), weight.shape[0]
    n_outputs = weight.size // n_inputs
    rows = reshaped(call.program, call.name, x, (n_rows, n_inputs))
    matrix = reshaped(call.program, call.name, weight, (n_inputs, n_outputs))
    if matrix.buffer.kind == "constant":
        y = _product(call, rows, matrix)
    else:
        y = call.reduce([2], "0.0f", "total += a * b;", rows.insert(1), matrix.transpose((1, 0)).insert(0))
        y = reshaped(call.program, call.name, y, (n_rows, n_outputs))
    return y if bias is None else call.map("a + b", y, reshaped(call.program, call.name, bias, (1, n_outputs)))


def _product(call: Call, rows: Value, matrix: Value) -> Value:
    """Multiply rows by a constant matrix, several columns at once."""
    y = call.program.new((rows.shape[0], matrix.shape[1]))
    matrix = last_in_memory(call.program, matrix, 1)
    for first, length, block in blocks(matrix.shape[1]):
        code = Code()
        row, number = code.loops([rows.shape[0], length // block])
        totals = Totals(code, block)
        totals.begin("0.0f")
        column = number * block + first + totals.lane
        k = code.loop(rows.shape[1])
        totals.add(f"x[{dot([row, k], rows.strides)}]", f"w[{dot([k, column], matrix.strides)}]")
        totals.store(f"y[{dot([row, column], y.strides)}]")
        arguments = [Argument("x", rows), Argument("w", matrix), Argument("y", y, True)]
        call.program.add(Step(call.name, code.text(), arguments))
    return y


@emitter("BatchMatmul")
def _batch_matmul(call: Call) -> Value:
    flags = (call.args["transpose_a"], call.args["transpose_b"])
    return matmul(call, *(swapped(x) if flag else x for x, flag in zip((call[0], call[1]), flags, strict=True)))


def swapped(x: Value) -> Value:
    """Return the last two axes swapped."""
    n = len(x.shape)
    return x.transpose([*range(n - 2), n - 1, n - 2])


def matmul(call: Call, a: Value, b: Value) -> Value:
    """Products of the matrices in the last two axes."""
    n = max(len(a.shape), len(b.shape))
    left = a.insert(len(a.shape) - 1)  # (..., rows, 1, k)
    right = swapped(b).insert(len(b.shape) - 2)  # (..., 1, columns, k)
    y = call.reduce([n], "0.0f", "total += a * b;", left, right)
    return reshaped(call.program, call.name, y, y.shape[:-1])


@emitter("Einsum")
def _einsum(call: Call) -> Value:
    """Products of the elements that letters select, summed over the letters that the result does not have."""
    sides, arrow, result = call.args["equation"].replace(" ", "").partition("->")
    if "." in sides:
        raise NotExportableError("equation must have no '...'")
    if not arrow:
        result = "".join(sorted(letter for letter in set(sides) - {","} if sides.count(letter) == 1))
    letters = [*result, *sorted(set(sides) - {",", *result})]
    aligned = [_by_letters(call[index], term, letters) for index, term in enumerate(sides.split(","))]
    update = f"total += {' * '.join('abcdefgh'[: len(aligned)])};"
    y = call.reduce(range(len(result), len(letters)), "0.0f", update, *aligned)
    return reshaped(call.program, call.name, y, call.output_shape)


def _by_letters(x: Value, term: str, letters: Sequence[str]) -> Value:
    """Return an axis for each letter, in their order: a diagonal for one that the term has twice."""
    axes = {letter: [axis for axis, other in enumerate(term) if other == letter] for letter in letters}
    shape = tuple(x.shape[found[0]] if found else 1 for found in axes.values())
    return Value(x.buffer, shape, tuple(sum(x.strides[axis] for axis in found) for found in axes.values()), x.offset)
