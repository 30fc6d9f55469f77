"""Affine layers and convolutions with quantized weights: a kernel that quantizes, and those of the layers.

Weights are signs, scaled or not, or powers of two where they are fixed. The gradient of the quantized weight is passed on to
the weight as it is, except where that is fixed.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, ArrayDesc, Call, Kernel, Refusal, Runner, Shape, function_spec
from nn_ext_cuda.compose import Composition
from nn_ext_cuda.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.dtypes import FLOATING
from nn_ext_cuda.kernels.convolution import CONVOLUTION
from nn_ext_cuda.kernels.linear import LINEAR
from nn_ext_cuda.kernels.quantization import TINY as _TINY
from nn_ext_cuda.launch import Chain, ChainStep
from nn_ext_cuda.memory import allocated

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

    def forward(self, call: Call, weight: int) -> "_Part":
        """The layer on the weight at the place `weight`."""
        n = len(call.inputs)
        return _Part(self._kernel.forward(self._inner(call)), (0, weight, n - 1, n))

    def backward(self, call: Call, wanted: Sequence[bool], weight: int) -> "_Part | None":
        """Its gradients, that of the quantized weight in the place of that of the weight."""
        runner = self._kernel.backward(self._inner(call), [wanted[0], wanted[1], wanted[-1]])
        n, dx = len(call.inputs), len(call.inputs) + 2
        return None if runner is None else _Part(runner, (0, weight, n - 1, n, n + 1, dx, dx + 1, dx + n - 1))

    def _inner(self, call: Call) -> Call:
        """The call of the layer, on another weight."""
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
        """The mean magnitudes, the signs, and the layer."""
        arrays, names = forward_arrays(call), forward_names(call)
        quantized = ArrayDesc(weight_of(call).shape, call.dtype)
        composition = self._composition(call, [*arrays, quantized], [*names, "quantized"])
        outputs = {"quantized": self._quantized(call, composition), "binary_weight": _SIGN}
        if self._scaled:
            composition.compute(f"{call.spec.api}_alpha", {"alpha": "scale"})
        composition.compute(f"{call.spec.api}_quantize", outputs)
        parts = [_Part(composition.program()), self._layer.forward(call, len(arrays))]
        return QuantizedLayer(parts, len(arrays), quantized)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """The gradients of the layer, on the weight quantized anew; None for those of what it writes."""
        arrays, names = backward_arrays(call, wanted), backward_names(call)
        layer = None if any(wanted[2:-1]) else self._layer.backward(call, wanted, len(arrays))
        if layer is None:
            return None
        quantized = ArrayDesc(weight_of(call).shape, call.dtype)
        composition = self._composition(call, [*arrays, quantized], [*names, "quantized"])
        if wanted[0]:
            composition.compute(f"{call.spec.api}_quantize", {"quantized": self._quantized(call, composition)})
        return QuantizedLayer([_Part(composition.program()), layer], len(arrays), quantized)

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        """A composition over the weight as a matrix of one row, or column, for each output."""
        matrix, by_output = self._frame(call)
        own = ("weight", "binary_weight", "quantized", "alpha")
        kept = [desc if name in own else None for name, desc in zip(names, arrays, strict=True)]
        shapes = {**dict.fromkeys(own, matrix), "alpha": by_output}
        return Composition(call, kept, names, matrix, shapes, {"count": math.prod(matrix) / math.prod(by_output)})

    def _quantized(self, call: Call, composition: Composition) -> str:
        """The expression of the quantized weight, after the launches that it needs."""
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
        """Refuse to fix further weights, which depends on the passes so far, and what the layer refuses."""
        indicator = call.inputs[2]
        assert indicator is not None
        if call.args["inq_iterations"]:
            return Refusal("takes no inq_iterations: whether it is time to fix weights is decided on the host")
        if indicator.dtype not in _INDICATORS:
            return Refusal(f"takes an indicator of {', '.join(_INDICATORS)}, got {indicator.dtype}")
        return self._layer.refuse(call)

    def forward(self, call: Call) -> Runner:
        """The largest exponent, the fixed weights in place, and the layer; the random key is of no use here."""
        arrays = forward_arrays(call)
        composition = self._composition(call, arrays, forward_names(call))
        composition.scratch("top", (1,))
        finish = f"floor(log2(larger(a * (4.0 / 3.0), {_TINY})))"
        composition.reduce(f"{call.spec.api}_top", "top", "fabs(weight)", combine="maximum", finish=finish)
        outputs = {"weight": f"{_FIXED} ? {_POWER} : weight", "indicator_fixedweights": f"{_FIXED} ? R(1) : R(0)"}
        composition.compute(f"{call.spec.api}_quantize", outputs)
        return QuantizedLayer([_Part(composition.program()), self._layer.forward(call, 1)], len(arrays))

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """The gradients of the layer, zero where the weight is fixed; None for that of the indicator."""
        arrays = backward_arrays(call, wanted)
        layer = None if wanted[2] else self._layer.backward(call, wanted, 1)
        if layer is None:
            return None
        composition = self._composition(call, arrays, backward_names(call))
        if wanted[1]:
            outputs = {"dweight": f"dweight * ({_FIXED} ? R(0) : R(1))"}
            composition.compute(f"{call.spec.api}_backward_fixed", outputs)
        return QuantizedLayer([layer, _Part(composition.program())], len(arrays))

    @staticmethod
    def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        own = ("weight", "indicator_fixedweights", "dweight")
        kept = [desc if name in own else None for name, desc in zip(names, arrays, strict=True)]
        size, num_bits = weight_of(call).size, call.args["num_bits"]
        assert isinstance(num_bits, int)
        return Composition(call, kept, names, (size,), dict.fromkeys(own, (size,)), {"levels": 2.0 ** (num_bits - 2)})


@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A runner, and the places of its arrays among those that there are; None: it takes all of them."""

    runner: Any
    order: Sequence[int] | None = None

    def bind(self, arrays: Sequence[Array]) -> Any:
        """The step on its arrays."""
        return self.runner.bind(*(arrays if self.order is None else [arrays[place] for place in self.order]))


class QuantizedLayer:
    """A runner (see `nn_core.ext.Runner`) of a layer and of what quantizes its weight.

    Args:
        parts: What is run, in order.
        n_arrays: How many arrays the call has; what comes after them is left out.
        quantized: A further array of the parts, which lives as long as a step.
    """

    __slots__ = ("_n_arrays", "_parts", "_quantized")

    def __init__(self, parts: Sequence[_Part], n_arrays: int, quantized: ArrayDesc | None = None) -> None:
        self._parts = tuple(parts)
        self._n_arrays = n_arrays
        self._quantized = quantized

    @property
    def launches(self) -> tuple[Any, ...]:
        """All launches."""
        return Chain([part.runner for part in self._parts]).launches

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> ChainStep:
        """The steps on these arrays."""
        held = list(arrays[: self._n_arrays])
        if self._quantized is not None:
            held.append(allocated(self._quantized.shape, self._quantized.dtype))
        return ChainStep([part.bind(held) for part in self._parts])


def weight_of(call: Call) -> ArrayDesc:
    """The trained weight."""
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
