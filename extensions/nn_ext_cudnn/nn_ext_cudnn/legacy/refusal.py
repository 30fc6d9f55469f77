"""Refusals that all functions over descriptors share."""

from nn_core.ext import Call, Refusal
from nn_ext_cuda.compose import refuse_sizes
from nn_ext_cuda.dtypes import refuse_dtypes


def refuse_arrays(call: Call) -> Refusal | None:
    """Refuse arrays without elements, arrays that 32 bits cannot index, and dtypes that are not computed in."""
    for entry, desc in zip(call.spec.inputs, call.inputs, strict=False):
        if desc is not None and desc.size == 0:
            return Refusal(f"takes {entry.name} of at least one element, got shape {desc.shape}")
    return refuse_sizes([*call.inputs, *call.outputs]) or refuse_dtypes(call)
