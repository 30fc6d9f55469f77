"""Images with the channels as the last axis."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier
from nn_core.function import Function
from nn_core.variable import Variable

#: Functions with the setting `channel_last`; the first two have weights that follow it.
_WITH_WEIGHTS: Final = ("Convolution", "Deconvolution")
_POOLINGS: Final = ("MaxPooling", "AveragePooling", "SumPooling", "Unpooling", "Interpolate")
_NORMALIZATIONS: Final = ("BatchNormalization", "FusedBatchNormalization")


class LayoutModifier(FunctionModifier):
    """Move the axis of channels: what both directions share.

    Functions on images are applied in the new layout, functions of single elements in that of their inputs, and all others
    in the old one, with transpositions where they meet. New outputs have the layout of the old ones.

    Args:
        inputs: inputs of the graph that get the new layout.
        new_inputs: what takes their place; None: new variables with their values.
        to_last: the direction.
    """

    def __init__(self, inputs: Sequence[Variable], new_inputs: Sequence[Variable] | None, to_last: bool) -> None:
        super().__init__()
        self._to_last = to_last
        self._suffix = "cl" if to_last else "cf"
        self.inputs = list(inputs)
        self.new_inputs = [self._moved_values(v) for v in inputs] if new_inputs is None else list(new_inputs)
        if len(self.new_inputs) != len(self.inputs):
            raise ArgumentError(
                f"{type(self).__name__}: as many new inputs as inputs must be given, got {len(self.new_inputs)} for "
                f"{len(self.inputs)}"
            )
        for old, new in zip(self.inputs, self.new_inputs, strict=True):
            expected = tuple(old.shape[axis] for axis in self._order(old.ndim))
            if new.shape != expected:
                raise ArgumentError(f"{type(self).__name__}: the new input must have the shape {expected}, got {new.shape}")
        self._moved: dict[Variable, Variable] = {}
        self._restored: dict[Variable, Variable] = {}
        self._in_new_layout: set[Variable] = set()
        self._parameters: dict[Variable, Variable] = {}
        self._forget()

    def replaced_inputs(self) -> Mapping[Variable, Variable]:
        """Return the inputs, and those in the new layout."""
        return dict(zip(self.inputs, self.new_inputs, strict=True))

    def modify(self, f: Function, inputs: list[Variable]) -> Variable | Sequence[Variable] | None:
        """Apply a function in the layout that suits it."""
        if self._is_of_images(f):
            return self._image_function(f, inputs)
        in_new = [v in self._in_new_layout for v in inputs]
        if not any(in_new):
            return None
        if f.name in _NORMALIZATIONS and in_new[0]:
            return self._normalization(f, inputs)
        if f.name == "Dropout" or (f.info.tags.get("pointwise") and all(v.ndim == inputs[0].ndim for v in inputs)):
            return self._marked(f.applied_to(*[self._in_new(v) for v in inputs]))
        results: Variable | Sequence[Variable] = f.applied_to(*[self._in_old(v) for v in inputs])
        return results

    def finish_output(self, original: Variable, copy: Variable) -> Variable:
        """Return the output in the layout of the original."""
        return self._in_old(copy)

    def finish_up(self) -> None:
        """Clear what was noted about one graph."""
        super().finish_up()
        self._forget()

    def _forget(self) -> None:
        self._moved, self._restored, self._parameters = {}, {}, {}
        self._in_new_layout = set(self.new_inputs)

    def _is_of_images(self, f: Function) -> bool:
        if f.name not in (*_WITH_WEIGHTS, *_POOLINGS) or f.args["channel_last"] == self._to_last:
            return False
        x = f.inputs[0]
        if f.name in _WITH_WEIGHTS:
            return bool(f.args["base_axis"] == 1)
        n_spatial = len(f.args["output_size" if f.name == "Interpolate" else "kernel"])
        return x.ndim == n_spatial + 2

    def _image_function(self, f: Function, inputs: list[Variable]) -> Variable:
        x, *rest = inputs
        if rest:
            rest[0] = self._parameter(f.inputs[1], rest[0], self._order(rest[0].ndim))
        result = f.applied_to(self._in_new(x), *rest, channel_last=self._to_last)
        return self._marked(result)

    def _normalization(self, f: Function, inputs: list[Variable]) -> Variable:
        ndim = inputs[0].ndim
        order = self._order(ndim)
        moved = [self._in_new(inputs[0])]
        for old, new in zip(f.inputs[1:], inputs[1:], strict=True):
            is_image = new.shape == inputs[0].shape or new in self._in_new_layout or new.parent is not None
            moved.append(self._in_new(new) if is_image else self._parameter(old, new, order))
        axes = [order.index(axis) for axis in f.args["axes"]]
        return self._marked(f.applied_to(*moved, axes=axes))

    def _parameter(self, old: Variable, new: Variable, order: Sequence[int]) -> Variable:
        """Return a leaf with its axes in another order, once for each; what is computed is transposed in the graph."""
        if new.parent is not None:
            result: Variable = F.transpose(new, tuple(order))
            return result
        if old not in self._parameters:
            name = self._name_of(old).rpartition("/")[2] or old.name or "w"
            values = np.ascontiguousarray(np.transpose(new.d, order))
            self._parameters[old] = self.new_parameter(old, f"{name}_{self._suffix}", values, new.need_grad)
        return self._parameters[old]

    def _order(self, ndim: int) -> tuple[int, ...]:
        """Return the axes of the old layout in the order of the new one."""
        if ndim < 3:
            return tuple(range(ndim))
        spatial = range(2, ndim) if self._to_last else range(1, ndim - 1)
        return (0, *spatial, 1) if self._to_last else (0, ndim - 1, *spatial)

    def _moved_values(self, variable: Variable) -> Variable:
        values = np.ascontiguousarray(np.transpose(variable.d, self._order(variable.ndim)))
        return Variable.from_numpy_array(values, need_grad=variable.need_grad)

    def _marked(self, result: Any) -> Variable:
        variable: Variable = result
        self._in_new_layout.add(variable)
        return variable

    def _in_new(self, variable: Variable) -> Variable:
        if variable in self._in_new_layout:
            return variable
        if variable not in self._moved:
            self._moved[variable] = self._marked(F.transpose(variable, self._order(variable.ndim)))
        return self._moved[variable]

    def _in_old(self, variable: Variable) -> Variable:
        if variable not in self._in_new_layout:
            return variable
        if variable not in self._restored:
            self._restored[variable] = F.transpose(variable, tuple(np.argsort(self._order(variable.ndim)).tolist()))
        return self._restored[variable]


class ChannelLastModifier(LayoutModifier):
    """Rewrite a graph of images with channels first for channels last.

    Weights become the parameters ``<name>_cl`` beside the old ones.

    Args:
        inputs: inputs of the graph that get the new layout.
        inputs_cl: what takes their place; None: new variables with their values, found in ``new_inputs``.
    """

    def __init__(self, inputs: Sequence[Variable], inputs_cl: Sequence[Variable] | None = None) -> None:
        super().__init__(inputs, inputs_cl, True)
