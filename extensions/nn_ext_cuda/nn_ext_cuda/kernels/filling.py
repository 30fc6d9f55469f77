"""Arrays whose elements follow from arguments and shapes alone."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np

from nn_core.ext import Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import generated
from nn_ext_cuda.codegen.dtypes import C_TYPES
from nn_ext_cuda.launch.program import Program, flat

_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
#: Numbers of an expression, from the call; integers become int64, others double.
_Numbers: TypeAlias = Callable[[Call], Mapping[str, int | float]]


class Filled:
    """A function without inputs that are read; computed in double precision, and rounded once.

    Args:
        expression: The element number i of n; or what makes it from the names of the numbers.
        numbers: Numbers that it names.
    """

    def __init__(self, expression: str | Callable[[Sequence[str]], str], numbers: _Numbers) -> None:
        self._expression = expression
        self._numbers = numbers

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not known."""
        dtype = call.outputs[0].dtype
        return None if dtype in C_TYPES else Refusal(f"gives {', '.join(C_TYPES)}, got {dtype}")

    def forward(self, call: Call) -> Runner:
        """One launch."""
        y, numbers = call.outputs[0], self._numbers(call)
        place = len(call.inputs)
        if y.size == 0:
            return Program([], place + 1)
        expression = self._expression if isinstance(self._expression, str) else self._expression(list(numbers))
        parameters = ["const int64 n", f"{C_TYPES[y.dtype]}* y"]
        parameters += [f"const {'int64' if isinstance(number, int) else 'double'} {name}" for name, number in numbers.items()]
        code = generated(f"{call.spec.api}_forward", parameters, f"  {_LOOP} store(y[i], {expression});", "double")
        values = [np.int64(number) if isinstance(number, int) else np.float64(number) for number in numbers.values()]
        return Program([flat(code, y.size, [np.int64(y.size), place, *values])], place + 1)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


def _line(*names: str) -> _Numbers:
    """Arguments as doubles."""
    return lambda call: {name: float(call.args[name]) for name in names}  # type: ignore[arg-type]  # numbers


def _diagonal(call: Call) -> Mapping[str, int | float]:
    """Return the number of the diagonal, and of the columns."""
    return {"k": int(call.args["k"]), "columns": call.outputs[0].shape[1]}  # type: ignore[arg-type]  # an int


def _lengths(call: Call) -> Mapping[str, int | float]:
    """Return the lengths of the axes that are asked for."""
    (x,), (start, end) = call.inputs, (call.args["start"], call.args["end"])
    assert x is not None and isinstance(start, int) and isinstance(end, int)
    return {f"length{axis}": length for axis, length in enumerate(x.shape[start : end or len(x.shape)])}


def _listed(names: Sequence[str]) -> str:
    """One of several numbers."""
    return " : ".join([*[f"i == {place} ? {name}" for place, name in enumerate(names)], "int64(0)"])


FILLING: Final[Mapping[str, Kernel]] = {
    "Arange": Filled("start + step * double(i)", _line("start", "step")),
    "EyeLike": Filled("i % columns == i / columns + k ? 1.0 : 0.0", _diagonal),
    "Linspace": Filled(
        "i + 1 == n && n > 1 ? stop : start + double(i) * ((stop - start) / double(n > 1 ? n - 1 : 1))",
        _line("start", "stop"),
    ),
    "Shape": Filled(_listed, _lengths),
    "Sink": Filled("0.0", lambda _: {}),
}
