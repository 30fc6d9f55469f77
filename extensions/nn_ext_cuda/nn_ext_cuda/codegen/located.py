"""Kernels that compute one element of an array from its coordinates, as rows of C statements."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call
from nn_ext_cuda.codegen.code import generated, in_real, length_parameters, unravelled
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, real, real_type
from nn_ext_cuda.codegen.layout import length_arguments
from nn_ext_cuda.codegen.operand import uses
from nn_ext_cuda.device.faults import TELL, arguments_of, parameters_of
from nn_ext_cuda.launch.program import Argument, Program, flat

_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"


def located(
    call: Call,
    name: str,
    lengths: Sequence[int],
    statement: str,
    numbers: Mapping[str, int | float] | None = None,
    wanted: Sequence[bool] | None = None,
    functions: str = "",
    fault: str = "",
) -> Program:
    """Return the program that runs `statement` for each place of a frame.

    The statement knows the number i of the place, its coordinates i0, i1, ..., the arrays of the call by their names
    (a gradient is called d and the name of its array), and `numbers`. Neighbouring i are neighbouring threads.

    Args:
        call: The call.
        name: Name of the kernel.
        lengths: Of the axes of the frame, less than 2^31 places together.
        statement: C statements.
        numbers: Integers become int64, others R.
        wanted: For a backward pass, which gradients are wanted.
        functions: Device functions that the statement calls.
        fault: The message of a fault in values, of which the statement may ``tell(fault, fault_number, value)``.
    """
    arrays = forward_arrays(call) if wanted is None else backward_arrays(call, wanted)
    n = math.prod(lengths)
    if n == 0:
        return Program([], len(arrays))
    used = _used(statement, forward_names(call) if wanted is None else backward_names(call), arrays)
    given = {key: value for key, value in (numbers or {}).items() if uses(statement, key)}
    parameters = ["const int64 n", *[f"{C_TYPES[desc.dtype]}* {own}" for _, own, desc in used]]
    parameters += [f"const {'int64' if isinstance(value, int) else 'R'} {key}" for key, value in given.items()]
    parameters += [*length_parameters("n", len(lengths)), *parameters_of(fault)]
    arguments: list[Argument] = [np.int64(n), *[place for place, _, _ in used]]
    arguments += [_number(call, value) for value in given.values()]
    arguments += [*length_arguments(lengths), *arguments_of(fault)]
    body = f"  {_LOOP} {{\n    {unravelled('i', 'n', len(lengths))}\n    {in_real(statement)}\n  }}"
    code = generated(name, parameters, body, real_type(call.dtype), functions + TELL * bool(fault))
    return Program([flat(code, n, arguments)], len(arrays))


def _used(statement: str, names: Sequence[str], arrays: Sequence[ArrayDesc | None]) -> list[tuple[int, str, ArrayDesc]]:
    """Place, name and description of the arrays that statements name."""
    return [
        (place, own, desc)
        for place, (own, desc) in enumerate(zip(names, arrays, strict=True))
        if desc is not None and uses(statement, own)
    ]


def _number(call: Call, value: int | float) -> np.generic:
    return np.int64(value) if isinstance(value, int) else real(call.dtype, value)
