"""States: what an object is made of while it trains, as plain values that files can hold, and back."""

import copy
import json
import math
from collections.abc import Collection, Mapping
from itertools import accumulate
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np

from nn_core.core.module import Module
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.parameter_sources import parameters_of
from nn_core.engine.graph.seeds import keys_of, require_keys, set_keys
from nn_core.engine.runtime.schemas import require_like, wrong_state
from nn_core.errors import ArgumentError, FileFormatError, NNCoreError, ShapeError, one_line
from nn_core.variable import Variable

Array: TypeAlias = np.ndarray[Any, Any]

_ARRAY: Final = "__array__"
_FLOAT: Final = "__float__"
#: Bytes to whose multiples copies of arrays are aligned: a line of a cache.
_ALIGNMENT: Final = 64


@runtime_checkable
class Stateful(Protocol):
    """An object that can be saved and continued: solvers, data iterators, monitors, trainers, and what programs define.

    A state is made of dictionaries with string keys, lists, strings, numbers, None and NumPy arrays.
    """

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> None: ...


def is_stateful(item: object) -> bool:
    """Return whether `item` is an object with a state, rather than a plain value."""
    return isinstance(item, (Module, Variable)) or _is_parameters(item) or isinstance(item, Stateful)


def state_of(item: Any) -> Any:
    """Return the state of `item`; its arrays may share memory with it.

    Args:
        item: An object with ``get_state()``; parameters by name, or a module; or a Variable: the values of a leaf, the
            counters of the random functions of a graph.
    """
    item = _flat(item)
    if isinstance(item, Variable):
        return _values(item) if item.producer is None else {"random_functions": [list(key) for key in keys_of([item])]}
    if _is_parameters(item):
        return {name: _values(variable) for name, variable in item.items()}
    return item.get_state()


def set_state_of(name: str, item: Any, state: Any) -> None:
    """Give `item` a state that `state_of` returned.

    Args:
        name: Its name in messages.
        item: The object.
        state: Its state.

    Raises:
        ArgumentError: when the state is one of another object: other parameters, another method.
        ShapeError: when a parameter has another shape.
    """
    item = _flat(item)
    if isinstance(item, Variable) or _is_parameters(item):
        require_like(name, state, state_of(item), shapes=False)
    if isinstance(item, Variable):
        if item.producer is None:
            _require_values(name, {name: item}, {name: state})
            _set_values(item, state)
        else:
            _set_random_functions(name, item, state)
    elif _is_parameters(item):
        _require_values(name, item, state)
        for key, variable in item.items():
            _set_values(variable, state[key])
    else:
        item.set_state(state)


def _set_random_functions(name: str, item: Variable, state: Mapping[str, Any]) -> None:
    try:
        require_keys([item], state["random_functions"])
        before = keys_of([item])
        try:
            set_keys([item], state["random_functions"])
        except BaseException:
            set_keys([item], [list(key) for key in before])
            raise
    except (TypeError, LookupError, ValueError, ArithmeticError, AttributeError) as error:
        if isinstance(error, NNCoreError):
            raise
        raise wrong_state(name, error) from error


def _is_parameters(item: object) -> bool:
    """Return whether `item` has Variables by name, or is a scope: dictionaries of Variables and of further ones."""
    members = item.values() if isinstance(item, Mapping) else ()
    return bool(members) and all(isinstance(value, Variable) or _is_parameters(value) for value in members)


def _flat(item: Any) -> Any:
    """Return the parameters of a module or a scope by name; everything else as it is."""
    return parameters_of("save_checkpoint", item) if isinstance(item, Module) or _is_parameters(item) else item


def _values(variable: Variable) -> Array:
    values: Array = variable.data.get_data("r")
    return values


def _set_values(variable: Variable, values: Array) -> None:
    # Whoever has computed from the old values notices, and a parameter keeps its dtype.
    variable.data.copy_from(NdArray.from_numpy_array(values))


