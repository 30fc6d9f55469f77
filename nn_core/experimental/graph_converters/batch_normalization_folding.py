"""Batch normalization with running statistics, folded into the weights of its neighbours.

A normalization is ``scale * x + shift`` for each channel; both are computed in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.errors import ArgumentError
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable

Array: TypeAlias = np.ndarray[Any, Any]

#: Functions with weights that normalizations are folded into.
INNER_PRODUCTS: Final = ("Affine", "Convolution", "Deconvolution")


@dataclass(frozen=True, slots=True)
class LinearForm:
    """A batch normalization as ``scale * x + shift``, both of the shape of its parameters, in float64."""

    scale: Array
    shift: Array


def linear_form(modifier: str, f: Function, inputs: Sequence[Variable]) -> LinearForm:
    """Return the linear form of a BatchNormalization with running statistics.

    Raises:
        ArgumentError: when it uses the statistics of the batch.
    """
    args = f.info.args
    if args["batch_stat"]:
        raise ArgumentError(
            f"{modifier}: batch normalization must use running statistics to be folded, got batch_stat=True\n"
            "  hint: apply BatchNormBatchStatModifier or TestModeModifier before"
        )
    rest = list(inputs[1:])
    beta = None if args["no_bias"] else rest.pop(0)
    gamma = None if args["no_scale"] else rest.pop(0)
    mean, variance = (_float64(v) for v in rest[-2:])
    scale = (1.0 if gamma is None else _float64(gamma)) / np.sqrt(variance + args["eps"])
    shift = (0.0 if beta is None else _float64(beta)) - mean * scale
    return LinearForm(scale, shift)


class _Folding(FunctionModifier):
    def __init__(self, channel_last: bool = False) -> None:
        super().__init__()
        self.channel_last = channel_last
        #: The folded weight and bias by what they were folded from: a layer of several graphs stays one.
        self._folded: dict[tuple[Variable, ...], tuple[Variable, Variable]] = {}

    def finish_up(self) -> None:
        """Forget the folded weights too."""
        super().finish_up()
        self._folded = {}

    def rebuilt(self, f: Function, normalization: Function, x: Variable, weight: Array, bias: Array) -> Variable:
        """Return the inner product `f` of `x` with other weights, which become parameters beside the old ones."""
        sources = (*f.inputs[1:], *normalization.inputs[1:])
        if sources not in self._folded:
            w = self.new_parameter(f.inputs[1], "w-folded", weight.astype(np.float32))
            b = self.new_parameter(f.inputs[1], "b-folded", bias.astype(np.float32))
            self._folded[sources] = w, b
        result: Variable = f.applied_to(x, *self._folded[sources])
        return result


class BatchNormalizationFoldingModifierInner(_Folding):
    """Fold batch normalizations into the affine function, convolution or deconvolution before them.

    Args:
        channel_last: ignored; the functions say it.
    """

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace a normalization that follows an inner product."""
        before = inputs[0].parent if inputs else None
        if f.name != "BatchNormalization" or before is None or before.name not in INNER_PRODUCTS:
            return None
        if before.name != "Affine" and tuple(f.args["axes"]) != (_channel_axis(before),):
            return None
        if before.name == "Affine" and min(f.args["axes"]) < before.args["base_axis"]:
            return None
        form = linear_form(type(self).__name__, f, inputs)
        scale, shift = _per_output(before, form.scale), _per_output(before, form.shift)
        weight = _float64(before.inputs[1]) * _beside_weight(before, scale)
        bias = shift + (scale * _float64(before.inputs[2]) if len(before.inputs) > 2 else 0)
        return self.rebuilt(before, f, before.inputs[0], weight, bias)


