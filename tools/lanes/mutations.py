"""Change bytes of files and load them: each gives an error of nn_core, or exactly what was saved.

    python -m tools.lanes.mutations --count 10000 --seed 0

The error is a FileFormatError; of networks it may be another one of nn_core. It names the file, and is short. The files are
loaded in a process of their own, with a limit on its memory, so that a crash or an endless loop of a library, or a claim of
10^15 elements, is a finding too, as is a file that is touched outside of the folder. Tables have no checksums: any result
counts that is not an error of another kind; `damaged_networks` says what counts for networks, and `changed_values` changes
values where checksums stay right.
"""

import io
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from nn_core.data.file_cache import CacheDataSource, write_cache
from nn_core.data.source import SimpleDataSource
from nn_core.data.table import CsvDataSource
from nn_core.errors import FileFormatError, NNCoreError
from nn_core.files import Entry, read_entries, write_entries

from . import changed_values, damaged_networks
from .contents import blamed
from .outside import Outside
from .reliability import record, report_option

MEMORY_LIMIT_BYTES = 512 << 20
#: Seconds of the processor, of the process that loads and of its children: a busy machine makes no finding.
TIME_LIMIT_S = 5.0
_BATCH = 250
_HANG_S, _LOST_S = 30.0, 900.0


@dataclass(frozen=True)
class Finding:
    """A mutation that was loaded as something else, or failed otherwise than it should."""

    kind: str
    number: int
    text: str


def entries() -> dict[str, Entry]:
    """Return a small network: several dtypes, shapes and groups."""
    rng = np.random.default_rng(7)
    return {
        "conv/W": Entry(rng.normal(size=(4, 3, 3, 3)).astype(np.float32), {"need_grad": True, "index": 0}),
        "conv/b": Entry(rng.normal(size=4).astype(np.float32), {"need_grad": True, "index": 1}),
        "bn/mean": Entry(rng.normal(size=(1, 4)), {"need_grad": False, "index": 2}),
        "bn/t": Entry(np.array(12, np.int64), {"need_grad": False, "index": 3}),
        "empty": Entry(np.zeros((0, 3), np.float16), {"need_grad": False, "index": 4}),
    }


def _comparable(found: dict[str, Entry]) -> Any:
    return {
        name: (entry.values.dtype.name, entry.values.shape, entry.values.tobytes(), sorted(entry.attributes.items()))
        for name, entry in found.items()
    }


def _parameters(extension: str) -> tuple[Callable[[Path], None], Callable[[Path], Any]]:
    def save(folder: Path) -> None:
        write_entries(folder / f"file{extension}", entries(), extension)

    return save, lambda folder: _comparable(read_entries(folder / f"file{extension}", extension))


def _copy_torch_file(folder: Path) -> None:
    """Put a file there that PyTorch has written (tools/release/save_torch_files.py)."""
    content = Path(__file__).parents[2] / "tests" / "data" / "torch" / "odd.pth"
    (folder / "file.pth").write_bytes(content.read_bytes())


def _samples(source: Any) -> Any:
    return [[(a.dtype.name, a.shape, a.tobytes()) for a in source.next()] for _ in range(source.size)]


def _save_cache(folder: Path) -> None:
    write_cache(SimpleDataSource(lambda i: (np.full(2, i), np.array([i], np.uint8)), 25), folder, samples_per_file=10)


def _save_table(folder: Path) -> None:
    np.save(folder / "a.npy", np.arange(6.0).reshape(2, 3))
    (folder / "b.csv").write_text("1,2\n3,4\n")
    (folder / "t.csv").write_text("x__0:width,x__1,image,y\n" + "1,2.5,a.npy,7\n3,4,b.csv,8\n" * 4)


def _load_table(folder: Path) -> Any:
    _samples(CsvDataSource(folder / "t.csv"))  # there is nothing to compare with: numbers are numbers
    return None


#: How files of each kind are saved into a folder and loaded from it.
KINDS: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    ".h5": _parameters(".h5"),
    ".npz": _parameters(".npz"),
    ".safetensors": _parameters(".safetensors"),
    ".pth": (_copy_torch_file, lambda folder: _comparable(read_entries(folder / "file.pth", ".pth"))),
    "cache": (_save_cache, lambda folder: _samples(CacheDataSource(folder))),
    "table": (_save_table, _load_table),
    **damaged_networks.KINDS,
    "values of a cache": (_save_cache, lambda folder: _ignored(_samples(CacheDataSource(folder)))),
    "values of a table": (_save_table, _load_table),
    **{kind: (save, load) for kind, (save, load, _) in changed_values.KINDS.items()},
}
#: How a file is changed where its checksums are to be right: any result counts that is no error of another kind.
CHANGES: dict[str, changed_values.Change] = {
    "values of a cache": changed_values.change_cache,
    "values of a table": changed_values.change_table,
    **{kind: change for kind, (_, _, change) in changed_values.KINDS.items()},
}


