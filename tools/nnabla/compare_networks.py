"""Draw networks as the Neural Network Console writes them, run them in NNabla and here, and compare all values.

    python tools/nnabla/compare_networks.py --nnabla-python /path/to/python3.10 [--files 100] [--first 0] [--folder FOLDER]

A file has several networks that share parameters, with loops, and an executor for each (tools/lanes/drawn). Both packages load
it with two numbers of samples: by ``load``, of which the results of the executors are compared, and by NnpLoader, of which all
variables are. Parameters that the file does not give are drawn by NNabla. Printed are the networks with equal values, what
NNabla refuses by reason, and all that differs; the exit status is 1 if something does.
"""

import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.lanes.drawn.files import drawn_file, write

RUNNER = Path(__file__).with_name("run_network_cases.py")
#: Largest difference allowed, relative to the largest magnitude of the array (but to 1 at least).
TOLERANCE = 1e-4
#: A file that takes longer is given up, since NNabla does not come back from some.
_LIMIT_S = 60


@dataclass
class Tally:
    """The outcome for all networks; each counts once, with both numbers of samples and both ways of loading."""

    equal: int = 0
    looped: int = 0
    arrays: int = 0
    kinds: set[str] = field(default_factory=set)
    refused: Counter[str] = field(default_factory=Counter)
    refused_files: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)
    rounding: list[int] = field(default_factory=list)


def run_all(python: str, folder: Path, package: str, seeds: list[int]) -> None:
    """Run all files in an interpreter; after one that ends the process, or takes too long, continue with the next."""
    first, at = 0, folder / f"{package}.at"
    while first < len(seeds):
        at.unlink(missing_ok=True)
        with (folder / f"{package}.log").open("a") as log:
            process = subprocess.Popen([python, str(RUNNER), str(folder), package, str(first)], stdout=log, stderr=log)
            reason = _watched(process, at)
        if process.returncode == 0:
            return
        if not at.exists():
            raise click.ClickException(f"{python} must be able to run {package}, see {folder / f'{package}.log'}")
        first = int(at.read_text()) + 1
        note = {"names": [], "errors": {"process": reason}}
        (folder / f"{seeds[first - 1]}.{package}.json").write_text(json.dumps(note))


def _watched(process: "subprocess.Popen[bytes]", at: Path) -> str:
    """Wait for the end of a process, or end it when it stays at one file; returns why it ended."""
    known, since = "", time.monotonic()
    while process.poll() is None:
        time.sleep(0.05)
        now = at.read_text() if at.exists() else ""
        if now != known:
            known, since = now, time.monotonic()
        elif time.monotonic() - since > _LIMIT_S:
            process.kill()
            process.wait()
            return f"takes more than {_LIMIT_S} s"
    return f"ends the process with {process.returncode}"


