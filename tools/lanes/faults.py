"""Let saving fail anywhere: the disk is full, the process is killed, or the folder becomes read-only, at a random moment.

    python -m tools.lanes.faults --count 500 --seed 0

Afterwards the file is the old or the new one as a whole, nothing is left beside it that the next save does not remove, and
no file is left open. A full disk is played by the limit of the system on the size of files.
"""

import gc
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
import numpy as np

from nn_core.errors import NNCoreError
from nn_core.files import Entry, read_entries, write_entries

from .reliability import record, report_option

EXTENSIONS = (".h5", ".npz", ".safetensors")
_NOBODY = 65534


def _entries(value: float) -> dict[str, Entry]:
    return {f"layer{number}/w": Entry(np.full(3000, value, np.float32), {"need_grad": True}) for number in range(4)}


def _mean(path: Path) -> float:
    values = [entry.values.mean() for entry in read_entries(path, path.suffix).values()]
    if len(values) != 4 or len(set(values)) != 1:
        raise AssertionError(f"the arrays must be of one save, got means {values}")
    return float(values[0])


@contextmanager
def _room(n_bytes: int) -> Iterator[None]:
    """Files cannot become longer than so many bytes inside the block; Python ignores the signal and gets an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _n_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def _fill_disk(path: Path, rng: np.random.Generator) -> str:
    """Save where there is not enough room; what is wrong afterwards."""
    n_open, room = _n_open(), int(rng.integers(path.stat().st_size))
    try:
        with _room(room):
            write_entries(path, _entries(1), path.suffix)
    except (OSError, NNCoreError):
        pass
    else:
        return f"saving with room for {room} bytes has succeeded"
    gc.collect()
    if _n_open() != n_open:
        return f"with room for {room} bytes a file was left open"
    if (mean := _mean(path)) != 0:
        return f"with room for {room} bytes the file has become another, with {mean}"
    return "" if len(list(path.parent.iterdir())) == 1 else f"with room for {room} bytes something was left beside the file"


def _counting(limit: int, act: Callable[[], None]) -> tuple[Callable[[FrameType, str, object], None], list[int]]:
    """Return a profile function that counts calls, and acts at one of them."""
    count = [0]

    def step(frame: FrameType, event: str, arg: object) -> None:
        if event in ("call", "c_call"):
            count[0] += 1
            if count[0] == limit:
                act()

    return step, count


def _in_child(path: Path, rng: np.random.Generator, act: Callable[[], None]) -> tuple[int, int]:
    """Save in a child that acts at a random call; the number of the call, and the status of the child."""
    step, count = _counting(0, act)
    sys.setprofile(step)
    write_entries(path, _entries(0), path.suffix)
    sys.setprofile(None)
    at = int(rng.integers(1, count[0]))
    _give_away(path)
    child = os.fork()
    if child == 0:
        status = 3
        try:
            if os.getuid() == 0:
                os.setuid(_NOBODY)
            sys.setprofile(_counting(at, act)[0])
            write_entries(path, _entries(1), path.suffix)
            status = 0
        except OSError:
            status = 0
        finally:
            os._exit(status)
    return at, os.waitpid(child, 0)[1]


def _give_away(path: Path) -> None:
    """Make the child the owner: permissions mean nothing to the administrator."""
    if os.getuid() == 0:
        for owned in (path.parent, path):
            os.chown(owned, _NOBODY, _NOBODY)


def _judged(path: Path, what: str) -> str:
    """Return what is wrong after a save that was disturbed, and after the next one."""
    if _mean(path) not in (0, 1):
        return f"{what}: the file is neither the old nor the new one"
    write_entries(path, _entries(2), path.suffix)
    left = sorted(found.name for found in path.parent.iterdir() if found != path)
    return f"{what}: the next save has left {left}" if left or _mean(path) != 2 else ""


def _kill(path: Path, rng: np.random.Generator) -> str:
    """Save in a child that is killed at a random call; what is wrong afterwards."""
    at, status = _in_child(path, rng, lambda: os.kill(os.getpid(), signal.SIGKILL))
    if not os.WIFSIGNALED(status) and os.waitstatus_to_exitcode(status):
        return f"the child to be killed at call {at} has failed by itself"
    return _judged(path, f"killed at call {at}")


def _read_only(path: Path, rng: np.random.Generator) -> str:
    """Save in a child whose folder becomes read-only at a random call; what is wrong afterwards."""
    at, status = _in_child(path, rng, lambda: path.parent.chmod(0o555))
    path.parent.chmod(0o755)
    if status:
        return f"read-only at call {at}: the child must save or raise an OSError, got status {status}"
    return _judged(path, f"read-only at call {at}")


FAULTS: dict[str, Callable[[Path, np.random.Generator], str]] = {
    "full disk": _fill_disk,
    "kill": _kill,
    "read-only folder": _read_only,
}


def check(fault: str, extension: str, count: int, seed: int) -> Iterator[str]:
    """Let saving fail `count` times; texts of what is wrong afterwards."""
    for number in range(count):
        rng = np.random.default_rng([seed, number, *fault.encode(), *extension.encode()])
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{extension}"
            write_entries(path, _entries(0), extension)
            if text := FAULTS[fault](path, rng):
                yield f"{fault}, {extension}, seed {seed}, number {number}: {text}"


@click.command()
@click.option("--count", default=20, help="Faults of each kind for each format.")
@click.option("--seed", default=0)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Let saving fail; the exit status is 1 if there is a finding."""
    n_findings = 0
    for fault in FAULTS:
        for extension in EXTENSIONS:
            findings = list(check(fault, extension, count, seed))
            n_findings += len(findings)
            for text in findings:
                click.echo(f"--- {text}")
            record(report, "faults", f"{fault}, {extension}", count=count, findings=len(findings), seed=seed)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.faults")
