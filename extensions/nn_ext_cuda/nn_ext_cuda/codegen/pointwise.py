"""Element-wise functions as rows of C expressions, each compiled to one kernel.

A row says what the output is and what the gradient of each input is, in the names of the specification (a gradient is
called d and the name of its array; arguments have their names too). Inputs broadcast against each other; the gradient
of one that was broadcast is summed in the kernel that computes it.
"""

from collections.abc import Callable, Mapping, Sequence

from nn_core.ext import ArrayDesc, Call, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names, input_names
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.layout import aligned


class Pointwise:
    """The kernel of a row.

    Args:
        forward: The output; a function of the names of the inputs where there can be any number of them.
        backward: The gradient of each input that has one, or what makes them for a call; "*" stands for every input.
        align: The shapes of the inputs as they are broadcast, where it is not from the last axis.
        settings: Makes further numbers for the expressions out of the arguments.
    """

    def __init__(
        self,
        forward: str | Callable[[Sequence[str]], str],
        backward: Mapping[str, str] | Callable[[Call], Mapping[str, str]] | None = None,
        *,
        align: Callable[[Call], Sequence[Shape]] | None = None,
        settings: Callable[[Mapping[str, object]], Mapping[str, float]] | None = None,
    ) -> None:
        self._forward = forward
        self._backward = backward or {}
        self._align = align
        self._settings = settings

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that 32 bits cannot index where they are broadcast."""
        arrays = forward_arrays(call)
        broadcasts = len({desc.shape for desc in arrays if desc is not None}) > 1
        return (refuse_sizes(arrays) if broadcasts else None) or refuse_dtypes(call)

    def layout(self, call: Call) -> str:
        """Any layout that all arrays share, unless inputs are broadcast."""
        shapes = {desc.shape for desc in forward_arrays(call) if desc is not None}
        return "any" if len(shapes) == 1 else "contiguous"

    def forward(self, call: Call) -> Runner:
        """One launch."""
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        expression = self._forward if isinstance(self._forward, str) else self._forward(input_names(call))
        composition.compute(f"{call.spec.api}_forward", {call.spec.outputs[0].name: expression})
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch for all gradients of the shape of the output, and one or two for each that is summed."""
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        shapes = self._shapes(call)
        rows = self._backward if isinstance(self._backward, Mapping) else self._backward(call)
        whole: dict[str, str] = {}
        for name, want in zip(input_names(call), wanted, strict=True):
            expression = rows.get(name, rows.get("*"))
            if not want:
                continue
            if expression is None:
                return None
            if shapes[name] == call.outputs[0].shape:
                whole[f"d{name}"] = expression
            else:
                composition.reduce(f"{call.spec.api}_backward_{name}", f"d{name}", expression)
        if whole:
            composition.compute(f"{call.spec.api}_backward", whole)
        return composition.program()

    def _shapes(self, call: Call) -> dict[str, Shape]:
        """Return the shapes of inputs and of their gradients, with the rank of the output."""
        given = self._align(call) if self._align else [desc.shape if desc else () for desc in call.inputs]
        rank = len(call.outputs[0].shape)
        shapes = {name: aligned(tuple(shape), rank) for name, shape in zip(input_names(call), given, strict=True)}
        return shapes | {f"d{name}": shape for name, shape in shapes.items()}

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        numbers = self._settings(call.args) if self._settings else {}
        return Composition(call, arrays, names, call.outputs[0].shape, self._shapes(call), numbers)
