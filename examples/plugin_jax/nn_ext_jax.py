"""JAX arrays as a backend: every operator of nn_core, forward, backward and in graphs, on ``jax.Array``."""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import AdaptedBackend, Array, Backend, BackendInfo, hookimpl

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"


def update(x: Array, key: Any, values: Array, add: bool) -> Array:
    """`x` with `values` in the places of `key`; see `AdaptedBackend`."""
    return x.at[key].add(values) if add else x.at[key].set(values)


def load() -> Backend:
    """JAX with 64-bit numbers, which indices and random keys are."""
    import jax
    import jax.numpy as xp

    jax.config.update("jax_enable_x64", True)
    functions = {"fmod": xp.fmod, "einsum": xp.einsum}
    return AdaptedBackend("jax", "JaxArray", xp, update=update, functions=functions)


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the backend of this plugin."""
    return [BackendInfo(name="jax", array_class="JaxArray", description="JAX arrays", load=load)]
