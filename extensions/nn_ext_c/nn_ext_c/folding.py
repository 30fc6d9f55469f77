"""Batch normalizations with running statistics, folded into the inner products before them."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.experimental.graph_converters import BatchNormalizationFoldingModifierInner
from nn_core.experimental.graph_converters.batch_normalization_folding import INNER_PRODUCTS, linear_form
from nn_core.function import Function
from nn_core.graph_rewriting import functions_of

_FOLDED_INTO: Final = (*INNER_PRODUCTS, "DepthwiseConvolution")


class _Folding(BatchNormalizationFoldingModifierInner):
    """The folding, where the parameters are constants and nothing else reads what is normalized."""

    def __init__(self, inputs: Collection[nn.Variable], names: Mapping[nn.Variable, str], exact: Collection[Function]) -> None:
        super().__init__()
        self._exact = exact
        self.given = set(inputs)
        self.made = dict(names)

    def modify(self, f: Function, inputs: list[nn.Variable]) -> nn.Variable | None:
        """Replace a normalization that follows an inner product."""
        if f.name != "BatchNormalization" or f.args["batch_stat"] or len(f.results) > 1 or f in self._exact:
            return None
        before = inputs[0].parent
        if before is None or before.name not in _FOLDED_INTO or not self.is_read_once(f.inputs[0]):
            return None
        parameters = [*inputs[1:], *before.inputs[1:]]
        if any(variable.parent is not None or variable in self.given for variable in parameters):
            return None
        return self._depthwise(f, before, inputs) if before.name == "DepthwiseConvolution" else super().modify(f, inputs)

    def _depthwise(self, f: Function, before: Function, inputs: list[nn.Variable]) -> nn.Variable | None:
        if tuple(f.args["axes"]) != (before.args["base_axis"],):
            return None
        form = linear_form("export", f, inputs)
        scale, shift = (np.asarray(part).reshape(-1) for part in (form.scale, form.shift))
        weight = np.asarray(before.inputs[1].d, np.float64)
        bias = shift + (scale * np.asarray(before.inputs[2].d, np.float64) if len(before.inputs) > 2 else 0)
        return self.rebuilt(before, f, before.inputs[0], weight * scale.reshape(-1, *[1] * (weight.ndim - 1)), bias)

    def new_parameter(self, like: nn.Variable, suffix: str, values: Any, need_grad: bool = True) -> nn.Variable:
        """Return a constant; no scope gets it."""
        parameter = nn.Variable.from_numpy_array(values)
        stem = self.made.get(like, like.name or "weight")
        self.made[parameter] = stem if suffix.startswith("w") else f"{stem.rpartition('/')[0]}/b"
        return parameter


def _before_jumps(outputs: Collection[nn.Variable]) -> set[Function]:
    """Functions whose results go to a discontinuous one, such as a sign, as they are or element by element.

    A folded normalization is near beta where its input is the mean, and not exactly beta.
    """
    found: set[Function] = set()
    sees_rounding: set[nn.Variable] = set()
    for f in reversed(functions_of(outputs)):
        if not sees_rounding.isdisjoint(f.results):
            found.add(f)
        if "discontinuous" in f.tags or (f in found and not f.tags.keys().isdisjoint(("pointwise", "selecting"))):
            sees_rounding.update(f.inputs)
    return found


def folded(
    outputs: Mapping[str, nn.Variable], inputs: Collection[nn.Variable], names: Mapping[nn.Variable, str]
) -> tuple[dict[str, nn.Variable], dict[nn.Variable, str]]:
    """Return a copy of the graph with what can be folded, and the names of constants in it."""
    folding = _Folding(inputs, names, _before_jumps(list(outputs.values())))
    copies = folding.convert(list(outputs.values()))
    return dict(zip(outputs, copies, strict=True)), folding.made
