"""Refusals that all functions over descriptors share."""

from collections.abc import Callable

from nn_core.ext import Call, Refusal
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cudnn.errors import CudnnError, refusal


def refuse_arrays(call: Call) -> Refusal | None:
    """Refuse arrays without elements, arrays that 32 bits cannot index, and dtypes that are not computed in."""
    for entry, desc in zip(call.spec.inputs, call.inputs, strict=False):
        if desc is not None and desc.size == 0:
            return Refusal(f"takes {entry.name} of at least one element, got shape {desc.shape}")
    return refuse_sizes([*call.inputs, *call.outputs]) or refuse_dtypes(call)


def refuse_failures(prepare: Callable[[], object]) -> Refusal | None:
    """Refuse where cuDNN reports an error while a call is prepared: another backend can run it.

    Raises:
        CudnnError: when no other backend can help; see `errors.is_final`.
    """
    try:
        prepare()
    except CudnnError as error:
        return refusal(error)
    return None
