"""Convolutions with what follows them in a trained network: a normalization by running statistics, a sum, a ReLU.

The normalization is folded into filters and bias, which are small: w' = w s and b' = beta + (b - mean) s with
s = gamma / sqrt(variance + eps). Then all of it is one plan of cuDNN.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition
from nn_ext_cuda.codegen.describe import forward_arrays, forward_names
from nn_ext_cuda.launch.program import Chain, Program
from nn_ext_cuda.memory.derived_weights import WithDerived
from nn_ext_cudnn.errors import NotSupportedError
from nn_ext_cudnn.graph.convolution import ConvolutionKernel, Epilogue, channels_last, filters_copied

#: Places of the arrays of a call.
_X: Final = 0
_WEIGHT: Final = 1
_BIAS: Final = 2
_Z: Final = 7
_Y: Final = 8
_STATISTICS: Final = slice(3, 7)
#: The arrays from which the filters and the bias of the plan are made.
_FOLDED: Final = range(_WEIGHT, _Z)
#: The arrays of one number for each channel.
_PER_CHANNEL: Final = frozenset({"bias", "beta", "gamma", "mean", "variance", "batch_mean", "batch_variance", "folded_bias"})


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
        """Return the plan on filters that are folded when weights or statistics have changed, and a launch for the
        statistics.
        """
        x, weight, y = call.inputs[_X], call.inputs[_WEIGHT], call.outputs[0]
        assert x is not None and weight is not None
        if self._laid_out(call, weight, (x, y)) is None:
            return self._folded(call, laid_out=False)
        try:
            return self._folded(call, laid_out=True)
        except NotSupportedError:  # there may be engines for the other order
            return self._folded(call, laid_out=False)

    def _folded(self, call: Call, *, laid_out: bool) -> Runner:
        folding = _Folding(call, laid_out=laid_out)
        arrays = [*forward_arrays(call), *folding.targets]
        epilogue = Epilogue(folding.bias, None if call.inputs[_Z] is None else _Z, call.args["nonlinearity"] == "relu")
        plan = self._runner(call, "narrow", arrays, _X, folding.weight, _Y, epilogue)
        runner = Chain([plan, _kept(call)])
        if not folding.targets:
            return runner
        targets = [(desc.shape, desc.dtype) for desc in folding.targets]
        return WithDerived(runner, len(forward_arrays(call)), folding.program(), folding.sources, targets)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves; networks in training are normalized by their batches."""
        return None


class _Folding:
    """The launches that make the filters and the bias of the plan, as far as they are not given.

    Args:
        call: The call.
        laid_out: The plan reads filters whose channels are innermost.

    Attributes:
        sources: Places of the arrays that are read.
        targets: The arrays that are made; their places follow those of the call.
        weight: Place of the filters of the plan.
        bias: Place of the bias of the plan.
    """

    def __init__(self, call: Call, *, laid_out: bool) -> None:
        self._call = call
        self.sources = [place for place in _FOLDED if call.inputs[place] is not None]
        self.targets: list[ArrayDesc] = []
        self._names: list[str] = []
        weight = call.inputs[_WEIGHT]
        assert weight is not None
        folds = _is_normalized(call)
        self.weight = self._target("folded_weight", weight) if folds else _WEIGHT
        makes_bias = folds or call.inputs[_BIAS] is None
        self.bias = self._target("folded_bias", ArrayDesc((call.outputs[1].size,), call.dtype)) if makes_bias else _BIAS
        self._in_order = self.weight
        if laid_out:
            self.weight = self._target("laid_out_weight", channels_last(weight))

    def _target(self, name: str, desc: ArrayDesc) -> int:
        self._names.append(name)
        self.targets.append(desc)
        return len(forward_arrays(self._call)) + len(self.targets) - 1

    def program(self) -> Chain:
        """Return the launches, over the sources and the targets."""
        call, programs = self._call, list[Any]()
        scale = "(gamma / sqrt(variance + eps))" if call.inputs[4] is not None else "(R(1) / sqrt(variance + eps))"
        channels = call.outputs[1].size
        if "folded_weight" in self._names:
            weight = self._composition((channels, self.targets[0].size // channels))
            weight.compute("fused_convolution_weight", {"folded_weight": f"weight * {scale}"})
            shift = "beta" if call.inputs[3] is not None else "R(0)"
            centre = "(bias - mean)" if call.inputs[_BIAS] is not None else "(R(0) - mean)"
            bias = self._composition((channels,))
            bias.compute("fused_convolution_bias", {"folded_bias": f"{shift} + {centre} * {scale}"})
            programs += [weight.program(), bias.program()]
        elif "folded_bias" in self._names:
            bias = self._composition((channels,))
            bias.compute("fused_convolution_no_bias", {"folded_bias": "R(0)"})
            programs.append(bias.program())
        if self._in_order != self.weight:
            places = [*self.sources, *range(len(forward_arrays(call)), self.weight + 1)]
            programs.append(filters_copied(self._arrays(), places.index(self._in_order), places.index(self.weight)))
        return Chain(programs)

    def _arrays(self) -> list[ArrayDesc | None]:
        return [*[self._call.inputs[place] for place in self.sources], *self.targets]

    def _composition(self, frame: Shape) -> Composition:
        """Return a composition over filters (one row each) or over channels."""
        names = forward_names(self._call)
        return _composition(self._call, self._arrays(), [*[names[place] for place in self.sources], *self._names], frame)


def _is_normalized(call: Call) -> bool:
    return any(desc is not None for desc in call.inputs[_STATISTICS])


def _kept(call: Call) -> Program:
    """Return the launch that writes the statistics that were used, or zeros."""
    composition = _composition(call, forward_arrays(call), forward_names(call), (call.outputs[1].size,))
    mean, variance = ("mean", "variance") if _is_normalized(call) else ("R(0)", "R(0)")
    composition.compute("fused_convolution_statistics", {"batch_mean": mean, "batch_variance": variance})
    return composition.program()


def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str], frame: Shape) -> Composition:
    """Return a composition over filters (one row each) or over channels."""
    channel = (frame[0], *(1,) * (len(frame) - 1))
    shapes = dict.fromkeys(_PER_CHANNEL.intersection(names), channel)
    return Composition(call, arrays, names, frame, shapes)


FUSED: Final[Mapping[str, Kernel]] = {"FusedConvolution": FusedConvolution()}
