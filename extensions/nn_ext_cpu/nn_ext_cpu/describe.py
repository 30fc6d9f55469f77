"""Descriptions of the arrays of a call, in the order in which runners receive them."""

import math
from collections.abc import Sequence

from nn_core.ext import ArrayDesc, Call, Refusal, Shape

#: The dtype that every kernel of this package computes in.
FLOAT = "float32"


def forward_arrays(call: Call) -> list[ArrayDesc | None]:
    """Inputs and outputs (aux outputs included)."""
    return [*call.inputs, *call.outputs]


def backward_arrays(call: Call, wanted: Sequence[bool]) -> list[ArrayDesc | None]:
    """Inputs and outputs that the gradient needs, gradients of the visible outputs, gradients of the wanted inputs."""
    needs = call.spec.backward.needs
    names = input_names(call)
    inputs = [desc if name in needs else None for name, desc in zip(names, call.inputs, strict=True)]
    outputs = [
        desc if entry.name in needs else None for entry, desc in zip(call.spec.outputs, call.outputs, strict=True)
    ]
    n_visible = len(call.spec.visible_outputs)
    gradients = [desc if want else None for desc, want in zip(call.inputs, wanted, strict=True)]
    return [*inputs, *outputs, *call.outputs[:n_visible], *gradients]


def input_names(call: Call) -> list[str]:
    """The name of each input; a variadic one repeats its name."""
    names = [entry.name for entry in call.spec.inputs]
    return names + names[-1:] * (len(call.inputs) - len(names))


def contiguous(shape: Shape, dtype: str = FLOAT) -> ArrayDesc:
    """The description of a C-contiguous array."""
    return ArrayDesc(shape, dtype)


def reshaped(desc: ArrayDesc | None, shape: Shape) -> ArrayDesc | None:
    """The same memory under another shape; `desc` is C-contiguous."""
    return None if desc is None else ArrayDesc(shape, desc.dtype)


def rows_before(shape: Shape, axis: int) -> int:
    """Product of the lengths of the axes before `axis`."""
    return math.prod(shape[:axis])


def refuse_dtypes(call: Call) -> Refusal | None:
    """Refuse a call unless all of its floating arrays are float32."""
    for entry, desc in zip(input_names(call), call.inputs, strict=True):
        if desc is not None and desc.dtype != FLOAT:
            return Refusal(f"computes in float32, got {entry} of {desc.dtype}")
    for output, desc in zip(call.spec.outputs, call.outputs, strict=False):
        if desc.dtype != FLOAT:
            return Refusal(f"computes in float32, got {output.name} of {desc.dtype}")
    return None


def strides_of(desc: ArrayDesc) -> tuple[int, ...]:
    """Strides in bytes, also of a C-contiguous array."""
    if desc.strides is not None:
        return desc.strides
    strides = [4 if desc.dtype == FLOAT else 8] * len(desc.shape)
    for axis in range(len(desc.shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(desc.shape[axis + 1], 1)
    return tuple(strides)
