"""Descriptions of the arrays of a call, in the order in which runners receive them."""

from collections.abc import Sequence
from typing import Final, TypeVar

from nn_core.ext import ArrayDesc, Call, Refusal, Shape

T = TypeVar("T")

#: The dtype that every kernel of this package computes in.
FLOAT: Final = "float32"


def forward_arrays(call: Call) -> list[ArrayDesc | None]:
    """Inputs and outputs (aux outputs included)."""
    return [*call.inputs, *call.outputs]


def backward_arrays(call: Call, wanted: Sequence[bool]) -> list[ArrayDesc | None]:
    """Inputs and outputs that the gradient needs, gradients of the visible outputs, gradients of the wanted inputs."""
    needs = call.spec.backward.needs
    inputs = [desc if name in needs else None for name, desc in zip(input_names(call), call.inputs, strict=True)]
    outputs = [desc if name in needs else None for name, desc in zip(output_names(call), call.outputs, strict=True)]
    gradients = [desc if want else None for desc, want in zip(call.inputs, wanted, strict=True)]
    return [*inputs, *outputs, *visible_outputs(call), *gradients]


def visible_outputs(call: Call) -> tuple[ArrayDesc, ...]:
    """The outputs that the caller gets."""
    return call.outputs[: len(call.outputs) - sum(entry.aux for entry in call.spec.outputs)]


def input_names(call: Call) -> list[str]:
    """The name of each input; a variadic one repeats its name."""
    return _repeated([entry.name for entry in call.spec.inputs], len(call.inputs))


def output_names(call: Call) -> list[str]:
    """The name of each output; a variadic one repeats its name."""
    return _repeated([entry.name for entry in call.spec.outputs], len(call.outputs))


def _repeated(items: list[T], count: int) -> list[T]:
    """`items`, the last one repeated or some left out, so that there are `count`."""
    return (items + items[-1:] * count)[:count]


def reshaped(desc: ArrayDesc | None, shape: Shape) -> ArrayDesc | None:
    """The same memory under another shape; `desc` is C-contiguous."""
    return None if desc is None else ArrayDesc(shape, desc.dtype)


#: What arrays of each kind of the specification must hold; "same" is left to the kernel.
_EXPECTED: Final = {"float": FLOAT, "index": "int64"}


def refuse_dtypes(call: Call) -> Refusal | None:
    """Refuse a call unless its floating arrays are float32 and its indices int64."""
    kinds = _repeated([entry.dtype for entry in call.spec.inputs], len(call.inputs))
    kinds += _repeated([entry.dtype for entry in call.spec.outputs], len(call.outputs))
    names = input_names(call) + output_names(call)
    for name, kind, desc in zip(names, kinds, forward_arrays(call), strict=True):
        if desc is not None and desc.dtype != _EXPECTED.get(kind, desc.dtype):
            return Refusal(f"takes {name} of {_EXPECTED[kind]}, got {desc.dtype}")
    return None


def strides_of(desc: ArrayDesc) -> tuple[int, ...]:
    """Strides in bytes, also of a C-contiguous array."""
    if desc.strides is not None:
        return desc.strides
    strides = [4 if desc.dtype == FLOAT else 8] * len(desc.shape)
    for axis in range(len(desc.shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(desc.shape[axis + 1], 1)
    return tuple(strides)