def results_of(folder: Path, seed: int, package: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arrays of a file by name, and the errors by way of loading."""
    described = json.loads((folder / f"{seed}.{package}.json").read_text())
    if not described["names"]:
        return {}, described["errors"]
    with np.load(folder / f"{seed}.{package}.npz") as file:
        return {name: file[f"a{n}"] for n, name in enumerate(described["names"])}, described["errors"]


def difference(ours: Any, theirs: Any, is_random: bool) -> str:
    """Return how two arrays differ; "" if they do not."""
    if ours.dtype.kind == "U":
        return "" if ours.tolist() == theirs.tolist() else f"{ours.tolist()} in place of {theirs.tolist()}"
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} in place of {theirs.shape}"
    if is_random or not ours.size:
        return ""
    ours, theirs = ours.astype(float), theirs.astype(float)
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return f"{np.sum(~np.isfinite(ours))} numbers are not finite in place of {np.sum(~np.isfinite(theirs))}"
    scale = max(1.0, float(np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)))
    with np.errstate(invalid="ignore"):
        error = float(np.nanmax(np.where(ours == theirs, 0, np.abs(ours - theirs)), initial=0.0)) / scale
    return f"{error:.1e} of the largest" if error > TOLERANCE else ""


def compare(folder: Path, about: dict[str, Any], tally: Tally) -> None:
    """Hold what nn_core computed for a file against what NNabla did."""
    seed = about["seed"]
    (ours, our_errors), (theirs, their_errors) = (results_of(folder, seed, package) for package in ("nn_core", "nnabla"))
    for reason in their_errors.values():
        general = re.sub(r"'[^']*'|\d+", "...", reason)[-160:]
        tally.refused[general] += 1
        tally.refused_files[general].append(seed)
    failures = {way: reason for way, reason in our_errors.items() if not {way, "process"} & their_errors.keys()}
    tally.wrong += [f"file {seed}, {way}: nn_core fails: {reason}" for way, reason in failures.items()]
    found = {} if "process" in their_errors else _differences(about, ours, theirs, {*our_errors, *their_errors})
    tally.arrays += len(theirs)
    if found:
        _judge(folder, seed, found, (ours, theirs), tally)
    elif not our_errors and not their_errors:
        _count(about, tally)


def _count(about: dict[str, Any], tally: Tally) -> None:
    for more in about["networks"].values():
        tally.equal += 1
        tally.looped += bool(more["loops"])
        tally.kinds.update(more["kinds"])


def _judge(folder: Path, seed: int, found: dict[str, str], both: tuple[dict[str, Any], dict[str, Any]], tally: Tally) -> None:
    """Tell differences that follow from rounding, in functions with jumps or steep ones, from others."""
    (folder / "seeds").write_text(json.dumps([seed]))
    run_all(sys.executable, folder, "perturbed", [seed])
    moved, _ = results_of(folder, seed, "perturbed")
    names = moved.keys() & both[0].keys() & both[1].keys()
    rounded = {name for name in names if _moves(moved[name], both[0][name], both[1][name])}
    left = [f"{name}: {text}" for name, text in found.items() if name not in rounded]
    if left:
        tally.wrong.append(f"file {seed}: {len(left)} of {len(both[1])}, {'; '.join(left[:3])}")
    else:
        tally.rounding.append(seed)


def _moves(moved: Any, ours: Any, theirs: Any) -> bool:
    """Return whether an array changes with the last digits of inputs and parameters about as much as it differs from
    NNabla's.
    """
    if ours.dtype.kind == "U" or not moved.shape == ours.shape == theirs.shape:
        return False
    change, error = (np.nanmax(np.abs(np.subtract(other, ours, dtype=float)), initial=0.0) for other in (moved, theirs))
    return bool(10 * change >= error)


def _differences(about: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], failed: set[str]) -> dict[str, str]:
    """Return the differences in the ways of loading that have not failed."""
    random_ = {f"{net}: {name}" for net, more in about["networks"].items() for name in more["random"]}
    for number, more in enumerate(about["networks"].values()):
        random_ |= {f"Executor{number or ''}: y of {name}" for name in more["random"]}
    found = {}
    for name in {**theirs, **ours}:
        *way, key = name.split(" ", 2)
        if " ".join(way) in failed:
            continue
        if name in ours and name in theirs:
            text = difference(ours[name], theirs[name], key in random_)
        else:
            text = f"only {'here' if name in ours else 'in NNabla'}"
        if text:
            found[name] = text
    return found


@click.command()
@click.option("--nnabla-python", required=True, help="An interpreter in which NNabla can be imported.")
@click.option("--files", default=100, show_default=True, help="Files to draw.")
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep the files; by default they are removed.")
def main(nnabla_python: str, files: int, first: int, folder: Path | None) -> None:
    """Draw, run, compare, print and exit."""
    seeds = list(range(first, first + files))
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        (place / "seeds").write_text(json.dumps(seeds))
        for seed in seeds:
            write(drawn_file(seed), place)
        run_all(nnabla_python, place, "nnabla", seeds)
        run_all(sys.executable, place, "nn_core", seeds)
        tally = Tally()
        for seed in seeds:
            compare(place, json.loads((place / f"{seed}.json").read_text()), tally)
    click.echo(f"{tally.equal} networks equal, {tally.looped} with loops; {len(tally.kinds)} functions, {tally.arrays} arrays")
    for reason, count in tally.refused.most_common():
        click.echo(f"NNabla fails {count} times ({sorted(set(tally.refused_files[reason]))[:6]}): {reason}")
    if tally.rounding:
        click.echo(f"files with differences that follow from rounding, not counted: {tally.rounding}")
    for text in tally.wrong:
        click.echo(text)
    sys.exit(bool(tally.wrong))


if __name__ == "__main__":
    main()
