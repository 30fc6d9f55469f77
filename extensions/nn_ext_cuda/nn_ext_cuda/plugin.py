"""The description of this package for the core: one backend, declared without importing CuPy."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import ArgumentError, Backend, BackendInfo, Context, KnownOperators, Refusal, hookimpl
from nn_ext_cuda.device.driver import Driver, installed_cupy, why_not

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"
#: The arguments and inputs of operators that the kernels read.
KNOWN_OPERATORS: Final = KnownOperators("0.1")

#: Both are arrays of CuPy, with memory from its pool or from the driver: see `nn_ext_cuda.prefer_cached_array`.
ARRAY_CLASSES: Final = ("CudaCachedArray", "CudaArray")
TYPE_CONFIGS: Final = ("float", "half", "bfloat16", "double")


def context(*, device_id: str | int = "0", type_config: str = "float", tf32: bool | None = None) -> Context:
    """Return the context of this backend, with the CPU as the fallback.

    Args:
        device_id: Number of the device. It becomes the current one of this process.
        type_config: float, half, bfloat16 or double.
        tf32: Whether float32 matrix products and convolutions may round their operands to 10 bits (TF32), for the
            whole process. None leaves the setting as it is; it is off at the start.

    Raises:
        ArgumentError: when `type_config` is none of these.
    """
    return listed_context(["cuda"], device_id, type_config, tf32)


def listed_context(backends: Sequence[str], device_id: str | int, type_config: str, tf32: bool | None) -> Context:
    """Return a context with `backends` in front and the CPU after them; see `context` for the arguments."""
    if type_config not in TYPE_CONFIGS:
        raise ArgumentError(f"context: type_config must be {', '.join(TYPE_CONFIGS)}, got {type_config!r}")
    if not str(device_id).isdecimal():
        raise ArgumentError(f"context: device_id must be the number of a device, got {device_id!r}")
    if tf32 is not None:
        from nn_ext_cuda.gemm import precision

        precision.allow_tf32(tf32)
    if probe() is None:
        from nn_ext_cuda.device import devices  # imports CuPy

        devices.use_device(int(device_id))
    entries = [f"{name}:{type_config}" for name in (*backends, "cpu")]
    return Context(entries, ARRAY_CLASSES[0], str(device_id))


def probe() -> Refusal | None:
    """Say why CUDA cannot be used, without importing CuPy."""
    reason = why_not(installed_cupy(), Driver())
    return Refusal(reason) if reason else None


def load() -> Backend:
    """Import CuPy and make the backend."""
    from nn_ext_cuda.backend import CudaBackend  # imports CuPy, which importing a plugin must not

    return CudaBackend()


def devices() -> Sequence[str]:
    """One line for each device."""
    if probe() is not None:
        return []
    from nn_ext_cuda.device import devices  # imports CuPy

    return [f"{number}: {name}" for number, name in enumerate(devices.get_devices())]


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the one backend of this package."""
    return [
        BackendInfo(
            name="cuda",
            array_class=ARRAY_CLASSES[0],
            load=load,
            probe=probe,
            description="CuPy arrays, generated CUDA kernels, cuBLAS and CUDA graphs",
            priority=20,
            context=context,
            devices=devices,
        )
    ]