class BatchNormalizationFoldingOppositeModifierInner(_Folding):
    """Fold batch normalizations into the affine function or convolution after them.

    Args:
        channel_last: ignored; the functions say it.
    """

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Replace an inner product that follows a normalization.

        Raises:
            ArgumentError: when the shift cannot be moved past a convolution with padding, or a deconvolution, because
                the border does not get it.
        """
        before = inputs[0].parent if inputs else None
        if before is None or not _normalizes_inputs(before, f):
            return None
        form = linear_form(type(self).__name__, before, before.inputs)
        if np.any(form.shift) and (f.name == "Deconvolution" or any(f.args.get("pad", ()))):
            raise ArgumentError(
                "BatchNormalizationFoldingOppositeModifierInner: the function after a batch normalization must be affine or "
                f"a convolution without padding, got {f!r}"
            )
        weight = _float64(inputs[1])
        bias = _float64(inputs[2]) if len(inputs) > 2 else np.zeros(_n_outputs(f))
        scale, shift = (_per_input(f, weight, values) for values in (form.scale, form.shift))
        axes = _input_axes(f, weight)
        shares = (weight * shift).sum(axis=axes)
        return self.rebuilt(f, before, before.inputs[0], weight * scale, bias + shares.reshape(bias.shape))


def _normalizes_inputs(before: Function, f: Function) -> bool:
    """Return whether `before` is a batch normalization of the inputs of the inner product `f`, each by numbers of its own."""
    if f.name not in INNER_PRODUCTS or before.name != "BatchNormalization":
        return False
    if f.name == "Affine":
        return bool(min(before.args["axes"]) >= f.args["base_axis"])
    return tuple(before.args["axes"]) == (_channel_axis(f),)


class AddBiasModifier(FunctionModifier):
    """Give inner products without a bias one of zeros."""

    def __init__(self) -> None:
        super().__init__()
        #: The bias by the weight: a layer of several graphs gets one.
        self._biases: dict[Variable, Variable] = {}

    def finish_up(self) -> None:
        """Forget the biases too."""
        super().finish_up()
        self._biases = {}

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | None:
        """Apply inner products without a bias with one; it becomes the parameter "b" beside the weight."""
        if f.name not in INNER_PRODUCTS or len(inputs) > 2:
            return None
        if inputs[1] not in self._biases:
            self._biases[inputs[1]] = self.new_parameter(inputs[1], "b", np.zeros(_n_outputs(f), np.float32))
        result: Variable = f.applied_to(*inputs, self._biases[inputs[1]])
        return result


class BatchNormalizationFoldingModifier(list[FunctionModifier]):
    """Fold batch normalizations with running statistics into weights.

    Args:
        opposite: fold them into the function after them, not into the one before.
        channel_last: ignored; the functions say it.
    """

    def __init__(self, opposite: bool = False, channel_last: bool = False) -> None:
        inner = BatchNormalizationFoldingOppositeModifierInner if opposite else BatchNormalizationFoldingModifierInner
        super().__init__([AddBiasModifier(), inner(channel_last)])


def _float64(variable: Variable) -> Array:
    return np.asarray(variable.d, np.float64)


def _channel_axis(f: Function) -> int:
    x = f.inputs[0]
    return x.ndim - 1 if f.args.get("channel_last") else int(f.args["base_axis"])


def _n_outputs(f: Function) -> tuple[int, ...]:
    """Return the shape of the bias."""
    output = f.outputs[0]
    if f.name == "Affine":
        return output.shape[f.args["base_axis"] :]
    return (output.shape[_channel_axis(f)],)


def _per_output(f: Function, values: Array) -> Array:
    """Values of a normalization of the output of `f`, in the shape of its bias."""
    if f.name == "Affine":
        return np.broadcast_to(values.reshape(values.shape[f.args["base_axis"] :]), _n_outputs(f))
    return values.reshape(-1)


def _beside_weight(f: Function, values: Array) -> Array:
    """Values of each output, so that they multiply with the weight."""
    weight = f.inputs[1]
    if f.name == "Affine":
        return values
    if f.name == "Convolution":
        return values.reshape(-1, *[1] * (weight.ndim - 1))
    group, n_spatial = f.args["group"], weight.ndim - 2
    rows = np.repeat(values.reshape(group, -1), weight.shape[0] // group, axis=0)  # (C, K / group)
    return _as_weight(f, rows, n_spatial)


def _per_input(f: Function, weight: Array, values: Array) -> Array:
    """Values of a normalization of the input of `f`, so that they multiply with the weight."""
    if f.name == "Affine":
        sample = f.inputs[0].shape[f.args["base_axis"] :]
        spread = np.broadcast_to(values.reshape(values.shape[f.args["base_axis"] :]), sample)
        return spread.reshape(-1, *[1] * (weight.ndim - 1))
    flat = values.reshape(-1)
    if f.name == "Deconvolution":
        return flat.reshape(-1, *[1] * (weight.ndim - 1))
    group, n_spatial = f.args["group"], weight.ndim - 2
    rows = np.repeat(flat.reshape(group, -1), weight.shape[0] // group, axis=0)  # (K, C / group)
    return _as_weight(f, rows, n_spatial)


def _as_weight(f: Function, rows: Array, n_spatial: int) -> Array:
    """Values for the two axes of channels of a weight, with the axes of its kernel."""
    ones = [1] * n_spatial
    return rows.reshape((rows.shape[0], *ones, rows.shape[1]) if f.args.get("channel_last") else (*rows.shape, *ones))


def _input_axes(f: Function, weight: Array) -> tuple[int, ...]:
    """Return the axes of the weight over which the function sums. A deconvolution is only asked without a shift."""
    return (0,) if f.name == "Affine" else tuple(range(1, weight.ndim))
