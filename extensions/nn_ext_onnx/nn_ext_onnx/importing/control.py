"""If, Loop and Scan, where what they decide on is known when the graph is built."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.builder import CONTROL_FLOW, Scope
from nn_ext_onnx.importing.registry import Node
from nn_ext_onnx.importing.shape import sliced
from nn_ext_onnx.importing.values import UnsupportedError, Value

#: Loops that run longer are not written out.
MAX_STEPS = 10_000


def _if(node: Node, scope: Scope) -> list[Value | None]:
    branch = node.attr("then_branch" if bool(node.number(0)) else "else_branch")
    return list(node.builder.subgraph(branch, [], scope))


def _loop(node: Node, scope: Scope) -> list[Value | None]:
    body = node.attr("body")
    limit = None if node.optional(0) is None else int(node.number(0))
    goes_on = True if node.optional(1) is None else bool(node.number(1))
    n_states = len(node.inputs) - 2
    states: list[Any] = list(node.inputs[2:])
    scans: list[list[Value]] = [[] for _ in range(len(body.output) - 1 - n_states)]
    _require_few_steps(limit, goes_on, body)
    step = 0
    while goes_on and (limit is None or step < limit):
        if step >= MAX_STEPS:
            raise UnsupportedError(f"more than {MAX_STEPS} steps")
        given = [_number("iteration", np.asarray(step, np.int64)), _number("condition", np.asarray(True)), *states]
        condition, *made = node.builder.subgraph(body, given, scope)
        goes_on = bool(condition.array.reshape(-1)[0])
        states = made[:n_states]
        for collected, value in zip(scans, made[n_states:], strict=True):
            collected.append(value)
        step += 1
    if scans and not step:
        raise UnsupportedError("a loop without steps that collects values")
    return [*states, *(_stacked(values, 0) for values in scans)]


def _require_few_steps(limit: int | None, goes_on: bool, body: Any) -> None:
    """Refuse a loop that must run longer than it would be written out, before any of it is."""
    if goes_on and limit is not None and limit > MAX_STEPS and _never_ends_early(body):
        raise UnsupportedError(f"more than {MAX_STEPS} steps")


def _never_ends_early(body: Any) -> bool:
    """Return whether the condition that a body of a loop gives is the one that it got."""
    sources = {node.output[0]: node.input[0] for node in body.node if node.op_type == "Identity"}
    name = body.output[0].name
    while name in sources:
        name = sources.pop(name)
    return bool(len(body.input) > 1 and name == body.input[1].name)


def _number(name: str, array: Any) -> Value:
    return Value(name, array.dtype, array)


def _stacked(values: Sequence[Value], axis: int) -> Value:
    """Values of all steps next to each other."""
    first = values[0]
    sources = frozenset().union(*(value.sources for value in values))
    if all(value.is_known for value in values):
        return Value(first.name, first.dtype, np.stack([value.array for value in values], axis=axis), sources=sources)
    if first.dtype.kind in "iu":
        raise UnsupportedError("a loop that collects whole numbers")
    return Value(first.name, first.dtype, variable=F.stack(*[v.variable for v in values], axis=axis), sources=sources)


def _scan(node: Node, scope: Scope) -> list[Value | None]:
    if node.opset < 9:
        return _scan_of_samples(node, scope)
    n_scanned = node.attr("num_scan_inputs")
    n_states = len(node.inputs) - n_scanned
    scanned = [node[n_states + k] for k in range(n_scanned)]
    axes = [a % v.ndim for a, v in zip(node.attr("scan_input_axes") or [0] * n_scanned, scanned, strict=True)]
    backwards = node.attr("scan_input_directions") or [0] * n_scanned
    states, scans = _scanned(node, list(node.inputs[:n_states]), scanned, axes, backwards, scope)
    return [*states, *_joined(node, scans)]


def _scan_of_samples(node: Node, scope: Scope) -> list[Value | None]:
    """Return the results before version 9: each sample is scanned by itself, along its first axis."""
    if node.optional(0) is not None:
        raise UnsupportedError("sequence_lens")
    n_scanned = node.attr("num_scan_inputs")
    backwards = node.attr("directions") or [0] * n_scanned
    made: list[list[Value]] = []
    for sample in range(node[1].shape[0]):
        parts = [_element(node[k], 0, sample) for k in range(1, len(node.inputs))]
        states, scanned = parts[:-n_scanned], parts[-n_scanned:]
        last, scans = _scanned(node, states, scanned, [0] * n_scanned, backwards, scope)
        made.append([*last, *(_stacked(values, 0) for values in scans)])
    return [_stacked(values, 0) for values in zip(*made, strict=True)]


def _scanned(
    node: Node,
    states: list[Any],
    scanned: Sequence[Value],
    axes: Sequence[int],
    backwards: Sequence[int],
    scope: Scope,
) -> tuple[list[Any], list[list[Value]]]:
    """Return the last states, and what the steps collect."""
    body, n_states = node.attr("body"), len(states)
    length = scanned[0].shape[axes[0]]
    if not 0 < length <= MAX_STEPS:
        raise UnsupportedError(f"{length} steps")
    scans: list[list[Value]] = [[] for _ in range(len(body.output) - n_states)]
    for step in range(length):
        parts = [
            _element(value, axis, length - 1 - step if turned else step)
            for value, axis, turned in zip(scanned, axes, backwards, strict=True)
        ]
        made = node.builder.subgraph(body, [*states, *parts], scope)
        states = made[:n_states]
        for collected, value in zip(scans, made[n_states:], strict=True):
            collected.append(value)
    return states, scans


def _joined(node: Node, scans: Sequence[list[Value]]) -> list[Value]:
    """Return the outputs of a Scan that its steps have collected."""
    axes = node.attr("scan_output_axes") or [0] * len(scans)
    turned = node.attr("scan_output_directions") or [0] * len(scans)
    return [
        _stacked(values[::-1] if is_turned else values, axis % (values[0].ndim + 1))
        for values, axis, is_turned in zip(scans, axes, turned, strict=True)
    ]


def _element(value: Value, axis: int, place: int) -> Value:
    if value.is_known:
        return Value(value.name, value.dtype, np.take(value.array, place, axis=axis), sources=value.sources)
    places = [slice(place, place + 1, 1) if k == axis else slice(0, n, 1) for k, n in enumerate(value.shape)]
    part: nn.Variable = F.reshape(sliced(value.variable, places), [n for k, n in enumerate(value.shape) if k != axis])
    return Value(value.name, value.dtype, variable=part, sources=value.sources)


CONTROL_FLOW.update({"If": _if, "Loop": _loop, "Scan": _scan})
