"""A backend that brings an array namespace and nothing else, and runs every operator through the reference kernels.

The namespace is NumPy with a counter: ``get_extension_context("tracing")`` shows which array functions a network needs.
For a device, put its array library in the place of NumPy, and add kernels to ``TracingBackend.kernels`` one by one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nn_core.ext import Array, Backend, BackendInfo, Context, Kernel, Namespace, Refusal, Shape, hookimpl

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"
ARRAY_CLASS = "TracedArray"

#: How often each name of the namespace was looked up.
USES: Counter[str] = Counter()


class TracedNamespace:
    """NumPy, counting what is used of it."""

    def __getattr__(self, name: str) -> Any:
        USES[name] += 1
        return getattr(np, name)


class TracingBackend:
    """Arrays of the namespace, and no kernel of its own; see `nn_core.ext.Backend`."""

    name: str = "tracing"
    array_class: str = ARRAY_CLASS
    kernels: Mapping[str, Kernel] = {}

    def __init__(self) -> None:
        self._namespace = TracedNamespace()

    def namespace(self) -> Namespace:
        """Return the array library that the reference kernels use."""
        return self._namespace

    def empty(self, shape: Shape, dtype: str) -> Array:
        """Return a new array on the device."""
        return np.empty(shape, dtype)

    def from_numpy(self, array: Array) -> Array:
        """Return a copy on the device."""
        return np.array(array, order="C")

    def to_numpy(self, array: Array) -> Array:
        """Return the values on the host."""
        return np.asarray(array)


def probe() -> Refusal | None:
    """Look for the driver of a device here, and say what is missing."""
    return None


def load() -> Backend:
    """Load the libraries of a device here."""
    return TracingBackend()


def context(*, device_id: str | int = "0", type_config: str = "float") -> Context:
    """Return the context that get_extension_context("tracing") gives."""
    return Context([f"tracing:{type_config}"], ARRAY_CLASS, device_id)


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the contents of this plugin."""
    return [
        BackendInfo(
            name="tracing",
            array_class=ARRAY_CLASS,
            description="NumPy, counting the array functions that are used",
            probe=probe,
            load=load,
            context=context,
        )
    ]
