"""Descriptions of the arrays of a call, in the order in which runners receive them."""

import functools
import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Final, TypeVar

import numpy as np

from nn_core.ext import ArrayDesc, Call, Refusal, Shape

T = TypeVar("T")

#: The dtype that kernels of this package compute in.
FLOAT: Final = "float32"
#: The dtypes that arrays of a call may hold; what kernels read of the second is widened, what they write rounded once.
FLOATING: Final = (FLOAT, "bfloat16")
#: The dtypes of kernels that compute in float64, too.
NUMBERS: Final = (*FLOATING, "float64")
#: The dtypes of arrays of kind parameter: parameters and statistics stay float32.
WIDE: Final = {"bfloat16": FLOAT, "float16": FLOAT}
#: Bytes of the items of dtypes that are not eight.
#: Over so many axes the native operations loop.
_MAX_RANK: Final = 16
_ITEM_BYTES: Final = {
    "float32": 4,
    "int32": 4,
    "bfloat16": 2,
    "float16": 2,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}


def forward_arrays(call: Call) -> list[ArrayDesc | None]:
    """Return inputs and outputs (aux outputs included)."""
    return [*call.inputs, *call.outputs]


def backward_arrays(call: Call, wanted: Sequence[bool]) -> list[ArrayDesc | None]:
    """Return inputs and outputs that the gradient needs, gradients of the visible outputs, gradients of the wanted inputs."""
    needs = call.spec.needed(call.args)
    inputs = [desc if name in needs else None for name, desc in zip(input_names(call), call.inputs, strict=True)]
    outputs = [desc if name in needs else None for name, desc in zip(output_names(call), call.outputs, strict=True)]
    gradients = [desc if want else None for desc, want in zip(call.inputs, wanted, strict=True)]
    return [*inputs, *outputs, *visible_outputs(call), *gradients]


def visible_outputs(call: Call) -> tuple[ArrayDesc, ...]:
    """Return the outputs that the caller gets."""
    return call.outputs[: len(call.outputs) - sum(entry.aux for entry in call.spec.outputs)]


def input_names(call: Call) -> list[str]:
    """Return the name of each input; a variadic one repeats its name."""
    return _repeated([entry.name for entry in call.spec.inputs], len(call.inputs))


def output_names(call: Call) -> list[str]:
    """Return the name of each output; a variadic one repeats its name."""
    return _repeated([entry.name for entry in call.spec.outputs], len(call.outputs))


def _repeated(items: list[T], count: int) -> list[T]:
    """`items`, the last one repeated or some left out, so that there are `count`."""
    return (items + items[-1:] * count)[:count]


def blocks_around(shape: Shape, axes: Sequence[int]) -> tuple[int, int, int] | None:
    """Numbers of elements before, along and after the axes; None where others are between them."""
    long = [axis for axis, length in enumerate(shape) if length != 1]
    along = [axis for axis in long if axis in axes]
    if not along:
        return 1, 1, math.prod(shape)  # lanes, which are treated together, and not rows of one element
    first, last = along[0], along[-1]
    if [axis for axis in long if first <= axis <= last] != along:
        return None
    return math.prod(shape[:first]), math.prod(shape[first : last + 1]), math.prod(shape[last + 1 :])


def reshaped(desc: ArrayDesc | None, shape: Shape) -> ArrayDesc | None:
    """Return the same memory under another shape; `desc` is C-contiguous."""
    return None if desc is None else ArrayDesc(shape, desc.dtype)


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype called `name`; bfloat16 comes from the package ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes  # type: ignore[import-not-found, unused-ignore]  # optional; see refuse_dtype()

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


@functools.cache
def _has_bfloat16() -> bool:
    return find_spec("ml_dtypes") is not None


def refuse_dtype(call: Call, taken: Sequence[str] = FLOATING) -> Refusal | None:
    """Refuse a call in another floating dtype than those that are taken, or on arrays of too many axes."""
    if call.dtype not in taken:
        return Refusal(f"computes in {' or '.join(taken)}, got {call.dtype}")
    if call.dtype == "bfloat16" and not _has_bfloat16():
        return Refusal("bfloat16 needs the package ml_dtypes: pip install ml-dtypes")
    return refuse_rank(call)


def refuse_empty(call: Call) -> Refusal | None:
    """Refuse a call one of whose arrays has no elements."""
    if any(desc is not None and desc.size == 0 for desc in forward_arrays(call)):
        return Refusal("takes arrays with at least one element")
    return None


def refuse_rank(call: Call) -> Refusal | None:
    """Refuse arrays of more axes than the loops of the native operations have."""
    rank = max((len(desc.shape) for desc in forward_arrays(call) if desc is not None), default=0)
    return Refusal(f"takes arrays of at most {_MAX_RANK} axes, got {rank}") if rank > _MAX_RANK else None


def refuse_dtypes(call: Call, taken: Sequence[str] = FLOATING) -> Refusal | None:
    """Refuse a call unless its arrays hold a dtype that is taken, its parameters the wide one, and its indices int64."""
    refusal = refuse_dtype(call, taken)
    if refusal is not None:
        return refusal
    #: what arrays of each kind of the specification must hold; "same" is left to the kernel
    wide = WIDE.get(call.dtype, call.dtype)
    floating = dict.fromkeys(("float", "exact"), call.dtype)
    expected = {**floating, "parameter": wide, "statistic": wide, "index": "int64", "int32": "int32"}
    kinds = _repeated([entry.dtype for entry in call.spec.inputs], len(call.inputs))
    kinds += _repeated([entry.dtype for entry in call.spec.outputs], len(call.outputs))
    names = input_names(call) + output_names(call)
    for name, kind, desc in zip(names, kinds, forward_arrays(call), strict=True):
        if desc is not None and desc.dtype != expected.get(kind, desc.dtype):
            return Refusal(f"takes {name} of {expected[kind]}, got {desc.dtype}")
    return None


def strides_of(desc: ArrayDesc) -> tuple[int, ...]:
    """Strides in bytes, also of a C-contiguous array."""
    if desc.strides is not None:
        return desc.strides
    strides = [_ITEM_BYTES.get(desc.dtype, 8)] * len(desc.shape)
    for axis in range(len(desc.shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(desc.shape[axis + 1], 1)
    return tuple(strides)
