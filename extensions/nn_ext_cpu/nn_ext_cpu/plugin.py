"""The description of this package for the core: one backend, declared without loading the native library."""

import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from nn_core.ext import ArgumentError, Backend, BackendInfo, Context, KnownOperators, Refusal, hookimpl
from nn_ext_cpu.library import load_native

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"
#: The arguments and inputs of operators that the kernels read.
KNOWN_OPERATORS: Final = KnownOperators("0.1")

ARRAY_CLASSES: Final = ("CpuCachedArray", "CpuArray")


def context(*, device_id: str | int = "0", type_config: str = "float") -> Context:
    """Return the context of this backend.

    Args:
        device_id: 0, or a rank of this program; the host is one device.
        type_config: float, half, bfloat16 or double. Kernels compute in float, and take bfloat16 arrays too; parameters
            and statistics stay float32 then. In double, element-wise functions, sums, products, convolutions, pooling,
            softmax, normalizations and their losses are native, too; all else, and half, runs on the reference.

    Raises:
        ArgumentError: when `type_config` is none of these.
    """
    if type_config not in ("float", "half", "bfloat16", "double"):
        raise ArgumentError(f"context: type_config must be float, half, bfloat16 or double, got {type_config!r}")
    return Context([f"cpu:{type_config}"], ARRAY_CLASSES[0], str(device_id))


def probe() -> Refusal | None:
    """Say why the native library cannot be used, without loading it."""
    if find_spec("nn_ext_cpu._native") is None:
        return Refusal("the native library is not built: pip install --force-reinstall nn-ext-cpu")
    return None


def load() -> Backend:
    """Load the native library and make the backend."""
    load_native()
    from nn_ext_cpu.backend import CpuBackend  # it needs the native library, which importing a plugin must not load

    return CpuBackend()


def devices() -> Sequence[str]:
    """One line for the host."""
    native = load_native()
    return [f"0: {os.cpu_count()} processors, {native.isa()}, bfloat16 by {native.bfloat16_products()}"]


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the one backend of this package."""
    return [
        BackendInfo(
            name="cpu",
            array_class=ARRAY_CLASSES[0],
            load=load,
            probe=probe,
            description="vectorised C++ kernels and oneDNN",
            priority=10,
            context=context,
            devices=devices,
        )
    ]
