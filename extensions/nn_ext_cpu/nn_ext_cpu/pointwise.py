"""Element-wise functions as rows of text that are compiled to programs of the native interpreter.

A row says what the output is and what each gradient is, in the names of the specification: gradients are called ``d``
and the name. Each line reads ``target = function sources ; parameters``, where a parameter is a number or the name of
an argument, perhaps with a minus sign. Names that are no arrays are temporaries of one block of elements.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from nn_core.ext import ArrayDesc, Call, Refusal, Runner, Shape
from nn_ext_cpu import _native
from nn_ext_cpu.describe import FLOATING, NUMBERS, backward_arrays, forward_arrays, input_names, refuse_dtype, reshaped

#: (function, register written, registers read, parameters)
Instruction: TypeAlias = tuple[str, int, list[int], list[float]]
#: Arguments of a call, which parameters of a program may name.
Settings: TypeAlias = Mapping[str, Any]

#: Arrays and temporaries that a program may have.
MAX_REGISTERS = 64


def compile_program(lines: Sequence[str], arrays: Mapping[str, int], n_arrays: int, settings: Settings) -> list[Instruction]:
    """Turn lines of text into instructions; `arrays` gives the positions of the arrays that lines may name."""
    registers = dict(arrays)
    program: list[Instruction] = []
    for line in lines:
        target, _, rest = line.partition(" = ")
        operands, _, parameters = rest.partition(";")
        function, *sources = operands.split()
        read = [registers[name] for name in sources]
        if target not in registers:
            registers[target] = max(n_arrays - 1, *registers.values()) + 1
        program.append((function, registers[target], read, [_number(text, settings) for text in parameters.split()]))
    return program


def _number(text: str, settings: Settings) -> float:
    negative = text.startswith("-")
    name = text[1:] if negative else text
    value = float(settings[name]) if name in settings else float(name)
    return -value if negative else value


class Pointwise:
    """The kernel of a row of the table.

    Args:
        forward: Lines that compute the outputs, or what makes them for a call. The inputs of a variadic function are
            numbered from 0.
        backward: For each input that has a gradient, the lines that compute it.
        views: Shapes under which some arrays (by name) and their gradients are seen; they broadcast against each other.
        refuse: Says why a call is not for this row, if it is not.
    """

    def __init__(
        self,
        forward: str | Callable[[Call], str],
        backward: Mapping[str, str] | Callable[[Call], Mapping[str, str]] | None = None,
        *,
        views: Callable[[Call], Mapping[str, Shape]] | None = None,
        refuse: Callable[[Call], Refusal | None] | None = None,
    ) -> None:
        self._forward = forward
        self._backward = backward or {}
        self._views = views
        self._refuse = refuse

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32, bfloat16 and float64, too many arrays, and what the row itself refuses."""
        if len(call.inputs) + len(call.outputs) > MAX_REGISTERS:
            return Refusal(f"takes at most {MAX_REGISTERS} arrays, got {len(call.inputs) + len(call.outputs)}")
        taken = FLOATING if call.dtype in FLOATING else (call.dtype,)
        for desc in forward_arrays(call):
            if desc is not None and desc.dtype not in taken:
                return Refusal(f"computes in {' or '.join(taken)}, got {desc.dtype}")
        return refuse_dtype(call, NUMBERS) or (self._refuse(call) if self._refuse else None)

    def layout(self, call: Call) -> str:
        """Any layout that all arrays share, unless inputs are broadcast or seen under other shapes."""
        shapes = {desc.shape for desc in forward_arrays(call) if desc is not None}
        return "any" if len(shapes) == 1 and self._views is None else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Compile the lines of the outputs."""
        names = [*_numbered(call), *[entry.name for entry in call.spec.outputs]]
        lines = self._forward if isinstance(self._forward, str) else self._forward(call)
        return self._compiled(call, lines.split("\n"), names, forward_arrays(call))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Compile the lines of the wanted gradients; None if the row lacks one of them, or arrays are too many."""
        inputs = _numbered(call)
        rows = self._backward if isinstance(self._backward, Mapping) else self._backward(call)
        names = [name for name, want in zip(inputs, wanted, strict=True) if want]
        arrays = backward_arrays(call, wanted)
        if not set(names) <= set(rows) or len(arrays) > MAX_REGISTERS:
            return None
        lines = [line for name in names for line in rows[name].split("\n")]
        outputs = [entry.name for entry in call.spec.outputs]
        visible = [f"d{entry.name}" for entry in call.spec.visible_outputs]
        names = [*inputs, *outputs, *visible, *[f"d{name}" for name in inputs]]
        return self._compiled(call, lines, names, arrays)

    def _compiled(self, call: Call, lines: Sequence[str], names: Sequence[str], arrays: Sequence[ArrayDesc | None]) -> Runner:
        places = {name: k for k, (name, desc) in enumerate(zip(names, arrays, strict=True)) if desc is not None}
        program = compile_program(lines, places, len(arrays), call.args)
        views = list(arrays)
        for name, shape in self._views(call).items() if self._views else ():
            for seen in (name, f"d{name}"):
                if seen in places:
                    views[places[seen]] = reshaped(arrays[places[seen]], shape)
        runner: Runner = _native.prepare("pointwise", arrays, views=views, program=program)
        return runner


def _numbered(call: Call) -> list[str]:
    """Return the name of each input; variadic ones with their number."""
    names = input_names(call)
    return [f"{name}{k}" for k, name in enumerate(names)] if call.spec.variadic else names
