"""LSTM and GRU as recurrent nodes: one for each direction of a layer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_ext_c.emitting.registry import NotExportableError
from nn_ext_c.graphs import key_of
from nn_ext_c.integer.cells import CANDIDATE, GATES, INPUT_BITS, STATE_BITS, STEPS
from nn_ext_c.integer.lowering import Task, lowers
from nn_ext_c.integer.numbers import ACCUMULATOR, HIGH, LOW, Array, Scale, fixed_point, round_half_away, scale_of

#: Biases get at most so large as integers.
_BIAS: Final = 2**26
#: Shifts of inner products: with these, no product is 2 ** 63 or more.
_LEAST_SHIFT: Final = 16


@dataclass(frozen=True, slots=True)
class _Direction:
    """One direction of a layer, and where the sequences come from."""

    layer: int
    number: int
    x: int
    scale: Scale


@lowers("LSTM", "GRU")
def _recurrent(task: Task) -> list[int]:
    if task.shape[0] >= STEPS:
        raise NotExportableError(f"there must be fewer than {STEPS} steps, got {task.shape[0]}")
    x, finals, cells = task.tensor(0), [], []
    layers = task.args["num_layers"]
    for layer in range(layers):
        scale = _output_scale(task, task.scale if layer == layers - 1 else scale_of(-1, 1))
        parts = []
        for number in range(2 if task.args["bidirectional"] else 1):
            y, cell = _direction(task, _Direction(layer, number, x, scale))
            parts.append(y)
            finals.append(_step(task, y, 0 if number else task.shape[0] - 1))
            cells += cell
        x = _joined(task, parts, 2)
    shape = task.function.results[1].shape
    made = [x, task.reshape(_joined(task, _in_one_scale(task, finals), 0), shape)]
    # a cell state that nothing reads has no tensor of its own
    made.append(task.reshape(_joined(task, cells, 0), shape) if cells else made[1])
    return made[: len(task.function.results)]


def _output_scale(task: Task, scale: Scale) -> Scale:
    """Return the scale of the results of a layer, which holds the states before the first step, too."""
    ends = [_ends(scale)] + ([] if _is_zero(task, 1) else [_ends(task.input_scale(task.tensor(1)))])
    return scale if len(ends) == 1 else scale_of(min(low for low, _ in ends), max(high for _, high in ends))


def _ends(scale: Scale) -> tuple[float, float]:
    return scale.scale * (LOW - scale.zero), scale.scale * (HIGH - scale.zero)


def _is_zero(task: Task, index: int) -> bool:
    """Return whether an input is a constant of zeros."""
    return task.inputs[index] is None and not np.any(task.function.inputs[index].d)


def _step(task: Task, y: int, place: int) -> int:
    """Return the results of one step, as a state of one direction."""
    shape = task.lowering.network.tensors[y].shape
    return task.move(y, np.arange(math.prod(shape)).reshape(shape)[place : place + 1])


def _joined(task: Task, parts: Sequence[int], axis: int) -> int:
    if len(parts) == 1:
        return parts[0]
    tensor = task.lowering.network.tensors[parts[0]]
    shape = (*tensor.shape[:axis], tensor.shape[axis] * len(parts), *tensor.shape[axis + 1 :])
    return task.add("join", tuple(parts), shape, tensor.scale, axis=axis)


def _in_one_scale(task: Task, parts: Sequence[int]) -> list[int]:
    scales = [task.input_scale(part) for part in parts]
    if len(set(scales)) == 1:
        return list(parts)
    scale = scale_of(*task.lowering.ranges[key_of(task.function.results[1])])
    return [_rescaled(task, part, scale) for part in parts]


def _rescaled(task: Task, tensor: int, scale: Scale) -> int:
    given = task.lowering.network.tensors[tensor]
    if given.scale == scale:
        return tensor
    multiplier, shift = _factor(given.scale.scale / scale.scale)
    return task.add("sum", (tensor,), given.shape, scale, multipliers=[multiplier], shift=shift, low=LOW, high=HIGH)


def _factor(value: float) -> tuple[int, int]:
    try:
        return fixed_point(value)
    except ValueError as error:
        raise NotExportableError(str(error)) from error


def _direction(task: Task, d: _Direction) -> tuple[int, list[int]]:
    """Add a node; its results, and the last cell state where something reads it."""
    network, is_lstm = task.lowering.network, task.function.name == "LSTM"
    states = _states(task, d)
    first = states.get("c" if is_lstm else "h")
    start = (0, 1) if first is None else _factor(task.input_scale(first).scale * 2**STATE_BITS)
    result = _factor(2.0 ** -(2 * STATE_BITS if is_lstm else STATE_BITS) / d.scale.scale)
    cells = _cells(task)
    last = _factor(2.0**-STATE_BITS / network.tensors[cells[0]].scale.scale) if cells else None
    shape = (*task.shape[:2], task.function.inputs[1].shape[-1])
    settings = _weights(task, d) | {"start": start, "result": result, "last": last, "low": LOW, "high": HIGH}
    y = task.add(
        "recurrent", (d.x, *states.values()), shape, d.scale,
        cell=task.function.name, states=tuple(states), reverse=bool(d.number), others=tuple(cells), **settings,
    )  # fmt: skip
    return y, cells


def _states(task: Task, d: _Direction) -> dict[str, int]:
    """Return the states before the first step that are not zeros; h in the scale of the results."""
    states: dict[str, int] = {}
    for name, index in zip("hc" if task.function.name == "LSTM" else "h", (1, 2), strict=False):
        if not _is_zero(task, index):
            state = _state(task, index, d)
            states[name] = _rescaled(task, state, d.scale) if name == "h" else state
    return states


def _cells(task: Task) -> list[int]:
    """Return a tensor for the last cell state, where something reads it."""
    results = task.function.results
    if len(results) < 3 or not task.lowering.readers[key_of(results[2])]:
        return []
    scale = scale_of(*task.lowering.ranges[key_of(results[2])])
    return [task.lowering.network.tensor((1, *results[2].shape[2:]), scale)]


def _state(task: Task, index: int, d: _Direction) -> int:
    shape = task.function.inputs[index].shape
    return task.move(task.tensor(index), np.arange(math.prod(shape)).reshape(shape)[d.layer, d.number])


def _weights(task: Task, d: _Direction) -> dict[str, Any]:
    """Return weights and biases in integers, whose products with x and with the state have one scale for each row."""
    first = 3 if task.function.name == "LSTM" else 2
    weight = task.constant(first if d.layer == 0 else first + 1)
    assert weight is not None
    weight = (weight if d.layer == 0 else weight[d.layer - 1])[d.number]
    gates, hidden = GATES[task.function.name], task.function.inputs[1].shape[-1]
    weight = weight.reshape(gates, hidden, -1)
    given = task.constant(first + 2)
    bias = np.zeros((4, hidden)) if given is None else given[d.layer, d.number]
    n_inputs = weight.shape[-1] - hidden
    columns = np.repeat([task.input_scale(d.x).scale, d.scale.scale], [n_inputs, hidden])
    products = weight * columns
    scales = np.abs(products).max(axis=2) / HIGH
    owners = [*range(gates), *([CANDIDATE] if gates < len(bias) else [])]  # the gate of each bias
    for gate, offsets in zip(owners, bias, strict=True):
        scales[gate] = np.maximum(scales[gate], np.abs(offsets) / _BIAS)
    scales = np.where(scales > 0, scales, 1.0)
    integers = round_half_away(products / scales[:, :, None]).astype(np.int64)
    offsets = round_half_away(bias / scales[owners]).astype(np.int64)
    _require_sums(integers, offsets)
    return {"weight": integers, "bias": offsets} | _multipliers(scales)


def _require_sums(weight: Array, bias: Array) -> None:
    largest = int((np.abs(weight).sum(axis=2).max() * 255) + np.abs(bias).max())
    if largest >= ACCUMULATOR:
        raise NotExportableError(f"sums must stay below 2 ** 31, got {largest}")


def _multipliers(scales: Array) -> dict[str, Any]:
    """Return the factors from inner products to what goes into the gates, with one shift."""
    factors = scales * 2.0**INPUT_BITS
    factors[CANDIDATE] *= 2
    _, shift = _factor(float(factors.max()))
    if shift < _LEAST_SHIFT:
        raise NotExportableError(f"what goes into a gate must stay below 2 ** 33, got a weight of scale {scales.max():g}")
    return {"multiplier": np.minimum(round_half_away(factors * 2.0**shift), 2**31 - 1).astype(np.int64), "shift": shift}
