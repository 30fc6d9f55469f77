"""Convolutions with what follows them in a trained network: a normalization by running statistics, a sum, a ReLU.

The normalization is folded into filters and bias, which are small: w' = w s and b' = beta + (b - mean) s with
s = gamma / sqrt(variance + eps). Then all of it is one plan of cuDNN.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.compose import Composition
from nn_ext_cuda.describe import forward_arrays, forward_names
from nn_ext_cuda.launch import Chain, ChainStep, Program
from nn_ext_cuda.memory import allocated
from nn_ext_cudnn.graph.convolution import ConvolutionKernel, Epilogue

#: Places of the arrays of a call, followed by those that are computed first.
_X: Final = 0
_WEIGHT: Final = 1
_BIAS: Final = 2
_Z: Final = 7
_Y: Final = 8
_FOLDED_WEIGHT: Final = 11
_FOLDED_BIAS: Final = 12
_STATISTICS: Final = slice(3, 7)


class FusedConvolution(ConvolutionKernel):
    """Padding by zeros, a convolution, a normalization by running statistics, a sum, and a ReLU or nothing."""

    def refuse_settings(self, call: Call) -> Refusal | None:
        """Refuse statistics of the batch, other borders than zeros, and other nonlinearities."""
        nonlinearity, mode, border = (call.args[name] for name in ("nonlinearity", "pad_mode", "constant_value"))
        if nonlinearity not in ("identity", "relu"):
            return Refusal(f"takes the nonlinearities identity and relu, got {nonlinearity}")
        if any(call.args["pad"]) and (mode != "constant" or border):  # type: ignore[arg-type]  # a tuple of ints
            return Refusal(f"takes borders of zeros, got {mode} {border}")
        if _is_normalized(call) and (call.args["batch_stat"] or None in call.inputs[5:7]):
            return Refusal("takes running statistics, got those of the batch")
        return super().refuse_settings(call)

    def layout(self, call: Call) -> str:
        """As for a convolution; C-contiguous with a z, which would not have the layout of y, and has no engine then."""
        return "contiguous" if call.inputs[_Z] is not None else super().layout(call)

    def forward(self, call: Call) -> Runner:
        """Launches that fold the normalization, the plan, and a launch for the statistics that were used."""
        folds = _is_normalized(call)
        channels = call.outputs[1].size
        weight = call.inputs[_WEIGHT]
        assert weight is not None
        arrays = [*forward_arrays(call), weight, ArrayDesc((channels,), call.dtype)]
        epilogue = Epilogue(
            _FOLDED_BIAS if folds or call.inputs[_BIAS] is None else _BIAS,
            None if call.inputs[_Z] is None else _Z,
            call.args["nonlinearity"] == "relu",
        )
        weight_place = _FOLDED_WEIGHT if folds else _WEIGHT
        plan = self._runner(call, "narrow", arrays, _X, weight_place, _Y, epilogue)
        runners = [_folding(call, arrays), plan, _kept(call, arrays)]
        return _WithScratch(runners, [(weight.shape if folds else (0,), call.dtype), ((channels,), call.dtype)])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves; networks in training are normalized by their batches."""
        return None


class _WithScratch:
    """Runners over the arrays of a call and arrays that live as long as a step."""

    def __init__(self, runners: Sequence[Any], scratch: Sequence[tuple[Shape, str]]) -> None:
        self._runners = Chain(runners)
        self._scratch = tuple(scratch)

    def __call__(self, *arrays: Array) -> None:
        self.bind(*arrays)()

    def bind(self, *arrays: Array) -> ChainStep:
        """The steps of all runners."""
        return self._runners.bind(*arrays, *(allocated(shape, dtype) for shape, dtype in self._scratch))


def _is_normalized(call: Call) -> bool:
    return any(desc is not None for desc in call.inputs[_STATISTICS])


def _folding(call: Call, arrays: Sequence[ArrayDesc | None]) -> Chain:
    """The launches that compute the filters and the bias of the plan, as far as they are not given."""
    if not _is_normalized(call):
        bias = _composition(call, arrays, (call.outputs[1].size,))
        if call.inputs[_BIAS] is None:
            bias.compute("fused_convolution_no_bias", {"folded_bias": "R(0)"})
        return Chain([bias.program()])
    filters = call.inputs[_WEIGHT]
    assert filters is not None
    scale = "(gamma / sqrt(variance + eps))" if call.inputs[4] is not None else "(R(1) / sqrt(variance + eps))"
    weight = _composition(call, arrays, (filters.shape[0], filters.size // filters.shape[0]))
    weight.compute("fused_convolution_weight", {"folded_weight": f"weight * {scale}"})
    shift = "beta" if call.inputs[3] is not None else "R(0)"
    centre = "(bias - mean)" if call.inputs[_BIAS] is not None else "(R(0) - mean)"
    bias = _composition(call, arrays, (filters.shape[0],))
    bias.compute("fused_convolution_bias", {"folded_bias": f"{shift} + {centre} * {scale}"})
    return Chain([weight.program(), bias.program()])


def _kept(call: Call, arrays: Sequence[ArrayDesc | None]) -> Program:
    """The launch that writes the statistics that were used, or zeros."""
    composition = _composition(call, arrays, (call.outputs[1].size,))
    mean, variance = ("mean", "variance") if _is_normalized(call) else ("R(0)", "R(0)")
    composition.compute("fused_convolution_statistics", {"batch_mean": mean, "batch_variance": variance})
    return composition.program()


def _composition(call: Call, arrays: Sequence[ArrayDesc | None], frame: Shape) -> Composition:
    """A composition over filters (one row each) or over channels."""
    names = [*forward_names(call), "folded_weight", "folded_bias"]
    channel = (frame[0], *(1,) * (len(frame) - 1))
    shapes = dict.fromkeys((*names[2:7], "batch_mean", "batch_variance", "folded_bias"), channel)
    return Composition(call, arrays, names, frame, shapes)


FUSED: Final[Mapping[str, Kernel]] = {"FusedConvolution": FusedConvolution()}
