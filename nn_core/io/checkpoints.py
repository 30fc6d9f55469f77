"""Parameters in files that hold more than these: checkpoints of a training."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files import Entry

#: The entry of a checkpoint that says what its arrays are.
_TREE: Final = "checkpoint.json"
#: The name under which a program saves parameters, where it saves other models besides.
_PARAMETERS: Final = "parameters"
#: The key of the name of an array in it.
_ARRAY: Final = "__array__"


def parameters_among(file: str, entries: Mapping[str, Entry]) -> Mapping[str, Entry]:
    """Return the parameters in a file, under their own names: all entries, or those of the model that a checkpoint holds.

    Raises:
        ArgumentError: when a checkpoint holds several models, or the file holds the states of a solver.
        FileFormatError: when a checkpoint is damaged.
    """
    if _TREE in entries:
        return _of_checkpoint(file, entries)
    if entries and all(_is_of_states(name, entries) for name in entries):
        raise ArgumentError(
            f"load_parameters: {file} must hold parameters, got the states of a solver\n"
            "  hint: load_states() of the solver reads them"
        )
    return entries


def _is_of_states(name: str, entries: Mapping[str, Entry]) -> bool:
    """Return whether an entry belongs to a parameter whose number of updates is in the file, with the numbers of a solver."""
    count = entries.get(f"{name.rpartition('/')[0]}/t")
    is_count = count is not None and count.values.ndim == 0 and count.values.dtype.kind in "iu"
    return is_count and count is not None and "need_grad" not in count.attributes


def _of_checkpoint(file: str, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    try:
        states = json.loads(entries[_TREE].values.tobytes())["states"]
        models, trained = dict(_models(states)), set(_trained(states))
        said = {key: {"need_grad": key in trained} for names in models.values() for key in names} if trained else {}
        found = {
            model: {key: Entry(entries[name].values, said.get(key, {})) for key, name in names.items()}
            for model, names in models.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(f"{file}: a checkpoint must say what its arrays are, got: {error!r}") from error
    if len(found) > 1 and _PARAMETERS not in found:
        raise ArgumentError(
            f"load_parameters: {file} must hold one model, got {', '.join(found)}\n"
            "  hint: nn_core.training.load_checkpoint() gives each its values"
        )
    return found.get(_PARAMETERS) or next(iter(found.values()), {})


def _trained(states: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the parameters of the solvers."""
    updater = states["trainer"]["updater"] if isinstance(states.get("trainer"), dict) else {}
    for part in (*states.values(), *updater.values()):
        if isinstance(part, dict) and isinstance(part.get("states"), dict) and "numbers" in part:
            yield from part["states"]


def _models(states: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the names of the arrays of each model, by name of the parameter; that of a trainer, or what was saved as
    parameters.
    """
    updater = states["trainer"]["updater"] if isinstance(states.get("trainer"), dict) else {}
    parts = {key.removeprefix("model/"): part for key, part in updater.items() if key.startswith("model/")} or states
    for name, part in parts.items():
        if isinstance(part, dict) and part and all(isinstance(v, dict) and _ARRAY in v for v in part.values()):
            yield name, {key: value[_ARRAY] for key, value in part.items()}
