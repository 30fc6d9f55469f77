"""PyTorch tensors as a backend: every operator of nn_core, forward, backward and in graphs, on ``torch.Tensor``."""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import AdaptedBackend, Array, Backend, BackendInfo, hookimpl

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"


def update(x: Array, key: Any, values: Array, add: bool) -> Array:
    """`x` with `values` in the places of `key`; see `AdaptedBackend`."""
    if not isinstance(key, tuple):
        return x.index_put((key,), values, accumulate=add)
    result = x.clone()
    result[key] = values
    return result


def load() -> Backend:
    """PyTorch under the names of the array API standard."""
    import array_api_compat.torch as xp
    import torch

    functions = {"fmod": torch.fmod, "einsum": torch.einsum}
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return AdaptedBackend(
        "torch", "TorchTensor", xp, update=update, functions=functions,
        from_numpy=lambda array: torch.from_numpy(array).to(device), to_numpy=lambda x: x.cpu().numpy(),
    )  # fmt: skip


@hookimpl
def nn_core_backends() -> Sequence[BackendInfo]:
    """Return the backend of this plugin."""
    return [BackendInfo(name="torch", array_class="TorchTensor", description="PyTorch tensors", load=load)]
