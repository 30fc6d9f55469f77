"""Affine layers and convolutions with quantized weights: a kernel that quantizes, and those of the layers.

Weights are signs, scaled or not, or powers of two where they are fixed. The gradient of the quantized weight is passed on to
the weight as it is, except where that is fixed.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, ArrayDesc, Call, Kernel, Refusal, Runner, Shape, function_spec
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import Composition
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, FLOATING
from nn_ext_cuda.kernels.convolution import CONVOLUTION
from nn_ext_cuda.kernels.linear import LINEAR
from nn_ext_cuda.kernels.quantization import TINY as _TINY
from nn_ext_cuda.kernels.random import SeededProgram
from nn_ext_cuda.launch.program import THREADS, Argument, Chain, ChainStep, Launch, Program, flat
from nn_ext_cuda.memory.arrays import allocated

_SIGN: Final = "(weight == 0 ? quantize_zero_to : weight > 0 ? R(1) : weight < 0 ? R(-1) : weight)"


class _Layer:
    """A layer on a quantized weight.

    Args:
        layer: Name of the function that runs on it: Affine or Convolution.
    """

    def __init__(self, layer: str) -> None:
        self.name = layer
        self._kernel: Kernel = {**LINEAR, **CONVOLUTION}[layer]

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what the layer refuses, and weights without elements."""
        if weight_of(call).size == 0:
            return Refusal("takes weights of at least one element")
        return self._kernel.refuse(self._inner(call))

    def forward(self, call: Call, weight: int) -> "_Stage":
        """Return the layer on the weight at the place `weight`."""
        n = len(call.inputs)
        return _Stage(self._kernel.forward(self._inner(call)), (0, weight, n - 1, n))

    def backward(self, call: Call, wanted: Sequence[bool], weight: int) -> "_Stage | None":
        """Its gradients, that of the quantized weight in the place of that of the weight."""
        runner = self._kernel.backward(self._inner(call), [wanted[0], wanted[1], wanted[-1]])
        n, dx = len(call.inputs), len(call.inputs) + 2
        return None if runner is None else _Stage(runner, (0, weight, n - 1, n, n + 1, dx, dx + 1, dx + n - 1))

    def _inner(self, call: Call) -> Call:
        """Return the call of the layer, on another weight."""
        spec = function_spec(self.name)
        assert spec is not None
        args = {**call.args, "channel_last": False}
        inputs = call.inputs[0], call.inputs[1], call.inputs[-1]
        return dataclasses.replace(call, spec=spec, args=args, inputs=inputs, outputs=call.outputs[:1])


