"""Checkpoints: one file from which training continues as if it had not been interrupted."""

import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

import nn_core
from nn_core import random
from nn_core.context import get_current_context
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.holders import where_parameters_are
from nn_core.engine.runtime.schemas import require_like
from nn_core.errors import ArgumentError, FileFormatError, NNCoreError, one_line
from nn_core.files import Entry, extension_of, naming_file, read_entries, remove_leftovers, write_entries, written_extension
from nn_core.logger import logger
from nn_core.settings import num_threads
from nn_core.training.needed_plugins import hint_of_missing, plugins_behind
from nn_core.training.states import as_text, copied, from_text, is_stateful, pack, set_state_of, state_of, unpack

PathLike: TypeAlias = str | os.PathLike[str]

#: Number of the format; readers refuse larger ones.
FORMAT: Final = 1
#: That of files which name parts (nn_core/training/parts.py).
FORMAT_OF_PARTS: Final = 2
#: Key of the names of the parts in what a checkpoint says about itself.
PARTS: Final = "parts"
#: The entry of plain values.
_TREE: Final = "checkpoint.json"
#: The name of the state of random numbers.
RANDOM: Final = "random"
#: Names under which programs save parameters.
_MODELS: Final = ("parameters", "params", "model")
_NAME: Final = re.compile(r"(?P<prefix>.+)-(?P<number>\d+)(?P<extension>\.[a-z0-9]+)")


@dataclass(frozen=True)
class Snapshot:
    """Everything that a checkpoint holds, in memory.

    Attributes:
        states: The states of the objects, and of random numbers, by name.
        values: The plain values that were saved beside them.
        about: The format, the version of nn_core, the backends, the number of threads, and the plugins that were in use.
    """

    states: Mapping[str, Any]
    values: Mapping[str, Any]
    about: Mapping[str, Any]

    def copy(self) -> "Snapshot":
        """Return a snapshot that further training does not change."""
        return Snapshot(copied(self.states), copied(self.values), self.about)


def take_snapshot(**objects: Any) -> Snapshot:
    """Return the content that `save_checkpoint` would write; its arrays may share memory with the objects."""
    if RANDOM in objects:
        raise ArgumentError("save_checkpoint: random is the name of the state of random numbers, got it for another object")
    for name, item in objects.items():
        _require_parameters(name, item)
    states = {name: state_of(item) for name, item in objects.items() if is_stateful(item)}
    values = {name: item for name, item in objects.items() if name not in states}
    states[RANDOM] = random.get_state()
    return Snapshot(states, values, {**_about(), "plugins": plugins_behind(objects)})


def _require_parameters(name: str, item: object) -> None:
    """Refuse parameters that are none: an empty dictionary under another name is a plain value."""
    found = item.get_parameters() if isinstance(item, Module) else item
    if isinstance(found, Mapping) and not found and (found is not item or name in _MODELS):
        raise ArgumentError(f"save_checkpoint: {name} must have parameters, got none{where_parameters_are()}")


def write_snapshot(path: PathLike, snapshot: Snapshot) -> None:
    """Write a snapshot to a file, which takes the place of an older one only when it is complete; makes its folder."""
    extension = written_extension("save_checkpoint", path, None)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    tree = {
        "about": dict(snapshot.about),
        "states": {name: pack(state, arrays, name) for name, state in snapshot.states.items()},
        "values": {name: pack(value, arrays, name) for name, value in snapshot.values.items()},
    }
    entries = {_TREE: Entry(as_text(tree)), **{name: Entry(values) for name, values in arrays.items()}}
    Path(path).parent.mkdir(parents=True, exist_ok=True)  # hours of training do not fail for a folder
    write_entries(path, entries, extension)


