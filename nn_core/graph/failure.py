"""Exceptions of kernels and rules, with a note that says which plugin, operator, backend and call they come from."""

from collections.abc import Mapping, Sequence
from typing import Any

from nn_core.dispatch.known import table_kernel
from nn_core.dispatch.registry import REGISTRY
from nn_core.errors import HostMemoryError, NNCoreError
from nn_core.logger import logger
from nn_core.spec.model import ArgValue, FunctionSpec
from nn_core.typing import Call, Kernel


def note_call(error: Exception, call: Call, backend: str, kernel: Kernel | None = None) -> None:
    """Note in `error` that it comes from the kernel of `call`."""
    inputs = [None if desc is None else f"{desc.shape} {desc.dtype}" for desc in call.inputs]
    add_note(error, call.spec, backend, inputs, call.args, REGISTRY.owner_of_kernel(table_kernel(kernel)))


def add_note(
    error: Exception,
    spec: FunctionSpec,
    backend: str,
    inputs: Sequence[object],
    args: Mapping[str, ArgValue],
    owner: str = "",
    what: str = "",
) -> None:
    """Note in `error` where it comes from, unless it is a refusal of ours that says so already."""
    added = REGISTRY.added(spec.name)
    plugin = owner or (added.plugin if added else "")
    if isinstance(error, NNCoreError) and not plugin:
        return
    notes: list[str] = getattr(error, "__notes__", [])
    if any(note.startswith("nn_core: ") for note in notes):
        return
    origin = f" of plugin {plugin!r}" if plugin else ""
    given = ", ".join([*map(str, inputs), *(f"{name}={value!r}" for name, value in args.items())])
    name = added.key if added else spec.api
    note = f"nn_core: in {what}F.{name} ({spec.name}){origin}, run by backend {backend!r}, called with ({given})"
    attach_note(error, note)


def out_of_memory(spec: FunctionSpec, inputs: Sequence[object], outputs: Sequence[object], error: MemoryError) -> NNCoreError:
    """The error of a function for whose arrays the memory does not suffice; that of a device says so itself."""
    if isinstance(error, NNCoreError) and not str(error).startswith("memory:"):
        return error
    made = f" and results {', '.join(map(str, outputs))}" if outputs else ""
    given = ", ".join(["None" if shape is None else str(shape) for shape in inputs])
    return HostMemoryError(
        f"{spec.api}: its results must fit into the memory of the host, got inputs of shape {given or '()'}{made}\n"
        f"  {str(error).partition(chr(10))[0]}\n"
        "  hint: take a smaller batch, forward(clear_no_need_grad=True), nn_core.recompute(), or half precision"
    )


def attach_note(error: Any, note: str) -> None:
    """Add a line to what is printed of an exception."""
    if hasattr(error, "add_note"):
        error.add_note(note)
        return
    error.__notes__ = [*getattr(error, "__notes__", ()), note]
    logger.error("%s", note)  # Python 3.10 keeps notes and does not print them