def _ignored(found: Any) -> None:
    """Leave out what there is nothing to compare with."""


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """`content` with a bit flipped, bytes replaced, a part cut out, doubled, zeroed or moved, or the end cut off."""
    data = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 5]))):
        start, length = int(rng.integers(len(data) or 1)), int(rng.choice([1, 2, 4, 8, 64]))
        part = data[start : start + length]
        match int(rng.integers(8)):
            case 0 | 1 | 2 if data:
                data[start] ^= 1 << int(rng.integers(8))
            case 3:
                data[start : start + length] = rng.bytes(len(part))
            case 4:
                del data[start : start + length]
            case 5:
                data[start:start] = part
            case 6:
                data[start : start + length] = bytes([int(rng.choice([0, 255]))]) * len(part)
            case _:
                del data[start if rng.integers(2) else max(len(data) - length, 0) :]
    return bytes(data)


def check(
    kind: str, numbers: range, seed: int, report: Callable[[int, str], None], outside: Outside | None = None
) -> Counter[str]:
    """Load mutations of one kind; `report(number, text)` gets what was found, also by `outside`."""
    save, load = KINDS[kind]
    errors = NNCoreError if kind in damaged_networks.KINDS or kind in CHANGES else FileFormatError
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save(folder)
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        contents = [path.read_bytes() for path in paths]
        expected = load(folder)
        for number in numbers:
            report(number, "")  # so that a crash can be told from what came before it
            rng = np.random.default_rng([seed, number])
            if kind in CHANGES:
                CHANGES[kind](folder, rng)
                which = int(np.argmax([path.read_bytes() != content for path, content in zip(paths, contents, strict=True)]))
            else:
                which = int(rng.integers(len(paths)))
                change = damaged_networks.CHANGES.get(kind, mutated) if number % 2 else mutated
                paths[which].write_bytes(change(contents[which], rng))
            with nullcontext() if outside is None else outside.of(folder):
                outcome, text = _outcome(lambda: load(folder), expected, errors, [path.name for path in paths] + [folder.name])
            if outside is not None and outside.touched:
                outcome, text = "outside", f"touched {', '.join(outside.touched)}"
            outcomes[outcome] += 1
            if text:
                report(number, f"{paths[which].name}: {text}")
            for path, content in zip(paths, contents, strict=True):
                path.write_bytes(content)
    return outcomes


def _outcome(load: Callable[[], Any], expected: Any, errors: type[NNCoreError], names: list[str]) -> tuple[str, str]:
    start = sum(os.times()[:4])
    try:
        outcome, text = ("equal", "") if load() == expected else ("other", "loaded with other contents")
    except errors as error:
        if "got no end" in str(error):
            return "ended after 20 s", ""  # the time of a trial, see SECURITY.md
        outcome, text = "refused", blamed(str(error), names)
    except Exception:
        file = io.StringIO()
        traceback.print_exc(file=file)
        outcome, text = "other", file.getvalue()
    if (seconds := sum(os.times()[:4]) - start) > TIME_LIMIT_S:
        return "slow", f"took {seconds:.1f} s of the processor"
    return outcome, text


def _work(kind: str, numbers: range, seed: int, pipe: Any) -> None:
    warnings.simplefilter("error")
    resource.setrlimit(resource.RLIMIT_AS, (_size_of_process() + MEMORY_LIMIT_BYTES, resource.RLIM_INFINITY))
    seconds = int(time.process_time() + _BATCH * 0.5 + _HANG_S)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # an endless loop ends here
    pipe.send(check(kind, numbers, seed, lambda number, text: pipe.send((number, text)), Outside()))


def _size_of_process() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def findings(kind: str, count: int, seed: int, outcomes: Counter[str]) -> Iterator[Finding]:
    """Load `count` mutations of a kind in processes of their own; counts what became of them in `outcomes`."""
    context = multiprocessing.get_context("spawn")
    start = 0
    while start < count:
        stop, last = min(start + _BATCH, count), start
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(kind, range(start, stop), seed, theirs))
        process.start()
        theirs.close()
        try:
            while True:
                if not ours.poll(_LOST_S):
                    process.kill()
                message = ours.recv()
                if isinstance(message, Counter):
                    outcomes.update(message)
                    last = stop
                    break
                last = message[0]
                if message[1]:
                    yield Finding(kind, *message)
        except EOFError:
            process.join()
            outcomes["crash"] += 1
            yield Finding(kind, last, f"the process ended with {process.exitcode}")
            last += 1
        process.join()
        start = last


@click.command()
@click.option("--count", default=50, help="Mutations of each kind.")
@click.option("--seed", default=0)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Default: all.")
@report_option
def main(count: int, seed: int, kinds: tuple[str, ...], report: Path | None) -> None:
    """Load mutated files; the exit status is 1 if there is a finding."""
    n_findings = 0
    for kind in kinds or KINDS:
        outcomes: Counter[str] = Counter()
        found = 0
        for finding in findings(kind, count, seed, outcomes):
            found += 1
            click.echo(f"--- {finding.kind}, seed {seed}, number {finding.number}: {finding.text}")
        n_findings += found
        note = ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(outcomes.items()))
        record(report, "files", kind, count=count, findings=found, seed=seed, note=note)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.mutations")
