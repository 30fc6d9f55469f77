"""Exceptions of kernels and rules, with a note that says which plugin, operator, backend and call they come from."""

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np

from nn_core.engine.dispatch.blame import attach_note as attach_note
from nn_core.engine.dispatch.blame import note_origin, require_no_end, require_no_exit
from nn_core.engine.dispatch.known import table_kernel
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.runtime.installed import OWN_PACKAGES
from nn_core.errors import ArgumentError, HostMemoryError, NNCoreError
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.typing import Array, Call, Kernel, Shape

if TYPE_CHECKING:
    from nn_core.engine.graph.node import Node, Value

#: The arrays of a function for which the memory may not suffice, by the part of the work.
LACKING: Final[Mapping[str, str]] = {
    "forward": "its results",
    "backward": "its gradients",
    "inputs": "copies of its inputs",
}
_LESS_MEMORY: Final = "hint: take a smaller batch, forward(clear_no_need_grad=True), nn_core.recompute(), or half precision"


def note_call(error: BaseException, call: Call, backend: str, kernel: Kernel | None = None) -> None:
    """Note in `error` that it comes from the kernel of `call`."""
    inputs = [None if desc is None else f"{desc.shape} {desc.dtype}" for desc in call.inputs]
    add_note(error, call.spec, backend, inputs, call.args, REGISTRY.owner_of_kernel(table_kernel(kernel)))


class KernelCall:
    """A ``with`` block that asks a kernel for something: what it raises says which kernel that was."""

    __slots__ = ("_backend", "_call", "_kernel")

    def __init__(self, call: Call, backend: str, kernel: Kernel) -> None:
        self._call, self._backend, self._kernel = call, backend, kernel

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            note_call(error, self._call, self._backend, self._kernel)


def add_note(
    error: BaseException,
    spec: FunctionSpec,
    backend: str,
    inputs: Sequence[object],
    args: Mapping[str, ArgValue],
    owner: str = "",
    what: str = "",
) -> None:
    """Note in `error` where it comes from, unless it is a refusal of ours that says so already.

    Raises:
        PluginError: in place of what would end the program, raised by code of a plugin.
    """
    added = REGISTRY.added(spec.name)
    plugin = owner or (added.plugin if added else "")
    name = added.key if added else spec.api
    subject = f"{what}F.{name}, run by backend {backend!r},"
    require_no_exit(error, subject, plugin)
    require_no_end(error, subject, plugin)
    if isinstance(error, NNCoreError) and not plugin and backend.partition(".")[0] in OWN_PACKAGES:
        return
    origin = f" of plugin {plugin!r}" if plugin else ""
    given = ", ".join([*map(str, inputs), *(f"{name}={value!r}" for name, value in args.items())])
    note_origin(error, f"in {what}F.{name} ({spec.name}){origin}, run by backend {backend!r}, called with ({given})")


def note_node(error: BaseException, node: "Node", backend: str, owner: str, part: str) -> None:
    """Note in `error` that it comes from a function of a plan.

    Raises:
        HostMemoryError: in place of a MemoryError, which names no function.
    """
    if isinstance(error, MemoryError):
        raise_lack_in(node, error, part)
    add_note(error, node.spec, backend, shapes_of(node.inputs), node.args, owner)


def raise_lack_in(node: "Node", error: MemoryError, part: str) -> NoReturn:
    """Raise the error that names the function of a graph for which the memory does not suffice.

    Args:
        node: The function.
        error: What the memory said.
        part: Which of the arrays of `LACKING` do not fit.
    """
    results = [storage.data.shape for storage in node.storages] if part == "forward" else ()
    raise_lack(node.spec, shapes_of(node.inputs), results, error, part)


def shapes_of(values: "Sequence[Value | None]") -> list[Shape | None]:
    """Return the shapes of the inputs of a function, as messages give them."""
    return [None if value is None else value.plain_shape for value in values]


def note_partial_sums(error: BaseException) -> None:
    """Note in the `error` that has ended a backward pass that gradients to which it added keep what was added."""
    attach_note(
        error,
        "backward: gradients that were not zero may hold a part of what the pass was to add\n"
        "  hint: set them to zero, by solver.zero_grad(), and accumulate them anew",
    )


def name_pass(error: BaseException, part: str, functions: Iterable[str]) -> None:
    """Raise the error that names the functions of a pass, one of which has found no memory; pass over all others."""
    if isinstance(error, MemoryError) and not isinstance(error, NNCoreError):
        names = ", ".join(dict.fromkeys(functions))
        raise HostMemoryError(
            f"{part}: what functions work with must fit into the memory of the host, got a pass of {names}\n"
            f"  {str(error).partition(chr(10))[0]}\n  {_LESS_MEMORY}"
        ) from error


def named_reading(spec: FunctionSpec, position: int, error: ArgumentError) -> ArgumentError:
    """Return the refusal of the values of an input with the names of the function and of the input."""
    name = spec.inputs[min(position, len(spec.inputs) - 1)].name
    return type(error)(f"{spec.api}: {name}: {error}") if str(error).startswith("numbers read as") else error


def named_leaf(nodes: Iterable["Node | None"], error: ArgumentError) -> ArgumentError:
    """Return the refusal of the values of a leaf with the names of the function and of the input that reads them."""
    if not str(error).startswith("numbers read as"):
        return error
    for node in nodes:
        for position, value in enumerate(() if node is None or node.python is not None else node.inputs):
            if node is None or value is None or value.producer is not None:
                continue
            entry = node.spec.inputs[min(position, len(node.spec.inputs) - 1)]
            if entry.dtype == "index" and _lacks_whole(value.storage.data.get_data("r")):
                return named_reading(node.spec, position, error)
    return error


def _lacks_whole(values: Array) -> bool:
    """Return whether some numbers are fractions or not finite."""
    with np.errstate(invalid="ignore"):
        return bool((values != np.trunc(values)).any() or not np.isfinite(values).all())


def raise_lack(
    spec: FunctionSpec, inputs: Sequence[object], outputs: Sequence[object], error: MemoryError, part: str = "forward"
) -> NoReturn:
    """Raise the error of a function for whose arrays the memory does not suffice; `error` itself if it names one already."""
    if isinstance(error, NNCoreError) and not str(error).startswith("memory:"):
        raise error
    made = f" and results {', '.join(map(str, outputs))}" if outputs else ""
    given = ", ".join(["None" if shape is None else str(shape) for shape in inputs])
    raise HostMemoryError(
        f"{spec.api}: {LACKING[part]} must fit into the memory of the host, got inputs of shape {given or '()'}{made}\n"
        f"  {str(error).partition(chr(10))[0]}\n  {_LESS_MEMORY}"
    ) from error
