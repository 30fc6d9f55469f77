"""Statuses of cuDNN as exceptions that say what to do."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Array, Refusal
from nn_ext_cuda.device.errors import DeviceError, DeviceMemoryError

#: Names of the statuses, without their prefix CUDNN_STATUS_ (cudnn_graph.h of cuDNN 9).
STATUSES: Final[Mapping[int, str]] = {
    1001: "NOT_INITIALIZED",
    1002: "SUBLIBRARY_VERSION_MISMATCH",
    1003: "SERIALIZATION_VERSION_MISMATCH",
    1004: "DEPRECATED",
    1005: "LICENSE_ERROR",
    1006: "RUNTIME_IN_PROGRESS",
    1007: "RUNTIME_FP_OVERFLOW",
    1008: "SUBLIBRARY_LOADING_FAILED",
    2000: "BAD_PARAM",
    2002: "BAD_PARAM_NULL_POINTER",
    2003: "BAD_PARAM_MISALIGNED_POINTER",
    2004: "BAD_PARAM_NOT_FINALIZED",
    2005: "BAD_PARAM_OUT_OF_BOUND",
    2006: "BAD_PARAM_SIZE_INSUFFICIENT",
    2007: "BAD_PARAM_STREAM_MISMATCH",
    2008: "BAD_PARAM_SHAPE_MISMATCH",
    2009: "BAD_PARAM_DUPLICATED_ENTRIES",
    2010: "BAD_PARAM_ATTRIBUTE_TYPE",
    2011: "BAD_PARAM_CUDA_GRAPH_MISMATCH",
    2012: "BAD_PARAM_DESCRIPTOR_TYPE",
    3000: "NOT_SUPPORTED",
    3001: "NOT_SUPPORTED_GRAPH_PATTERN",
    3002: "NOT_SUPPORTED_SHAPE",
    3003: "NOT_SUPPORTED_DATA_TYPE",
    3004: "NOT_SUPPORTED_LAYOUT",
    3005: "NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER",
    3006: "NOT_SUPPORTED_INCOMPATIBLE_CUDART",
    3007: "NOT_SUPPORTED_ARCH_MISMATCH",
    3008: "NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING",
    3009: "NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE",
    3010: "NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT",
    3011: "NOT_SUPPORTED_PADDING",
    3012: "NOT_SUPPORTED_BAD_LAUNCH_PARAM",
    3013: "NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API",
    3014: "NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE",
    4000: "INTERNAL_ERROR",
    4001: "INTERNAL_ERROR_COMPILATION_FAILED",
    4002: "INTERNAL_ERROR_UNEXPECTED_VALUE",
    4003: "INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
    4004: "INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    4005: "INTERNAL_ERROR_BAD_LAUNCH_PARAM",
    4006: "INTERNAL_ERROR_TEXTURE_CREATION_FAILED",
    5000: "EXECUTION_FAILED",
    5001: "EXECUTION_FAILED_CUDA_DRIVER",
    5002: "EXECUTION_FAILED_CUBLAS",
    5003: "EXECUTION_FAILED_CUDART",
    5004: "EXECUTION_FAILED_CURAND",
}

_REINSTALL: Final = (
    "the files of one cuDNN must be together: pip uninstall nvidia-cudnn-cu12 nvidia-cudnn-cu13, install the one that "
    "fits CuPy, and take other copies out of LD_LIBRARY_PATH"
)
_MEMORY: Final = "a smaller batch, or nn_ext_cuda.clear_memory_cache()"
#: The remedies, by status.
_HINTS: Final[Mapping[int, str]] = {
    1001: "nn-core doctor says whether the driver and the device can be used",
    1002: _REINSTALL,
    1008: _REINSTALL,
    3005: "a newer driver, or the cuDNN for an older CUDA (nvidia-cudnn-cu12 instead of nvidia-cudnn-cu13)",
    3006: "the cuDNN for the CUDA that CuPy was built for (nvidia-cudnn-cu12 or nvidia-cudnn-cu13)",
    3007: "this cuDNN has no code for the device: a newer cuDNN for a new device, nvidia-cudnn-cu12 for an old one",
    3008: "install NVRTC for the CUDA of cuDNN: pip install nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12",
    3009: _REINSTALL,
    4003: _MEMORY,
    4004: _MEMORY,
}
_EXECUTION: Final = "after a fault of the device the process has to be started anew"


class CudnnError(DeviceError):
    """cuDNN reported an error; `status` is the number that it gave."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class NotSupportedError(CudnnError):
    """cuDNN does not run this here; kernels turn it into a refusal while they are prepared."""


class CudnnMemoryError(CudnnError, DeviceMemoryError):
    """cuDNN got no memory."""


def failure(function: str, status: int, detail: str = "") -> CudnnError:
    """Return the exception for a function that gave a status other than success.

    Args:
        function: Name of the function of cuDNN.
        status: The status that it returned.
        detail: The text of `cudnnGetLastErrorString`.
    """
    name = STATUSES.get(status, "an unknown status")
    message = f"{function}: status must be success, got {status} ({name})"
    if detail.strip():
        message += f"\n  cuDNN says {detail.strip()}"
    hint = _HINTS.get(status, _EXECUTION if status // 1000 == 5 else "")
    if hint:
        message += f"\n  hint: {hint}"
    if status in (4003, 4004):
        return CudnnMemoryError(message, status)
    return (NotSupportedError if status // 1000 == 3 else CudnnError)(message, status)


def is_final(error: CudnnError) -> bool:
    """Return whether no other kernel can help: memory has run out, or the device has failed."""
    return isinstance(error, CudnnMemoryError) or error.status // 1000 == 5


def refusal(error: CudnnError) -> Refusal:
    """Return the refusal of a call for which cuDNN reported an error while it was prepared; the reason has the status by name.

    Raises:
        CudnnError: when no other kernel can help; see `is_final`.
    """
    if is_final(error):
        raise error
    return Refusal(one_line(error))


def one_line(error: CudnnError) -> str:
    """Return the exception in one line: the status, and what cuDNN says about it."""
    lines = [line.strip() for line in str(error).splitlines()]
    return "; ".join([lines[0], *(line for line in lines[1:] if line.startswith("cuDNN says"))])


def located(error: CudnnError, what: str, arrays: Sequence[Array | None]) -> CudnnError:
    """Return the exception with the function of nn_core in front and its arrays at the end."""
    shapes = "  ".join(f"({', '.join(map(str, array.shape))}) {array.dtype}" for array in arrays if array is not None)
    return type(error)(f"{what}: {error}\n  arrays {shapes}", error.status)
