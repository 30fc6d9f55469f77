"""The description of the engine between devices for the core: a plugin of its own, declared without importing CuPy."""

from collections.abc import Sequence
from ctypes.util import find_library
from importlib.util import find_spec

from nn_core.ext import CommunicatorInfo, Refusal, hookimpl
from nn_ext_cuda.plugin import PLUGIN_API, REQUIRES_CORE
from nn_ext_cuda.plugin import probe as probe_cuda

__all__ = ["PLUGIN_API", "REQUIRES_CORE", "nn_core_communicators", "probe"]


def probe() -> Refusal | None:
    """Say why NCCL cannot be used, without importing CuPy."""
    refusal = probe_cuda()
    if refusal is not None or has_nccl():
        return refusal
    return Refusal("NCCL is not installed: pip install nvidia-nccl-cu13 (or nvidia-nccl-cu12, as CuPy needs it)")


def has_nccl() -> bool:
    """Return whether NCCL's library is there, as a wheel or on the system."""
    try:
        wheel = find_spec("nvidia.nccl")
    except ModuleNotFoundError:
        wheel = None
    return wheel is not None or find_library("nccl") is not None


@hookimpl
def nn_core_communicators() -> Sequence[CommunicatorInfo]:
    """Return the engine between devices."""
    return [
        CommunicatorInfo(
            name="nccl",
            description="NCCL between devices; ranks meet by MPI or by NN_CORE_NCCL_ADDRESS",
            target="nn_ext_cuda.nccl.engine:make",
            probe=probe,
            priority=5,  # after MPI: communicators hand over arrays of the host
        )
    ]
