"""Element-wise functions as rows of C expressions, each compiled to one kernel.

A row says what the output is and what the gradient of each input is, in the names of the specification (a gradient is
called d and the name of its array; arguments have their names too). Inputs broadcast against each other; the gradient
of one that was broadcast is summed in the kernel that computes it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Refusal, Runner, Shape
from nn_ext_cuda.code import Code, generated, in_real
from nn_ext_cuda.describe import backward_arrays, backward_names, forward_arrays, forward_names, input_names
from nn_ext_cuda.dtypes import C_TYPES, real, real_type, refuse_dtypes
from nn_ext_cuda.launch import Argument, Program, chained, flat
from nn_ext_cuda.layout import aligned, broadcast_strides, merged, reduced_axes
from nn_ext_cuda.operand import Operand, uses
from nn_ext_cuda.reduce import reduction

#: Makes an expression from the names of the inputs, for functions of any number of them.
Expression = str | Callable[[Sequence[str]], str]
_LIMIT: Final = 2**31


class Pointwise:
    """The kernel of a row.

    Args:
        forward: The output.
        backward: The gradient of each input that has one; "*" stands for every input of a variadic function, and `it`
            in the expression for the input in question.
        align: The shapes of the inputs as they are broadcast, where it is not from the last axis.
        settings: Makes further numbers for the expressions out of the arguments.
    """

    def __init__(
        self,
        forward: Expression,
        backward: Mapping[str, str] | None = None,
        *,
        align: Callable[[Call], Sequence[Shape]] | None = None,
        settings: Callable[[Mapping[str, object]], Mapping[str, float]] | None = None,
    ) -> None:
        self._forward = forward
        self._backward = dict(backward or {})
        self._align = align
        self._settings = settings

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that 32 bits cannot index where they are broadcast."""
        shapes = {desc.shape for desc in forward_arrays(call) if desc is not None}
        if len(shapes) > 1 and max(math.prod(shape) for shape in shapes) >= _LIMIT:
            return Refusal(f"broadcasts arrays of less than {_LIMIT} elements, got {max(map(math.prod, shapes))}")
        return refuse_dtypes(call)

    def layout(self, call: Call) -> str:
        """Any layout that all arrays share, unless inputs are broadcast."""
        shapes = {desc.shape for desc in forward_arrays(call) if desc is not None}
        return "any" if len(shapes) == 1 else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One launch for the output."""
        arrays, names = forward_arrays(call), forward_names(call)
        operands = self._operands(call, arrays, names)
        expression = self._forward if isinstance(self._forward, str) else self._forward(input_names(call))
        (output,) = (name for name in names if name not in input_names(call))
        launches = self._elementwise(call, f"{call.spec.api}_forward", {output: expression}, operands)
        return Program(launches, len(arrays))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch for all gradients of the shape of the output, and one or two for each that is summed."""
        arrays, names = backward_arrays(call, wanted), backward_names(call)
        operands = self._operands(call, arrays, names)
        whole: dict[str, str] = {}
        programs: list[Program] = []
        for name, want in zip(input_names(call), wanted, strict=True):
            expression = self._gradient(name)
            if not want:
                continue
            if expression is None:
                return None
            target = operands[f"d{name}"]
            axes = reduced_axes(target.shape, call.outputs[0].shape)
            if axes:
                programs.append(self._summed(call, name, expression, operands, axes, len(arrays)))
            else:
                whole[f"d{name}"] = expression
        if whole:
            launches = self._elementwise(call, f"{call.spec.api}_backward", whole, operands)
            programs.insert(0, Program(launches, len(arrays)))
        return chained(programs, len(arrays))

    def _gradient(self, name: str) -> str | None:
        if name in self._backward:
            return self._backward[name]
        common = self._backward.get("*")
        return common and common.replace("it", name)

    def _operands(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> dict[str, Operand]:
        rank = len(call.outputs[0].shape)
        shapes = dict.fromkeys(names, call.outputs[0].shape)
        given = self._align(call) if self._align else [desc.shape if desc else () for desc in call.inputs]
        for name, shape in zip(input_names(call), given, strict=True):
            shapes[name] = shapes[f"d{name}"] = aligned(tuple(shape), rank)
        return {
            name: Operand(name, place, desc.dtype, shapes[name])
            for place, (name, desc) in enumerate(zip(names, arrays, strict=True))
            if desc is not None
        }

    def _numbers(self, call: Call, expressions: str) -> list[tuple[str, Argument]]:
        settings: dict[str, object] = dict(call.args)
        if self._settings is not None:
            settings.update(self._settings(call.args))
        return [(name, real(call.dtype, value)) for name, value in settings.items() if uses(expressions, name)]

    def _elementwise(
        self, call: Call, kernel: str, outputs: Mapping[str, str], operands: Mapping[str, Operand]
    ) -> list:  # type: ignore[type-arg]
        frame = call.outputs[0].shape
        n = math.prod(frame)
        if n == 0:
            return []
        text = " ".join(outputs.values())
        read = [operand for name, operand in operands.items() if name not in outputs and uses(text, name)]
        written = [operands[name] for name in outputs]
        numbers = self._numbers(call, text)
        code, dims = elementwise_code(kernel, real_type(call.dtype), read, written, outputs, [n for n, _ in numbers], frame)
        arguments: list[Argument] = [np.int64(n), *[operand.place for operand in (*read, *written)]]
        return [flat(code, n, [*arguments, *[value for _, value in numbers], *dims])]

    def _summed(
        self, call: Call, name: str, expression: str, operands: Mapping[str, Operand], axes: tuple[int, ...], n_arrays: int
    ) -> Program:
        read = [operand for key, operand in operands.items() if uses(expression, key)]
        return reduction(
            f"{call.spec.api}_backward_{name}",
            call.dtype,
            expression,
            read,
            operands[f"d{name}"],
            call.outputs[0].shape,
            axes,
            n_arrays,
            numbers=self._numbers(call, expression),
        )


def elementwise_code(
    kernel: str,
    real_name: str,
    read: Sequence[Operand],
    written: Sequence[Operand],
    outputs: Mapping[str, str],
    numbers: Sequence[str],
    frame: Shape,
) -> tuple[Code, list[Argument]]:
    """The kernel that computes `outputs` from what is `read`, and the numbers behind its other arguments.

    Where something is broadcast these are the lengths of the merged axes but the first, then the strides of each
    broadcast array.
    """
    bent = [operand for operand in read if operand.shape != tuple(frame)]
    lengths, strides = merged(frame, [broadcast_strides(operand.shape, frame) for operand in bent]) if bent else ((), [])
    parameters = ["const int64 n", *[f"const {operand.c_type}* {operand.name}_" for operand in read]]
    parameters += [f"{operand.c_type}* {operand.name}_" for operand in written]
    parameters += [f"const R {name}" for name in numbers]
    parameters += [f"const uint32 n{axis}" for axis in range(1, len(lengths))]
    parameters += [f"const uint32 {operand.name}_{axis}" for operand in bent for axis in range(len(lengths))]
    lines = [unravelled("i", "i", len(lengths))] if bent else []
    for operand in read:
        terms = [f"i{axis} * {operand.name}_{axis}" for axis in range(len(lengths))]
        place = "i" if operand not in bent else " + ".join(terms) or "0"
        lines.append(f"const R {operand.name} = R(load({operand.name}_[{place}]));")
    lines += [f"store({name}_[i], R({in_real(text)}));" for name, text in outputs.items()]
    loop = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
    body = f"  {loop} {{\n    " + "\n    ".join(line for line in lines if line) + "\n  }"
    dims: list[Argument] = [np.uint32(length) for length in lengths[1:]]
    dims += [np.uint32(stride) for own in strides for stride in own]
    return generated(kernel, parameters, body, real_name), dims


def unravelled(index: str, prefix: str, rank: int) -> str:
    """Statements that take a running index apart into one for each axis, ``<prefix>0`` outermost."""
    if rank == 0:
        return ""
    lines = [f"uint32 {prefix}r = uint32({index});"]
    for axis in range(rank - 1, 0, -1):
        lines.append(f"const uint32 {prefix}{axis} = {prefix}r % n{axis}; {prefix}r /= n{axis};")
    return "\n    ".join([*lines, f"const uint32 {prefix}0 = {prefix}r;"])


__all__ = ["C_TYPES", "Pointwise", "elementwise_code", "unravelled"]