def _require_values(name: str, parameters: Mapping[str, Variable], values: Mapping[str, Array]) -> None:
    missing, unknown = sorted(set(parameters) - set(values)), sorted(set(values) - set(parameters))
    if missing or unknown:
        listed = ", ".join([*(f"no {key}" for key in missing), *(f"also {key}" for key in unknown)][:8])
        raise ArgumentError(f"{name}: the state must have the same parameters, got {listed}")
    for key, variable in parameters.items():
        if not isinstance(values[key], np.ndarray):
            raise ArgumentError(f"{name}: {key} must be an array, got {described(values[key])}")
        if tuple(values[key].shape) != variable.shape:
            raise ShapeError(f"{name}: {key} must have the shape {variable.shape}, got {tuple(values[key].shape)}")


def copied(state: Any) -> Any:
    """`state` with arrays of its own, which share one allocation: fresh memory costs less in one piece than in many."""
    found: dict[int, Array] = {}
    _collect(state, found)
    places = [0, *accumulate(-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in found.values())]
    memory = np.empty(places[-1], np.uint8)
    copies: dict[int, Array] = {}
    for (key, array), place in zip(found.items(), places, strict=False):
        own = copies[key] = memory[place : place + array.nbytes].view(array.dtype).reshape(array.shape)
        np.copyto(own, array)
    return _with_copies(state, copies)


def _collect(state: Any, found: dict[int, Array]) -> None:
    """Put the arrays of a state into `found`, each once, by identity."""
    if isinstance(state, np.ndarray) and not state.dtype.hasobject:
        found[id(state)] = state
    elif isinstance(state, Mapping):
        for value in state.values():
            _collect(value, found)
    elif isinstance(state, (list, tuple)):
        for value in state:
            _collect(value, found)


def _with_copies(state: Any, copies: Mapping[int, Array]) -> Any:
    if id(state) in copies:
        return copies[id(state)]
    if isinstance(state, Mapping):
        return {key: _with_copies(value, copies) for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        items = [_with_copies(value, copies) for value in state]
        return items if isinstance(state, list) else tuple(items)
    return copy.deepcopy(state)


def pack(state: Any, arrays: dict[str, Array], path: str = "state") -> Any:
    """Return a tree that JSON can hold, with the arrays of `state` put into `arrays` under names that the tree refers to.

    Raises:
        ArgumentError: when the state has a value that is not plain.
    """
    if isinstance(state, np.ndarray):
        name = path
        while name in arrays:
            name += "_"
        arrays[name] = state
        return {_ARRAY: name}
    if isinstance(state, Mapping):
        if not all(isinstance(key, str) for key in state) or {_ARRAY, _FLOAT} & set(state):
            raise ArgumentError(f"save_checkpoint: the keys of a state must be strings other than {_ARRAY}, got {list(state)}")
        return {key: pack(value, arrays, f"{path}/{key}") for key, value in state.items()}
    if isinstance(state, (list, tuple)):
        return [pack(value, arrays, f"{path}/{index}") for index, value in enumerate(state)]
    return _plain(state, path)


def _plain(value: Any, path: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {_FLOAT: repr(value)}  # JSON has no such numbers
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    must = "save_checkpoint: a state must be made of dictionaries, lists, strings, numbers and arrays"
    raise ArgumentError(f"{must}, got {type(value).__name__} as {path}")


def unpack(tree: Any, arrays: Mapping[str, Array]) -> Any:
    """Return the state of which `pack` made `tree` and `arrays`; tuples have become lists."""
    if isinstance(tree, list):
        return [unpack(value, arrays) for value in tree]
    if isinstance(tree, dict):
        if _ARRAY in tree:
            return arrays[tree[_ARRAY]]
        if _FLOAT in tree:
            return float(tree[_FLOAT])
        return {key: unpack(value, arrays) for key, value in tree.items()}
    return tree


def as_text(tree: Any) -> Array:
    """Return a tree as the bytes of JSON; numbers come back exactly."""
    return np.frombuffer(json.dumps(tree, allow_nan=False).encode(), np.uint8)


def from_text(text: Array) -> Any:
    """Return the tree in the bytes of JSON."""
    try:
        return json.loads(text.tobytes())
    except ValueError as error:
        raise FileFormatError(f"the entry of plain values must be JSON, got: {one_line(error)}") from error


def require_same_names(function: str, own: Collection[str], given: Collection[str]) -> None:
    """Refuse a state of other parameters.

    Raises:
        ArgumentError: when the names differ; it names `function`.
    """
    if set(given) != set(own):
        raise ArgumentError(f"{function}: the state must be of {', '.join(own)}, got {', '.join(given)}")
