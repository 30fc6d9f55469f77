"""Messages of a training command to its observers: a status, the time that it took, names of its results.

The status is a record in memory, and in ``status.json`` of the folder that `configure_status` names. NNabla has these
functions as hooks of its Console, which is no part of it; here each does its work alone.
"""

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from nn_core.data.images import IMAGE_EXTENSIONS
from nn_core.errors import ArgumentError, FileFormatError, one_line
from nn_core.files import atomic_writer, read_file
from nn_core.utils.data_source_loader import load_image

_VERSION: Final = 1
_FILE: Final = "status.json"


@dataclass
class _Watched:
    values: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    started_s: float | None = None
    savers: list[Callable[[], object]] = field(default_factory=list)


_WATCHED: Final = _Watched()


def configure_status(folder: str | os.PathLike[str] | None) -> None:
    """Start with an empty status, kept in ``status.json`` of a folder; None: in memory only."""
    _WATCHED.values.clear()
    _WATCHED.started_s = None
    _WATCHED.folder = None if folder is None else Path(folder)


def get_status() -> dict[str, Any]:
    """Return a copy of the status."""
    return dict(_WATCHED.values)


def update_status(state: str | Mapping[str, Any] | None = None, start: bool = False, start_time: float | None = None) -> None:
    """Change the status.

    Args:
        state: Activity of the program, in a word, which becomes "state"; or several values by name.
        start: Measure times from now on.
        start_time: Measure times from this moment on, in seconds since 1970; "start_time" of the status.

    Example:
        >>> configure_status(None)
        >>> update_status({"state": "training", "best": 0.25}, start_time=100.0)
        >>> get_status()
        {'state': 'training', 'best': 0.25, 'start_time': 100.0}
    """
    if state is not None:
        _WATCHED.values.update({"state": state} if isinstance(state, str) else state)
    if start or start_time is not None:
        _WATCHED.started_s = time.time() if start_time is None else float(start_time)
        _WATCHED.values["start_time"] = _WATCHED.started_s
    _write()


def update_progress(text: str) -> None:
    """Put a line of text into the status, as "progress"."""
    update_status({"progress": text})


def update_forward_time() -> None:
    """Put the seconds since the start into the status, as "forward_time"."""
    update_status({"forward_time": _elapsed_s()})


def update_time_train(prediction: float | None = None) -> None:
    """Put the seconds since the start into the status, as "train_time", and those expected in all, as "predicted_time"."""
    values = {"train_time": _elapsed_s()}
    update_status(values if prediction is None else {**values, "predicted_time": float(prediction)})


def process_evaluation_result(outdir: str | os.PathLike[str], filename: str) -> None:
    """Put the path of a result of an evaluation into the status, as "evaluation".

    Raises:
        ArgumentError: when there is no such file.
    """
    path = Path(outdir) / filename
    if not path.is_file():
        raise ArgumentError(f"process_evaluation_result: filename must be a file in {outdir}, got {filename}")
    update_status({"evaluation": str(path)})


def get_best_from_status(args: Any) -> float | None:
    """Return the value "best" that a run has left in ``status.json`` of the folder ``args.outdir``; None when there is none.

    Raises:
        FileFormatError: when the file is damaged.
    """
    path = Path(args.outdir) / _FILE
    if not path.exists():
        return None
    try:
        best = json.loads(read_file(path)).get("best")
        return None if best is None else float(best)
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise FileFormatError(f"{path}: the file must hold a status, got: {one_line(error)}") from error


def add_train_command_arg(subparser: argparse.ArgumentParser) -> None:
    """Let a command take ``--time-limit SECONDS``, which `get_timelimit` and `check_training_time` read."""
    subparser.add_argument(
        "--time-limit", type=float, default=None, metavar="SECONDS", help="stop before an epoch that would end later"
    )


def get_timelimit(args: Any) -> float:
    """Return the seconds that training may take, from ``args.time_limit``; infinity when there is no limit.

    Raises:
        ArgumentError: when the limit is not a positive number.
    """
    limit = getattr(args, "time_limit", None)
    if limit is None:
        return math.inf
    if not limit > 0:
        raise ArgumentError(f"get_timelimit: time_limit must be a positive number of seconds, got {limit}")
    return float(limit)


def check_training_time(args: Any, config: Any, timeinfo: Any, epoch: int, last_epoch: int) -> bool:
    """Return whether there is time for another epoch, as long as those so far were on average.

    Args:
        args: Arguments of the command; see `get_timelimit`.
        config: Without effect; for programs that give it.
        timeinfo: An object with `past_time`, the seconds so far.
        epoch: Number of epochs that this run has finished.
        last_epoch: Number of epochs in all; after it there is nothing to wait for.
    """
    if epoch >= last_epoch or epoch < 1:
        return True
    return bool(timeinfo.past_time * (epoch + 1) / epoch <= get_timelimit(args))


def on_snapshot(save: Callable[[], object]) -> Callable[[], None]:
    """Let `save_train_snapshot` call a function; returns one that ends this."""
    _WATCHED.savers.append(save)
    return lambda: _WATCHED.savers.remove(save)


def save_train_snapshot() -> None:
    """Call every function that was given to `on_snapshot`."""
    for save in list(_WATCHED.savers):
        save()


def get_callback_version() -> int:
    """Return the number of this interface."""
    return _VERSION


def alternative_cli(args: Any) -> bool:
    """Return whether another command line has done what `args` ask for: never, since nn_core has one."""
    return False


def get_load_image_func(ext: str) -> Callable[..., np.ndarray[Any, Any]]:
    """Return the function that loads images with an extension: ``function(file, shape=None, normalize=False)``.

    Raises:
        ArgumentError: when it is not that of an image.
    """
    if ext.lower() not in IMAGE_EXTENSIONS:
        raise ArgumentError(f"get_load_image_func: ext must be one of {', '.join(IMAGE_EXTENSIONS)}, got {ext!r}")
    return load_image


def result_base(base: str, suffix: str, outdir: str | os.PathLike[str]) -> str:
    """Return the path of a result without its extension.

    Example:
        >>> result_base("results", "_best", "out")
        'out/results_best'
    """
    return str(Path(outdir) / f"{base}{suffix}")


def _elapsed_s() -> float:
    return 0.0 if _WATCHED.started_s is None else max(time.time() - _WATCHED.started_s, 0.0)


def _write() -> None:
    if _WATCHED.folder is None:
        return
    _WATCHED.folder.mkdir(parents=True, exist_ok=True)
    content = json.dumps(_WATCHED.values).encode()  # before the file is opened: what JSON cannot say leaves it as it is
    with atomic_writer(_WATCHED.folder / _FILE) as file:
        file.write(content)
