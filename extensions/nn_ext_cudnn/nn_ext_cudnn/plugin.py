"""The description of this package for the core: one backend, declared without loading cuDNN."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import Backend, BackendInfo, Context, KnownOperators, Refusal, hookimpl
from nn_ext_cuda import plugin as cuda
from nn_ext_cudnn import library

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"
#: The arguments and inputs of operators that the kernels read.
KNOWN_OPERATORS: Final = KnownOperators("0.1")


def context(*, device_id: str | int = "0", type_config: str = "float", tf32: bool | None = None) -> Context:
    """Return the context of this backend, with CUDA and the CPU as fallbacks; see `nn_ext_cuda.context` for the arguments."""
    return cuda.listed_context(["cudnn", "cuda"], device_id, type_config, tf32)


def probe() -> Refusal | None:
    """Say why cuDNN cannot be used: no CUDA, or no libcudnn 9."""
    refusal = cuda.probe()
    if refusal is None and not library.is_present():
        return Refusal("libcudnn 9 was not found: pip install nvidia-cudnn-cu13 (or nvidia-cudnn-cu12, as CuPy is)")
    return refusal


def load() -> Backend:
    """Load cuDNN and make the backend."""
    from nn_ext_cudnn.backend import CudnnBackend  # imports CuPy, which importing a plugin must not

    return CudnnBackend()


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the one backend of this package."""
    return [
        BackendInfo(
            name="cudnn",
            array_class=cuda.ARRAY_CLASSES[0],
            load=load,
            probe=probe,
            description="convolutions, attention, poolings, normalizations and recurrent networks by cuDNN 9",
            priority=30,
            context=context,
            devices=cuda.devices,
        )
    ]
