"""Normalizations that standardize each sample, or a part of it, by its own mean and variance."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, is_deterministic
from nn_ext_cpu import _native
from nn_ext_cpu.describe import NUMBERS, backward_arrays, forward_arrays, refuse_dtypes

#: ``grouping(x_shape, args) -> (kept axes, axes of which each place has parameters of its own)``
Grouping: TypeAlias = Callable[[tuple[int, ...], Mapping[str, Any]], tuple[Sequence[int], Sequence[int]]]


def _divided(shape: Sequence[int], kept: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the axes with more than one place that statistics keep, and those that they are taken over.

    In deterministic mode the first axis counts however long it is, so that one sample runs as many do.
    """
    long = [axis for axis, length in enumerate(shape) if length > 1 or (axis == 0 and is_deterministic())]
    return [axis for axis in long if axis in kept], [axis for axis in long if axis not in kept]


def _ends_with(axes: Sequence[int], own: Sequence[int]) -> bool:
    """Return whether the axes that have parameters follow all others."""
    return sorted(axes, key=lambda axis: axis in own) == axes


class Standardization:
    """A matrix whose rows are standardized; parameters belong to single elements of a row or to runs of them.

    Args:
        grouping: The axes that statistics keep, and the axes that have parameters.
        grouped: The channels are split into `num_groups` first; the groups are kept.
        with_parameters: The function has the inputs beta and gamma.
        channel_groups: How many groups of the channels have statistics of their own, where it is groups of channels that do.
    """

    def __init__(
        self,
        grouping: Grouping,
        *,
        grouped: bool = False,
        with_parameters: bool = True,
        channel_groups: Callable[[tuple[int, ...], Mapping[str, Any]], int] | None = None,
    ) -> None:
        self._channel_groups = channel_groups
        self._grouping = grouping
        self._grouped = grouped
        self._with_parameters = with_parameters

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse other dtypes than `NUMBERS`, nothing, and statistics over other axes than the last ones."""
        (x,) = call.inputs[:1]
        assert x is not None
        if x.size == 0:
            return Refusal("takes arrays with at least one element")
        shape, kept, own = self._axes(call)
        kept_long, reduced = _divided(shape, kept)
        if kept_long and reduced and kept_long[-1] > reduced[0]:
            return Refusal(f"takes statistics over the last axes, got kept axes {tuple(kept)} of {len(shape)}")
        if not all(_ends_with(axes, own) for axes in (kept_long, reduced[::-1])):
            return Refusal(f"takes parameters of the axes between the kept and the reduced ones, got {tuple(own)}")
        return refuse_dtypes(call, NUMBERS)

    def layout(self, call: Call) -> str:
        """As x is stored where the channels of images are grouped, and have parameters of their own that samples share."""
        x, *parameters = call.inputs
        assert x is not None
        is_ordinary = call.args.get("channel_axis") == 1 and call.args.get("batch_axis") == (0,) and 3 <= len(x.shape) <= 5
        is_shared = all(desc is None or desc.size == x.shape[1] for desc in parameters)
        return "first" if self._channel_groups is not None and is_ordinary and is_shared else "contiguous"

    def forward(self, call: Call) -> Runner:
        """Prepare statistics and standardization."""
        places = range(6) if self._with_parameters else [0, -1, -1, 1, 2, 3]
        return self._prepared(call, "standardize", forward_arrays(call), places)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the gradients."""
        places = range(10) if self._with_parameters else [0, -1, -1, 1, 2, 3, 4, 5, -1, -1]
        return self._prepared(call, "standardize_backward", backward_arrays(call, wanted), places)

    def _axes(self, call: Call) -> tuple[tuple[int, ...], Sequence[int], Sequence[int]]:
        """Return the shape of x, perhaps with the channels split, the kept axes, and the axes that have parameters."""
        (x,) = call.inputs[:1]
        assert x is not None
        kept, own = self._grouping(x.shape, call.args)
        if not self._grouped:
            return x.shape, kept, own
        c, groups = int(call.args["channel_axis"]), int(call.args["num_groups"])  # type: ignore[arg-type]  # ints
        shape = (*x.shape[:c], groups, x.shape[c] // groups, *x.shape[c + 1 :])
        return shape, [c, *(axis + (axis > c) for axis in kept)], [c, c + 1]

    def _prepared(self, call: Call, operation: str, arrays: Sequence[ArrayDesc | None], places: Sequence[int]) -> Runner:
        shape, kept, own = self._axes(call)
        eps = float(call.args["eps"])  # type: ignore[arg-type]  # a number by the specification
        if self._channel_groups is not None and any(desc is not None and desc.strides is not None for desc in arrays):
            groups = self._channel_groups(call.inputs[0].shape, call.args)  # type: ignore[union-attr]  # x is given
            name = operation.replace("standardize", "standardize_channels")
            by_channels: Runner = _native.prepare(name, arrays, places=list(places), groups=groups, eps=eps)
            return by_channels
        runner: Runner = _native.prepare(
            operation,
            arrays,
            places=list(places),
            rows=math.prod(shape[axis] for axis in kept),
            run=math.prod(length for axis, length in enumerate(shape) if axis not in kept and axis not in own),
            eps=eps,
        )
        return runner


def _layer(shape: tuple[int, ...], args: Mapping[str, Any]) -> tuple[Sequence[int], Sequence[int]]:
    return args["batch_axis"], [axis for axis in range(len(shape)) if axis not in args["batch_axis"]]


def _instance(shape: tuple[int, ...], args: Mapping[str, Any]) -> tuple[Sequence[int], Sequence[int]]:
    kept = dict.fromkeys((*args["batch_axis"], args["channel_axis"]))  # one axis may be both
    return tuple(kept), [args["channel_axis"]]


STANDARDIZATION: Final[dict[str, Kernel]] = {
    "LayerNormalization": Standardization(_layer),
    "InstanceNormalization": Standardization(_instance, channel_groups=lambda shape, args: shape[1]),
    "GroupNormalization": Standardization(
        lambda shape, args: (args["batch_axis"], []),
        grouped=True,
        channel_groups=lambda shape, args: int(args["num_groups"]),
    ),
    "TensorNormalization": Standardization(lambda shape, args: (args["axes"], args["axes"])),
    "WeightStandardization": Standardization(lambda shape, args: ([args["channel_axis"]], []), with_parameters=False),
}
