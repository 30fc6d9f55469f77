"""The contents that `save` is given, checked before anything is written."""

import math
from collections.abc import Callable, Collection, Mapping
from numbers import Real
from typing import Any, Final

import nn_core as nn
from nn_core.ext import ArgumentError

_SINGLE: Final = ("global_config", "training_config")
_LISTS: Final = ("networks", "datasets", "optimizers", "monitors", "executors")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_several(value: Any) -> bool:
    return isinstance(value, Collection)  # a text is one name for some keys, and its letters for others


#: Tests of values by key, and how what they must be is said.
_KINDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(("name", "uri", "network", "repeat_evaluation_type"), (lambda value: isinstance(value, str), "a text")),
    "cache_dir": (lambda value: value is None or isinstance(value, str), "a text or None"),
    "default_context": (lambda value: not value or isinstance(value, nn.Context), "a Context"),
    "solver": (lambda value: hasattr(value, "get_parameters"), "a solver"),
    **dict.fromkeys(("max_epoch", "iter_per_epoch", "monitor_interval", "batch_size"), (_is_whole, "a whole number")),
    **dict.fromkeys(("update_interval", "lr_decay_interval", "num_evaluations"), (_is_whole, "a whole number")),
    **dict.fromkeys(("weight_decay", "lr_decay"), (_is_number, "a number")),
    **dict.fromkeys(("shuffle", "save_best"), (_is_whole, "True or False")),
    **dict.fromkeys(("need_back_propagation", "no_image_normalization"), (_is_whole, "True or False")),
    **dict.fromkeys(("outputs", "names"), (lambda value: isinstance(value, Mapping), "a dictionary of Variables")),
    **dict.fromkeys(("variables", "dataset", "data", "output"), (_is_several, "a dictionary or a list")),
    **dict.fromkeys(("data_variables", "generator_variables"), (_is_several, "a dictionary or a list")),
    **dict.fromkeys(("loss_variables", "monitor_variables"), (_is_several, "a dictionary or a list")),
}


class Part(dict[str, Any]):
    """A part of the contents with checked values; what it must have and does not have is an ArgumentError."""

    def __init__(self, kind: str, given: Any) -> None:
        self.kind = kind
        if not isinstance(given, Mapping):
            raise ArgumentError(f"save: {kind} must hold dictionaries, got {given!r}")
        super().__init__(given)
        for key, value in given.items():
            holds, text = _KINDS.get(key, (_is_anything, ""))
            if not holds(value):
                raise ArgumentError(f"save: {key!r} of {kind} must be {text}, got {value!r}")
            if holds is _is_whole:
                self[key] = int(value)

    def __missing__(self, key: str) -> Any:
        raise ArgumentError(f"save: {self.kind} must have {key!r}, got {list(self)}")


def _is_anything(value: Any) -> bool:
    return True


def checked(contents: Any) -> dict[str, Any]:
    """Return contents with their parts as `Part`.

    Raises:
        ArgumentError: when something has an unknown name or is of another kind.
    """
    if not isinstance(contents, Mapping):
        raise ArgumentError(f"save: contents must be a dictionary, got {contents!r}")
    unknown = set(contents) - {*_SINGLE, *_LISTS}
    if unknown:
        raise ArgumentError(
            f"save: contents must have keys of {', '.join((*_SINGLE, *_LISTS))}, got {sorted(map(str, unknown))}"
        )
    made: dict[str, Any] = {key: Part(key, contents[key]) for key in _SINGLE if key in contents}
    for key in (key for key in _LISTS if key in contents):
        given = contents[key]
        if (isinstance(given, (str, Mapping)) and given) or not isinstance(given, Collection):
            raise ArgumentError(f"save: {key} must be a list of dictionaries, got {given!r}")
        made[key] = [Part(key, part) for part in given]
    return made
