"""Record which arrays the clear flags free: for each function that runs, whether its data and gradients were cleared.

    activate_clear_called_flag_recorder()
    y.forward(clear_buffer=True)
    flags = get_input_clear_called_flags()  # [function][input] -> (data cleared, gradient cleared)
    deactivate_clear_called_flag_recorder()

An array counts as cleared by the last function of a pass that uses it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from nn_core.engine.graph.node import Node, Storage
from nn_core.engine.graph.plan import Plan

#: For each function, for each of its arrays: data cleared, gradient cleared.
Flags: TypeAlias = list[list[tuple[bool, bool]]]

_inputs: Final[Flags] = []
_outputs: Final[Flags] = []
_run: Final[Callable[..., None]] = Plan.run


def activate_clear_called_flag_recorder() -> None:
    """Record from now on; what was recorded before is forgotten."""
    _inputs.clear()
    _outputs.clear()
    Plan.run = _run_recorded  # type: ignore[method-assign, assignment]  # until deactivated


def deactivate_clear_called_flag_recorder() -> None:
    """Stop recording and forget what was recorded."""
    Plan.run = _run  # type: ignore[method-assign]  # as it was
    _inputs.clear()
    _outputs.clear()


def get_input_clear_called_flags() -> Flags:
    """For each function that ran, in order, whether the data and the gradient of each input were cleared."""
    return [list(flags) for flags in _inputs]


def get_output_clear_called_flags() -> Flags:
    """For each function that ran, in order, whether the data and the gradient of each output were cleared."""
    return [list(flags) for flags in _outputs]


def _run_recorded(plan: Plan, *args: Any, **keywords: Any) -> None:
    _run(plan, *args, **keywords)
    nodes = list(dict.fromkeys(entry.node for entry in plan.entries if entry.node is not None))
    last: dict[Storage, int] = {}
    for position, node in enumerate(nodes):
        last.update(dict.fromkeys([*_input_storages(node), *node.storages], position))
    for position, node in enumerate(nodes):
        n_visible = len(node.storages) - sum(entry.aux for entry in node.spec.outputs)
        for flags, storages in ((_inputs, _input_storages(node)), (_outputs, node.storages[:n_visible])):
            flags.append([_cleared(storage) if last[storage] == position else (False, False) for storage in storages])


def _input_storages(node: Node) -> Sequence[Storage]:
    return [value.storage for value in node.inputs if value is not None]


def _cleared(storage: Storage) -> tuple[bool, bool]:
    return storage.data.clear_called, storage.made_grad is not None and storage.made_grad.clear_called
