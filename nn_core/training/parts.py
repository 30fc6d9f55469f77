"""Checkpoints in parts: each rank writes what it keeps of states and parameters, and rank 0 the rest, with the digests.

The file of rank 0 has the usual name of a checkpoint, and names the parts that belong to it. It is written when all of them
are there, so that a checkpoint is whole whenever its file is there. The names of parts end with a token, which is another one
in each save, and their digest.
"""

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from nn_core.errors import DiskFullError, FileFormatError, one_line
from nn_core.logger import logger
from nn_core.training.checkpoint import FORMAT, FORMAT_OF_PARTS, PARTS, Snapshot, read_snapshot, write_snapshot
from nn_core.typing import Array

#: Ends of the names of files by which a rank says that it could not write its part.
_FULL: Final = "full"
_FAILED: Final = "failed"
_PAUSE_S: Final = 0.02
#: Length of what rank 0 tells the others about a save.
_MOST_BYTES: Final = 512

#: Keys that lead to an array in the states of a snapshot.
Place: TypeAlias = tuple[str, ...]


class Row(NamedTuple):
    """A part of an array in the states of a snapshot.

    Attributes:
        place: Where the array is.
        shape: Its shape.
        start: The first element, in C order.
        values: The elements.
    """

    place: Place
    shape: tuple[int, ...]
    start: int
    values: Array


class Saving(NamedTuple):
    """One save of all ranks.

    Attributes:
        paths: The files of rank 0, which get the same content.
        token: Tells the parts of this save from others.
        size: Number of ranks.
        is_asynchronous: Whether training goes on meanwhile.
    """

    paths: tuple[Path, ...]
    token: str
    size: int
    is_asynchronous: bool

    def stem(self, path: Path, rank: int) -> str:
        """Return the name of a part without its digest."""
        return f"{path.stem}.part-{rank}-of-{self.size}-{self.token}"


def write_part(path: Path, rank: int, saving: Saving, rows: Iterable[Row]) -> None:
    """Write the part of a rank.

    Args:
        path: The file of rank 0.
        rank: The rank.
        saving: The save.
        rows: What it has.

    Raises:
        OSError: when it could not be written; rank 0 finds a file that says so.
    """
    state = [row._asdict() for row in rows]
    stem = saving.stem(path, rank)
    try:
        target = path.with_name(f"{stem}-{_digest(state)}{path.suffix}")
        write_snapshot(target, Snapshot({PARTS: state}, {}, {"format": FORMAT}))
    except BaseException as error:
        kind = _FULL if isinstance(error, DiskFullError) else _FAILED
        with suppress(OSError):
            path.with_name(f"{stem}-{kind}{path.suffix}").touch()
        raise


def write_whole(path: Path, snapshot: Snapshot, saving: Saving, timeout_s: float) -> None:
    """Write the file of rank 0 when the parts of all ranks are there, and remove those of an earlier file of its name.

    Args:
        path: The file.
        snapshot: What is in no part.
        saving: The save.
        timeout_s: Longest time to wait for parts; 0: any time.

    Raises:
        DiskFullError: when a rank had no room for its part.
        OSError: when a rank could not write its part, or did not in time.
    """
    names = _awaited(path, saving, timeout_s)
    write_snapshot(path, replace(snapshot, about={**snapshot.about, "format": FORMAT_OF_PARTS, PARTS: names}))
    remove_parts(path, keep=names)


def _awaited(path: Path, saving: Saving, timeout_s: float) -> list[str]:
    """Return the names of the parts, by rank."""
    start = time.monotonic()
    while True:
        found = [_part_of(path, rank, saving) for rank in range(saving.size)]
        names = [name for name in found if name is not None]
        if len(names) == saving.size:
            return names
        if timeout_s and time.monotonic() - start > timeout_s:
            missing = ", ".join(str(rank) for rank, name in enumerate(found) if name is None)
            raise TimeoutError(f"{path}: all ranks must write their parts within {timeout_s:g} s, got none of rank {missing}")
        time.sleep(_PAUSE_S)


def _part_of(path: Path, rank: int, saving: Saving) -> str | None:
    stem = saving.stem(path, rank)
    for kind in (_FULL, _FAILED):
        mark = path.with_name(f"{stem}-{kind}{path.suffix}")
        if mark.exists():
            mark.unlink()
            text = f"{path}: rank {rank} must be able to write its part, got a failure, which it has logged"
            raise DiskFullError(text, str(path)) if kind == _FULL else OSError(text)
    return next((part.name for part in path.parent.glob(f"{stem}-*{path.suffix}")), None)