class BinaryLayer:
    """A layer with the signs of its weight, which it writes to the input `binary_weight`.

    Args:
        layer: Affine or Convolution.
        scaled: The signs of each output are multiplied by the mean magnitude of its weights, written to the input `alpha`.
    """

    def __init__(self, layer: str, *, scaled: bool) -> None:
        self._layer = _Layer(layer)
        self._scaled = scaled

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse what the layer refuses, and weights without elements."""
        return self._layer.refuse(call)

    def forward(self, call: Call) -> Runner:
        """Return the mean magnitudes, the signs, and the layer."""
        arrays, names = forward_arrays(call), forward_names(call)
        quantized = ArrayDesc(weight_of(call).shape, call.dtype)
        composition = self._composition(call, [*arrays, quantized], [*names, "quantized"])
        outputs = {"quantized": self._quantized(call, composition), "binary_weight": _SIGN}
        if self._scaled:
            composition.compute(f"{call.spec.api}_alpha", {"alpha": "scale"})
        composition.compute(f"{call.spec.api}_quantize", outputs)
        parts = [_Stage(composition.program()), self._layer.forward(call, len(arrays))]
        return QuantizedLayer(parts, len(arrays), quantized)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the gradients of the layer, on the weight quantized anew; None for those of what it writes."""
        arrays, names = backward_arrays(call, wanted), backward_names(call)
        layer = None if any(wanted[2:-1]) else self._layer.backward(call, wanted, len(arrays))
        if layer is None:
            return None
        quantized = ArrayDesc(weight_of(call).shape, call.dtype)
        composition = self._composition(call, [*arrays, quantized], [*names, "quantized"])
        if wanted[0]:
            composition.compute(f"{call.spec.api}_quantize", {"quantized": self._quantized(call, composition)})
        return QuantizedLayer([_Stage(composition.program()), layer], len(arrays), quantized)

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        """Return a composition over the weight as a matrix of one row, or column, for each output."""
        matrix, by_output = self._frame(call)
        own = ("weight", "binary_weight", "quantized", "alpha")
        kept = [desc if name in own else None for name, desc in zip(names, arrays, strict=True)]
        shapes = {**dict.fromkeys(own, matrix), "alpha": by_output}
        return Composition(call, kept, names, matrix, shapes, {"count": math.prod(matrix) / math.prod(by_output)})

    def _quantized(self, call: Call, composition: Composition) -> str:
        """Return the expression of the quantized weight, after the launches that it needs."""
        if not self._scaled:
            return _SIGN
        composition.scratch("scale", self._frame(call)[1])
        composition.reduce(f"{call.spec.api}_scale", "scale", "fabs(weight)", finish="a / count")
        return f"{_SIGN} * scale"

    def _frame(self, call: Call) -> tuple[Shape, Shape]:
        """Lengths of the weight as a matrix, and of one number for each output."""
        weight = weight_of(call)
        matrix = (weight.shape[0], weight.size // weight.shape[0])
        return matrix, (1, matrix[1]) if self._layer.name == "Affine" else (matrix[0], 1)


#: The nearest of zero and the largest powers of two that weights span; `top` is the exponent of the largest one. Exponents
#: beyond those of all numbers are cut, so that they are whole numbers of 32 bits; NaN has none, and stays.
_LOW: Final = "larger(top + 1 - levels, R(-3000))"
_EXPONENT: Final = f"larger(smaller(floor(log2(larger(fabs(weight) * (4.0 / 3.0), {_TINY}))), smaller(top, R(3000))), {_LOW})"
_POWER: Final = (
    f"(top != top ? top : weight != weight ? weight : fabs(weight) < ldexp(R(1), int(smaller({_LOW}, R(3000))) - 1) ? R(0)"
    f" : (weight < 0 ? R(-1) : R(1)) * ldexp(R(1), int(smaller({_EXPONENT}, R(3000)))))"
)
_FIXED: Final = "indicator_fixedweights > 0"
#: The dtypes in which kernels write an indicator: parameters keep theirs where weights are read in another one.
_INDICATORS: Final = (*FLOATING, "int64")


class FixedLayer:
    """A layer whose weight is rewritten with powers of two where it is fixed (Zhou et al., 2017).

    Args:
        layer: Affine or Convolution.
    """

    def __init__(self, layer: str) -> None:
        self._layer = _Layer(layer)

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes in which magnitudes or indicators are not compared, and what the layer refuses."""
        indicator = call.inputs[2]
        assert indicator is not None
        if call.args["inq_iterations"] and call.dtype == "float64":
            return Refusal("takes no inq_iterations in float64: magnitudes are compared in float32")
        if indicator.dtype not in _INDICATORS:
            return Refusal(f"takes an indicator of {', '.join(_INDICATORS)}, got {indicator.dtype}")
        return self._layer.refuse(call)

    def forward(self, call: Call) -> Runner:
        """Return the weights that are fixed now, if it is time for it; the largest exponent, the fixed weights, and the
        layer.
        """
        arrays, names = forward_arrays(call), forward_names(call)
        fixing = _Fixing(call) if call.args["inq_iterations"] else None
        composition = self._composition(call, arrays, names)
        composition.scratch("top", (1,))
        finish = f"floor(log2(larger(a * (4.0 / 3.0), {_TINY})))"
        composition.reduce(f"{call.spec.api}_top", "top", "fabs(weight)", combine="maximum", finish=finish)
        others = "indicator_fixedweights" if fixing else "R(0)"
        outputs = {"weight": f"{_FIXED} ? {_POWER} : weight", "indicator_fixedweights": f"{_FIXED} ? R(1) : {others}"}
        composition.compute(f"{call.spec.api}_quantize", outputs)
        parts = [_Stage(composition.program(), range(len(arrays))), self._layer.forward(call, 1)]
        if fixing is None:
            return QuantizedLayer(parts, len(arrays))
        return QuantizedLayer([*fixing.parts(len(arrays)), *parts], len(arrays), *fixing.memory)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Return the gradients of the layer, zero where the weight is fixed; None for that of the indicator."""
        arrays = backward_arrays(call, wanted)
        layer = None if wanted[2] else self._layer.backward(call, wanted, 1)
        if layer is None:
            return None
        composition = self._composition(call, arrays, backward_names(call))
        if wanted[1]:
            outputs = {"dweight": f"{_FIXED} ? R(0) : dweight"}
            composition.compute(f"{call.spec.api}_backward_fixed", outputs)
        return QuantizedLayer([layer, _Stage(composition.program())], len(arrays))

    @staticmethod
    def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        own = ("weight", "indicator_fixedweights", "dweight")
        kept = [desc if name in own else None for name, desc in zip(names, arrays, strict=True)]
        size, num_bits = weight_of(call).size, call.args["num_bits"]
        assert isinstance(num_bits, int)
        return Composition(call, kept, names, (size,), dict.fromkeys(own, (size,)), {"levels": 2.0 ** (num_bits - 2)})


class _Fixing:
    """The launches that fix half of the weights that are not fixed yet, or all of them, when the passes so far are in a list.

    The device counts the passes, in the indicator, so that the launches are the same in all of them: those that choose
    weights return at once where it is not time for it.

    Args:
        call: The call.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._random = call.args["selection_algorithm"] == "random"

    @property
    def memory(self) -> tuple[ArrayDesc, ArrayDesc]:
        """The number of passes, and the smallest rank that is chosen with the end of those that are chosen of that rank."""
        return ArrayDesc((1,), "float32"), ArrayDesc((2,), "int64")

    def parts(self, n_arrays: int) -> list["_Stage"]:
        """Return the launches, on the arrays of the call, then the memory, then the random key."""
        weight, indicator = weight_of(self._call), self._call.inputs[2]
        assert indicator is not None
        passes, _ = self.memory
        names, shape = ("indicator_fixedweights", "passes"), (weight.size,)
        counting = Composition(self._call, [indicator, passes], names, shape, {names[0]: shape, names[1]: (1,)})
        counted = f"{_FIXED} ? R(0) : -indicator_fixedweights"
        counting.reduce(f"{self._call.spec.api}_passes", "passes", counted, combine="maximum")
        arguments: tuple[Argument, ...] = (np.int64(weight.size), 0, 1, 2, 3, 4 if self._random else np.uint64(0))
        launches = [
            Launch(self._code("choose_fixed", indicator.dtype), (1,), (THREADS,), arguments),
            flat(self._code("mark_fixed", indicator.dtype), weight.size, arguments),
        ]
        order = [2, 1, n_arrays, n_arrays + 1]
        program: Program = Program(launches, 4)
        if self._random:
            order.append(n_arrays + 2)
            program = SeededProgram(launches, 5)
        return [_Stage(counting.program(), (2, n_arrays)), _Stage(program, order)]

    def _code(self, function: str, indicator: str) -> Code:
        iterations = self._call.args["inq_iterations"]
        assert isinstance(iterations, tuple)
        times = [f"passes == {int(number)}" for number in iterations]
        header = f"#define IS_TIME ({' || '.join(times)})\n#define IS_LAST (passes == {int(iterations[-1])})\n"
        header += f"#define RANDOM {int(self._random)}\n"
        header += f"typedef {C_TYPES[weight_of(self._call).dtype]} T;\ntypedef {C_TYPES[indicator]} I;\n"
        return Code(function, header + part("philox.cuh") + part("fixing.cu"), "float")


@dataclasses.dataclass(frozen=True, slots=True)
class _Stage:
    """A runner, and the places of its arrays among those that there are; None: it takes all of them."""

    runner: Any
    order: Sequence[int] | None = None

    def bind(self, arrays: Sequence[Array]) -> Any:
        """Return the step on its arrays."""
        return self.runner.bind(*(arrays if self.order is None else [arrays[place] for place in self.order]))


class QuantizedLayer:
    """A runner (see `nn_core.ext.Runner`) of a layer and of what quantizes its weight.

    Args:
        parts: What is run, in order.
        n_arrays: How many arrays the call has.
        memory: Further arrays of the parts, which live as long as a step; a random key comes after them.
    """

    __slots__ = ("_memory", "_n_arrays", "_parts")

    def __init__(self, parts: Sequence[_Stage], n_arrays: int, *memory: ArrayDesc) -> None:
        self._parts = tuple(parts)
        self._n_arrays = n_arrays
        self._memory = memory

    @property
    def launches(self) -> tuple[Any, ...]:
        """All launches."""
        return Chain([part.runner for part in self._parts]).launches

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> ChainStep:
        """Return the steps on these arrays."""
        made = [allocated(desc.shape, desc.dtype) for desc in self._memory]
        held = [*arrays[: self._n_arrays], *made, *arrays[self._n_arrays :]]
        return ChainStep([part.bind(held) for part in self._parts])


def weight_of(call: Call) -> ArrayDesc:
    """Return the trained weight."""
    weight = call.inputs[1]
    assert weight is not None
    return weight


QUANTIZED_LAYERS: Final[Mapping[str, Kernel]] = {
    "BinaryConnectAffine": BinaryLayer("Affine", scaled=False),
    "BinaryConnectConvolution": BinaryLayer("Convolution", scaled=False),
    "BinaryWeightAffine": BinaryLayer("Affine", scaled=True),
    "BinaryWeightConvolution": BinaryLayer("Convolution", scaled=True),
    "INQAffine": FixedLayer("Affine"),
    "INQConvolution": FixedLayer("Convolution"),
}
