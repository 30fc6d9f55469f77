"""Number types: how CUDA C calls them, what is computed in, and how wide they are."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Refusal

#: Name of a dtype in the CUDA sources of this package.
C_TYPES: Final[Mapping[str, str]] = {
    "float16": "half_t",
    "bfloat16": "bfloat_t",
    "float32": "float",
    "float64": "double",
    "int64": "int64",
    "int32": "int",
    "uint8": "uint8",
    "bool": "bool",
}
#: Bytes of one element.
ITEM_BYTES: Final[Mapping[str, int]] = {
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "int32": 4,
    "uint8": 1,
    "bool": 1,
}
#: The dtypes of sums, losses and statistics where arrays are shorter; sums are taken in them, too.
STATISTICS: Final[Mapping[str, str]] = {"float16": "float32", "bfloat16": "float32"}
FLOATING: Final = ("float32", "float16", "bfloat16", "float64")


def real_type(dtype: str) -> str:
    """Return the C type that arrays of `dtype` are computed in: float, for double precision double."""
    return "double" if dtype == "float64" else "float"


def real_dtype(dtype: str) -> str:
    """Return the dtype of sums and statistics of arrays of `dtype`."""
    return "float64" if dtype == "float64" else "float32"


def real(dtype: str, value: Any) -> np.generic:
    """Return a number as a kernel over arrays of `dtype` takes it."""
    return np.float64(value) if dtype == "float64" else np.float32(value)


def refuse_dtypes(call: Call) -> Refusal | None:
    """Refuse a call unless its floating arrays are of one floating dtype and its indices int64."""
    inputs = call.spec.inputs + call.spec.inputs[-1:] * (len(call.inputs) - len(call.spec.inputs))
    outputs = call.spec.outputs + call.spec.outputs[-1:] * (len(call.outputs) - len(call.spec.outputs))
    entries: list[tuple[Any, ArrayDesc | None]] = [*zip(inputs, call.inputs, strict=True)]
    entries += zip(outputs, call.outputs, strict=False)
    expected = {"float": call.dtype, "exact": call.dtype, "index": "int64"}
    if call.dtype not in FLOATING:
        return Refusal(f"computes in {', '.join(FLOATING)}, got {call.dtype}")
    for entry, desc in entries:
        if desc is None:
            continue
        if desc.dtype != expected.get(entry.dtype, desc.dtype):
            return Refusal(f"takes {entry.name} of {expected[entry.dtype]}, got {desc.dtype}")
        if desc.dtype not in C_TYPES:
            return Refusal(f"takes {entry.name} of {', '.join(C_TYPES)}, got {desc.dtype}")
    return None