def remove_parts(path: Path, keep: Collection[str] = ()) -> None:
    """Remove the parts of a file."""
    for part in parts_of(path):
        if part.name not in keep:
            part.unlink(missing_ok=True)


def parts_of(path: Path) -> list[Path]:
    """Return the parts beside a file, those that belong to it and those that were left behind."""
    return sorted(path.parent.glob(f"{path.stem}.part-*-of-*-*{path.suffix}"))


def remove_orphans(folder: Path, extension: str) -> None:
    """Remove parts whose checkpoint was never written."""
    for part in folder.glob(f"*.part-*-of-*-*{extension}"):
        stem = part.name.partition(".part-")[0]
        if not (folder / f"{stem}{extension}").exists():
            part.unlink(missing_ok=True)


def without(snapshot: Snapshot, places: Iterable[Place]) -> Snapshot:
    """Return a snapshot without the arrays at some places, which parts have; changes its dictionaries."""
    for place in places:
        _parent(snapshot.states, place).pop(place[-1], None)
    return snapshot


def joined(path: Path, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot of a file with what its parts have, if it names some.

    Raises:
        FileFormatError: when a part is missing, damaged or another one, or has not all of an array.
    """
    names = snapshot.about.get(PARTS)
    if names is None:
        return snapshot
    arrays: dict[Place, Array] = {}
    missing: dict[Place, int] = {}
    try:
        for name in names:
            for row in _rows_of(path.with_name(name)):
                if row.place not in arrays:
                    arrays[row.place] = np.empty(row.shape, row.values.dtype)
                    missing[row.place] = arrays[row.place].size
                arrays[row.place].reshape(-1)[row.start : row.start + row.values.size] = row.values.reshape(-1)
                missing[row.place] -= row.values.size
        for place, array in arrays.items():
            _parent(snapshot.states, place)[place[-1]] = array
    except (LookupError, TypeError, ValueError, OSError) as error:
        raise FileFormatError(f"{path}: all parts must be there, got: {one_line(error)}") from error
    lacking = ["/".join(place) for place, count in missing.items() if count]
    if lacking:
        raise FileFormatError(f"{path}: the parts must have all elements, got fewer or more of {lacking[0]}")
    return snapshot


def _rows_of(path: Path) -> list[Row]:
    state = read_snapshot(path).states[PARTS]
    if path.stem.rpartition("-")[2] != _digest(state):
        raise FileFormatError(f"{path}: a part must have the digest in its name, got another one")
    return [Row(tuple(row["place"]), tuple(row["shape"]), row["start"], row["values"]) for row in state]


def _digest(state: Sequence[Mapping[str, Any]]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for row in state:
        digest.update(f"{list(row['place'])} {list(row['shape'])} {row['start']} {row['values'].dtype}".encode())
        digest.update(np.ascontiguousarray(row["values"]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _parent(states: Any, place: Place) -> Any:
    for key in place[:-1]:
        states = states[key]
    return states


class PartWriter:
    """Writes the parts of a rank, in a thread where training is to go on meanwhile."""

    def __init__(self) -> None:
        self._thread: Thread | None = None

    def write(self, saving: Saving, rank: int, rows: Sequence[Row]) -> None:
        """Write the part of this rank for each of the files; what goes wrong is logged here, and rank 0 raises it."""
        self.wait()
        if not saving.is_asynchronous:
            _write_parts(saving, rank, rows)
            return
        own = [row._replace(values=np.array(row.values)) for row in rows]
        # Not a daemon: the end of the program waits for the file.
        self._thread = Thread(target=_write_parts, args=(saving, rank, own), name="nn_core.parts")
        self._thread.start()

    def wait(self) -> None:
        """Wait until the last part is written."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None


def _write_parts(saving: Saving, rank: int, rows: Sequence[Row]) -> None:
    for path in saving.paths:
        try:
            write_part(path, rank, saving, rows)
        except Exception as error:
            logger.error("Checkpoint: rank %d could not write its part of %s: %s", rank, path, error)


def as_row(saving: Saving | None) -> Array:
    """Return a save as numbers that rank 0 sends to the others, which have None."""
    if saving is None:
        return np.zeros((1, _MOST_BYTES), np.uint8)
    text = "\t".join([saving.token, str(int(saving.is_asynchronous)), *(path.name for path in saving.paths)]).encode()
    row = np.zeros((1, _MOST_BYTES), np.uint8)
    row[0, : len(text)] = np.frombuffer(text, np.uint8)
    return row


def of_row(row: Array, folder: Path, size: int) -> Saving:
    """Return the save of which `as_row` made a row."""
    token, flag, *names = row.tobytes().rstrip(b"\0").decode().split("\t")
    return Saving(tuple(folder / name for name in names), token, size, flag == "1")