def read_snapshot(path: PathLike) -> Snapshot:
    """Read a file that `write_snapshot` wrote.

    Raises:
        FileFormatError: when the file is damaged, is no checkpoint, or one of a later format.
    """
    entries = read_entries(path, extension_of("load_checkpoint", path, None))
    if _TREE not in entries:
        raise FileFormatError(f"{os.fspath(path)}: a checkpoint must have an entry {_TREE}, got none")
    arrays = {name: entry.values for name, entry in entries.items()}
    try:
        tree = from_text(arrays[_TREE])
        require_like("the entry of plain values", tree, {"about": {"format": 0}, "states": {}, "values": {}})
        about = dict(tree["about"])
        if about["format"] > FORMAT_OF_PARTS:
            raise FileFormatError(
                f"the format must be at most {FORMAT_OF_PARTS}, got {about['format']}; it needs a newer nn_core"
            )
        states, values = unpack(tree["states"], arrays), unpack(tree["values"], arrays)
        require_like("the states and values", [states, values], [{}, {}])  # a marked dictionary stands for something else
    except (NNCoreError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{os.fspath(path)}: {one_line(error)}") from error
    if about.get(PARTS) is None:
        return Snapshot(states, values, about)
    from nn_core.training.parts import joined  # which imports this module

    return joined(Path(path), Snapshot(states, values, about))


def to_bytes(snapshot: Snapshot) -> bytes:
    """Return the content of the file that `write_snapshot` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        write_snapshot(path, snapshot)
        return path.read_bytes()


def from_bytes(content: bytes) -> Snapshot:
    """Return the snapshot of which `to_bytes` made `content`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        path.write_bytes(content)
        return read_snapshot(path)


def restore_snapshot(function: str, snapshot: Snapshot, **objects: Any) -> dict[str, Any]:
    """Give objects the states of a snapshot, all of them or none.

    Args:
        function: Name at the start of messages.
        snapshot: The snapshot.
        **objects: The objects under the names under which they were saved.

    Returns:
        The plain values of the snapshot.
    """
    hint = hint_of_missing(snapshot.about.get("plugins"))
    given = {name for name, item in objects.items() if is_stateful(item)}
    saved = set(snapshot.states) - {RANDOM}
    if given != saved:
        listed = ", ".join([*(f"no {name}" for name in sorted(saved - given)), *sorted(given - saved)])
        text = f"{function}: the objects must be those saved, {', '.join(sorted(saved))}, got {listed}"
        raise ArgumentError(f"{text}\n  {hint}" if hint else text)
    before = take_snapshot(**{name: objects[name] for name in given}).copy()
    if hint:  # whether or not anything of them is missed, this is what to look at first
        logger.warning("%s: %s", function, hint)
    try:
        _restore(function, snapshot, objects)
    except BaseException:
        _restore(function, before, objects)
        raise
    _warn_of_differences(function, snapshot.about)
    return dict(snapshot.values)


@fitted
def save_checkpoint(path: PathLike, **objects: Any) -> None:
    """Write all that training depends on to one file: the objects that are given, and the state of random numbers.

    The file holds named arrays and one entry of JSON, with checksums; no pickle. It is written beside `path`, synced and
    renamed, so that `path` is always a whole checkpoint, whenever the process is killed.

    Args:
        path: Path that ends in .npz, .safetensors or .h5; its folder is made if it does not exist.
        **objects: Parameters (``nn_core.get_parameters(grad_only=False)``, which have the running statistics), modules,
            solvers, data iterators, monitors, and other objects with ``get_state()`` and ``set_state(state)``; a Variable
            stands for its values, or, if it was computed, for the counters of random functions with a seed of their own.
            Numbers, strings, arrays, lists and dictionaries of them are kept as they are.

    Raises:
        ArgumentError: when the extension is another one, or a state holds something else; when a module, or what is called
            parameters, params or model, has no parameters.

    Example:
        >>> from nn_core.training import load_checkpoint, save_checkpoint
        >>> solver = S.Sgd(lr=0.5)
        >>> save_checkpoint("solver.npz", solver=solver, iteration=7)
        >>> solver.set_learning_rate(0.1)
        >>> load_checkpoint("solver.npz", solver=solver)
        {'iteration': 7}
        >>> solver.learning_rate()
        0.5
    """
    write_snapshot(path, take_snapshot(**objects))


@fitted
def load_checkpoint(path: PathLike, **objects: Any) -> dict[str, Any]:
    """Continue where `save_checkpoint` was called: set the states of the objects and of random numbers.

    Build the network, the solver and the iterators as the program did that saved them, then load. Everything is set or,
    when anything does not fit, nothing. Another backend or number of threads than at saving is logged as a warning, since
    sums may then differ in their last bits.

    Args:
        path: The file.
        **objects: The objects, under the names under which they were saved.

    Returns:
        The plain values that were saved, by name.

    Raises:
        FileFormatError: when the file is damaged or is no checkpoint.
        ArgumentError: when the objects are not those that were saved.
        ShapeError: when a parameter has another shape.

    Example:
        >>> from nn_core.training import load_checkpoint, save_checkpoint
        >>> y = PF.affine(nn.Variable((2, 3)), 4)
        >>> solver = S.Adam()
        >>> solver.set_parameters(nn.get_parameters())
        >>> save_checkpoint("state.npz", parameters=nn.get_parameters(), solver=solver, iteration=7)
        >>> load_checkpoint("state.npz", parameters=nn.get_parameters(), solver=solver)
        {'iteration': 7}
    """
    with naming_file(path):
        return restore_snapshot(f"load_checkpoint: {os.fspath(path)}", read_snapshot(path), **objects)


def checkpoint_path(folder: PathLike, iteration: int, prefix: str = "checkpoint", extension: str = ".npz") -> Path:
    """Return the path of the checkpoint after `iteration`, in whose name the number is."""
    return Path(folder) / f"{prefix}-{iteration:08d}{extension}"


def number_of(path: Path) -> int:
    """Return the number in the name of a checkpoint.

    Raises:
        ArgumentError: when it is not the name of one.
    """
    match = _NAME.fullmatch(path.name)
    if match is None:
        raise ArgumentError(f"number_of: the name must be that of a checkpoint, got {path.name!r}")
    return int(match["number"])


@fitted
def checkpoints_in(folder: PathLike, prefix: str = "checkpoint") -> list[Path]:
    """Return the checkpoints in a folder, the largest number first; the times of files mean nothing.

    Example:
        >>> from nn_core.training import checkpoints_in, save_checkpoint
        >>> y = PF.affine(nn.Variable((2, 3)), 4)
        >>> for iteration in (9, 10):
        ...     save_checkpoint(f"checkpoint-{iteration}.npz", parameters=nn.get_parameters())
        >>> [path.name for path in checkpoints_in(".")]
        ['checkpoint-10.npz', 'checkpoint-9.npz']
    """
    found: list[tuple[int, Path]] = []
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in Path(folder).iterdir():
            match = _NAME.fullmatch(path.name)
            if match is not None and match["prefix"] == prefix:
                found.append((int(match["number"]), path))
    return [path for _, path in sorted(found, reverse=True)]


def newest_whole(function: str, folder: PathLike, prefix: str = "checkpoint") -> tuple[Path, Snapshot] | None:
    """Read the newest checkpoint in a folder that reads whole; each damaged one before it is logged as a warning.

    Args:
        function: Start of messages.
        folder: The folder.
        prefix: Start of the names of files.

    Returns:
        The path and the content; None when there is no checkpoint.

    Raises:
        FileFormatError: when there are checkpoints, and none of them reads whole.
    """
    first: Exception | None = None
    paths = checkpoints_in(folder, prefix)
    for path in paths:
        try:
            return path, read_snapshot(path)
        except (FileFormatError, OSError) as error:
            first = first or error
            logger.warning("a checkpoint is passed over, since it does not read whole: %s", error)
    if first is None:
        return None
    raise FileFormatError(
        f"{function}: one of the checkpoints must read whole, got {len(paths)} that do not, the newest with: {first}\n"
        "  hint: to start anew, remove them, or give another folder"
    ) from first


@fitted
def load_newest_checkpoint(folder: PathLike, prefix: str = "checkpoint", **objects: Any) -> dict[str, Any] | None:
    """Continue from the newest checkpoint in `folder` that reads whole.

    Returns:
        The plain values that were saved; None when there is no checkpoint.

    Raises:
        FileFormatError: when there are checkpoints, and none of them reads whole.
        ArgumentError: when the objects are not those that were saved.
        ShapeError: when a parameter has another shape.

    Example:
        >>> from nn_core.training import load_newest_checkpoint, save_checkpoint
        >>> y = PF.affine(nn.Variable((2, 3)), 4)
        >>> for iteration in (100, 200):
        ...     save_checkpoint(f"net-{iteration}.npz", parameters=nn.get_parameters(), iteration=iteration)
        >>> load_newest_checkpoint(".", "net", parameters=nn.get_parameters())
        {'iteration': 200}
    """
    remove_leftovers(Path(folder))
    found = newest_whole(f"load_newest_checkpoint: {os.fspath(folder)}", folder, prefix)
    if found is None:
        return None
    with naming_file(found[0]):
        return restore_snapshot(f"load_checkpoint: {os.fspath(found[0])}", found[1], **objects)


def _restore(function: str, snapshot: Snapshot, objects: Mapping[str, Any]) -> None:
    if RANDOM not in snapshot.states:
        raise ArgumentError(f"{function}: the checkpoint must have the state of random numbers, got none")
    for name, state in snapshot.states.items():
        if name != RANDOM:
            set_state_of(f"{function}: {name}", objects[name], state)
    random.set_state(snapshot.states[RANDOM])


def _about() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "nn_core": nn_core.__version__,
        "backend": ", ".join(get_current_context().backend),
        "threads": num_threads(),
    }


def _warn_of_differences(function: str, about: Mapping[str, Any]) -> None:
    now = _about()
    different = [f"{key} {now[key]}, not {about.get(key)}" for key in ("backend", "threads") if now[key] != about.get(key)]
    if different:
        logger.warning("%s: training continues, not identical to the last bit, with %s", function, " and ".join(different))
