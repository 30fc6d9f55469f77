"""The mean of all samples so far, taken off."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import refuse_dtypes


class MeanSubtraction:
    """y = x - rmean, after the batch was taken into rmean; batches weigh alike."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and arrays that are very large or empty."""
        if call.outputs[0].size == 0:
            return Refusal("takes arrays of at least one element")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Return the mean of the batch, its weight, the mean of all, and y; or y alone, where the mean stays."""
        composition = self._composition(call, forward_arrays(call), forward_names(call))
        if not call.args["update_running_mean"]:
            composition.compute("mean_subtraction_rate", {"rate": "R(0)"})
            composition.compute("mean_subtraction", {"y": "x - rmean"})
            return composition.program()
        for name, shape in (("batch", _of_samples(call)), ("mean", _of_samples(call)), ("weight", _scalar(call))):
            composition.scratch(name, shape)
        composition.reduce("mean_subtraction_batch", "batch", "x", finish="a / count")
        composition.compute("mean_subtraction_weight", {"weight": "1 / (t + 1)"})
        composition.compute("mean_subtraction_rate", {"rate": "weight", "t": "t + 1"})
        composition.compute("mean_subtraction_mean", {"mean": "rmean + (batch - rmean) * weight"})
        composition.compute("mean_subtraction_kept", {"rmean": "mean"})
        composition.compute("mean_subtraction", {"y": "x - mean"})
        return composition.program()

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """dx = dy - rate * mean of dy, drmean = (rate - 1) * sum of dy; None for that of the number of batches."""
        if wanted[2]:
            return None
        composition = self._composition(call, backward_arrays(call, wanted), backward_names(call))
        composition.scratch("total", _of_samples(call))
        composition.reduce("mean_subtraction_total", "total", "dy")
        if wanted[0]:
            composition.compute("mean_subtraction_backward", {"dx": "dy - total * (rate / count)"})
        if wanted[1]:
            composition.compute("mean_subtraction_backward_mean", {"drmean": "total * (rate - 1)"})
        return composition.program()

    @staticmethod
    def _composition(call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> Composition:
        shapes = dict.fromkeys(("rmean", "drmean"), _of_samples(call)) | dict.fromkeys(("t", "rate"), _scalar(call))
        whole = call.outputs[0].shape
        count = math.prod(whole) / math.prod(_of_samples(call))
        return Composition(call, arrays, names, whole, shapes, {"count": count})


def _of_samples(call: Call) -> Shape:
    """Return the shape of a sample, broadcast over the batch."""
    base_axis, shape = call.args["base_axis"], call.outputs[0].shape
    assert isinstance(base_axis, int)
    return (*(1,) * base_axis, *shape[base_axis:])


def _scalar(call: Call) -> Shape:
    return (1,) * len(call.outputs[0].shape)


MEANS: Final[Mapping[str, Kernel]] = {"MeanSubtraction": MeanSubtraction()}
