"""Zeros in the place of small output channels."""

from collections.abc import Sequence

import numpy as np

from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable


class PruningModifier(FunctionModifier):
    """Set the weights of output channels to zero when the sum of their squares is below a threshold.

    The new weights become the parameters "w-pruned" and "b-pruned" beside the old ones, which stay as they are.

    Args:
        pruning_threshold: for the sum of squares of the weights of one output channel, without the bias.
        functions_to_prune: names of operators.
        channel_last: ignored; the functions say it.
    """

    def __init__(
        self,
        pruning_threshold: float,
        functions_to_prune: Sequence[str] = (
            "Convolution",
            "Deconvolution",
            "DepthwiseConvolution",
            "DepthwiseDeconvolution",
            "Affine",
        ),
        channel_last: bool = False,
    ) -> None:
        super().__init__()
        self.pruning_threshold = pruning_threshold
        self.functions_to_prune = tuple(functions_to_prune)
        self.channel_last = channel_last

    def calculate_axis(self, f: Function) -> tuple[int, ...]:
        """Return the axes of the weight over which squares are summed; the others tell output channels apart."""
        ndim = f.inputs[1].ndim
        if f.name == "Affine":
            return (0,)
        if f.name != "Deconvolution":
            return tuple(range(1, ndim))
        channels = ndim - 1 if f.args.get("channel_last") else 1
        return tuple(axis for axis in range(ndim) if axis != channels)

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Apply functions to pruned weights."""
        if f.name not in self.functions_to_prune:
            return None
        weight = np.array(inputs[1].d, np.float32)
        kept, per_bias = self._kept(f, weight)
        values = [weight * kept]
        if len(inputs) > 2:
            values.append(inputs[2].d * per_bias.reshape(inputs[2].shape))
        pruned = [
            self.new_parameter(f.inputs[1], name, array, like.need_grad)
            for name, array, like in zip(("w-pruned", "b-pruned"), values, inputs[1:], strict=False)
        ]
        result: Variable = f.applied_to(inputs[0], *pruned)
        return result

    def _kept(
        self, f: Function, weight: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]"
    ) -> tuple["np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]:
        """Return masks of the weights and of the biases to keep, as factors for them."""
        axes = self.calculate_axis(f)
        group = f.args.get("group", 1) if f.name == "Deconvolution" else 1
        if f.name == "DepthwiseDeconvolution":
            return self._kept_in_groups(weight, weight.shape[0] // f.args["divisor"])
        parts = weight.reshape(group, -1, *weight.shape[1:])
        squares = np.square(parts, dtype=np.float64).sum(axis=tuple(axis + 1 for axis in axes), keepdims=True)
        kept = squares >= self.pruning_threshold
        return np.broadcast_to(kept, parts.shape).reshape(weight.shape), kept

    def _kept_in_groups(
        self, weight: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]", count: int
    ) -> tuple["np.ndarray[tuple[int, ...], np.dtype[np.bool_]]", "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]:
        """Return the same where each output channel has consecutive rows of the weight."""
        parts = weight.reshape(count, -1)
        kept = np.square(parts, dtype=np.float64).sum(axis=1, keepdims=True) >= self.pruning_threshold
        return np.broadcast_to(kept, parts.shape).reshape(weight.shape), kept
