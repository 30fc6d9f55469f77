"""Compare every function that nn_core and NNabla share, forward and backward, on random inputs and settings.

    python tools/nnabla/compare_nnabla.py --nnabla-python /path/to/python3.10 [--cases 20] [--only interpolate,fft]

NNabla needs an interpreter of its own, because it has no release for newer Pythons: any environment where
``import nnabla`` works. The cases (tools/nnabla/nnabla_samples.py) are written to a folder, run there by
tools/nnabla/run_nnabla_cases.py, and run here by the same program with nn_core. Printed are the disagreements, the known
differences that showed up, what only one side takes, and a summary; the exit status is 1 if a disagreement is left.
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from nnabla_samples import LEFT_OUT, SAMPLES, Draw, Sample
from run_nnabla_cases import Results, run

import nn_core
from nn_core.ext_utils import get_extension_context
from nn_core.operators.spec.load import load

SPECIFICATION = Path(__file__).parents[2] / "function_spec.yaml"

#: Largest difference allowed, relative to the largest magnitude of the result (but to 1 at least).
TOLERANCE = 2e-4
TOLERANCES = {"batch_inv": 2e-3, "batch_cholesky": 1e-3, "spectral_norm": 1e-3, "cumprod": 1e-3}

#: Differences that are meant, by function and how the difference starts.
KNOWN = {
    ("inq_affine", "in_x2"): "the indicator of learnable weights counts passes",
    ("inq_affine", "grad_x1"): "fixed weights get no gradient; NNabla restores them in the next pass instead",
    ("inq_convolution", "in_x2"): "the indicator of learnable weights counts passes",
    ("inq_convolution", "grad_x1"): "fixed weights get no gradient; NNabla restores them in the next pass instead",
    ("mean_subtraction", "grad_x0"): "NNabla leaves out what an element does to the mean of the other samples",
    ("pad_packed_sequence", "out0"): "NNabla pads with zeros whatever padding_value is",
    ("sort", "grad_x0"): "NNabla gathers the gradient by the indices of the sorted elements where it has to scatter it",
    ("spectral_norm", "grad_x0 has NaN"): "NNabla gives NaN in test mode",
    ("top_k_data", "grad_x0"): "with reduce=False NNabla passes gradients to elements that were set to zero",
}


@dataclass
class Tally:
    """The results of the cases of one function."""

    agreeing: int = 0
    random: int = 0
    disagreements: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)
    refused_there: Counter[str] = field(default_factory=Counter)


def left_out(python: str) -> dict[str, str]:
    """Functions of nn_core without a row of samples, and why."""
    command = "import nnabla.functions as F; print(' '.join(dir(F)))"
    printed = subprocess.run([python, "-c", command], capture_output=True, text=True, check=False)
    if printed.returncode:
        raise click.ClickException(f"{python} must be able to run NNabla, got:\n{printed.stderr}")
    shared = set(printed.stdout.split())
    reasons = {
        spec.api: LEFT_OUT.get(spec.api, "no row of samples") for spec in load(SPECIFICATION) if spec.api not in SAMPLES
    }
    return {api: reason if api in shared else "no function of NNabla" for api, reason in reasons.items()}


def write_cases(folder: Path, names: Sequence[str], n_cases: int, seed: int) -> list[dict[str, Any]]:
    """Draw the cases, write them to `folder` and return their descriptions."""
    cases = []
    for name in names:
        for repetition in range(n_cases):
            sample = SAMPLES[name](Draw([seed, repetition, *name.encode()]))
            cases.append(describe(name, sample))
            np.savez(folder / f"{len(cases) - 1}.npz", **arrays_of(sample))
    (folder / "cases.json").write_text(json.dumps(cases))
    return cases


def arrays_of(sample: Sample) -> dict[str, np.ndarray]:
    """Return the arrays of a sample by name; those given by position are called x0, x1, ..."""
    positional = {f"x{n}": array for n, array in enumerate(sample.inputs) if array is not None}
    return {**positional, **sample.named}


def describe(api: str, sample: Sample) -> dict[str, Any]:
    """Return the description of a sample in a case, without its arrays."""
    arrays = arrays_of(sample)
    if sample.wrt is None:
        wrt = [name for name, array in arrays.items() if array.dtype.kind == "f"]
    else:
        wrt = [f"x{name}" if isinstance(name, int) else name for name in sample.wrt]
    return {
        "api": api,
        "inputs": [None if array is None else f"x{n}" for n, array in enumerate(sample.inputs)],
        "named": {name: name for name in sample.named},
        "settings": sample.settings,
        "wrt": wrt,
        "sources": sample.sources,
        "dynamic": sample.dynamic,
        "random": sample.random,
    }


def run_there(python: str, folder: Path, n_cases: int) -> None:
    """Run the cases with NNabla; a case that ends the process is noted, and the next process continues after it."""
    script = Path(__file__).with_name("run_nnabla_cases.py")
    first = 0
    while first < n_cases:
        with (folder / "nnabla.log").open("a") as log:
            process = subprocess.run([python, str(script), str(folder), str(first)], stdout=log, stderr=log, check=False)
        if process.returncode == 0:
            return
        done = [number for number in range(first, n_cases) if (folder / f"{number}.nnabla.json").exists()]
        crashed = done[-1] + 1 if done else first
        if crashed == 0:
            raise click.ClickException(f"{python} must be able to run NNabla, see:\n{(folder / 'nnabla.log').read_text()}")
        (folder / f"{crashed}.nnabla.json").write_text(json.dumps({"forward": f"exit status {process.returncode}"}))
        np.savez(folder / f"{crashed}.nnabla.npz")
        first = crashed + 1


def compare(folder: Path, number: int, case: Mapping[str, Any], tally: Tally) -> None:
    """Run case `number` here and hold it against what NNabla did."""
    with np.load(folder / f"{number}.npz") as file:
        ours, our_errors = run("nn_core", case, dict(file))
    theirs, their_errors = _loaded(folder, number)
    name = f"case {number} {_settings_text(case, folder, number)}"
    for phase in ("forward", "backward"):
        if phase in their_errors:
            if phase in our_errors:
                return
            tally.refused_there[f"{phase}: {their_errors[phase]}"] += 1
            theirs = {key: value for key, value in theirs.items() if key.startswith(("out", "in_"))}
            ours = {key: value for key, value in ours.items() if key in theirs}
        elif phase in our_errors:
            tally.disagreements.append(f"{name}: nn_core fails in {phase}: {our_errors[phase]}")
            return
    if set(ours) != set(theirs):
        tally.disagreements.append(f"{name}: results {sorted(ours)} here and {sorted(theirs)} there")
        return
    differences = [] if case["random"] else differing(case["api"], ours, theirs)
    differences += [
        f"{key} has shape {ours[key].shape} here and {theirs[key].shape} there" for key in _odd_shapes(ours, theirs)
    ]
    unexplained = []
    for difference in differences:
        reason = _known(case["api"], difference)
        if reason is None:
            unexplained.append(difference)
        else:
            tally.known[reason] += 1
    if unexplained:
        tally.disagreements.append(f"{name}: {'; '.join(unexplained)}")
    elif not differences and theirs:
        tally.agreeing += 1


def _loaded(folder: Path, number: int) -> tuple[Results, dict[str, str]]:
    with np.load(folder / f"{number}.nnabla.npz") as file:
        return dict(file), json.loads((folder / f"{number}.nnabla.json").read_text())


def _settings_text(case: Mapping[str, Any], folder: Path, number: int) -> str:
    with np.load(folder / f"{number}.npz") as file:
        shapes = [f"{name} {tuple(file[name].shape)}" for name in file.files]
    settings = [f"{key}={value}" for key, value in case["settings"].items()]
    return f"({', '.join(shapes + settings)})"


def _odd_shapes(ours: Results, theirs: Results) -> list[str]:
    return [key for key in theirs if ours[key].shape != theirs[key].shape]


def differing(api: str, ours: Results, theirs: Results) -> list[str]:
    """Return the results whose values differ, with their largest absolute and relative error."""
    found = []
    for key in theirs:
        given, expected = ours[key].astype(np.float64), theirs[key].astype(np.float64)
        if given.shape != expected.shape or not expected.size:
            continue
        if not np.array_equal(np.isnan(given), np.isnan(expected)):
            found.append(f"{key} has NaN at other places")
            continue
        with np.errstate(invalid="ignore"):
            error = np.where(given == expected, 0.0, np.abs(given - expected))
        error = float(np.nanmax(error, initial=0.0))
        relative = error / max(1.0, float(np.nanmax(np.abs(expected), initial=0.0)))
        if not relative <= TOLERANCES.get(api, TOLERANCE):
            found.append(f"{key} differs by {error:.3g} ({relative:.3g} of the largest)")
    return found


def _known(api: str, difference: str) -> str | None:
    for (function, start), reason in KNOWN.items():
        if function == api and difference.startswith(start):
            return reason
    return None


def report(tallies: Mapping[str, Tally], missing: Mapping[str, str], examples: int) -> int:
    """Print what was found; returns the number of functions that disagree."""
    disagreeing = {name: tally for name, tally in tallies.items() if tally.disagreements}
    for name, tally in disagreeing.items():
        click.echo(f"{name}: {len(tally.disagreements)} disagree, {tally.agreeing} agree")
        for line in tally.disagreements[:examples]:
            click.echo(f"    {line}")
    for title, attribute in (("Known differences", "known"), ("Only nn_core takes", "refused_there")):
        click.echo(f"\n{title}:")
        for name, tally in tallies.items():
            for reason, count in getattr(tally, attribute).items():
                click.echo(f"    {name} ({count}): {reason}")
    click.echo("\nNot compared:")
    for name, reason in missing.items():
        click.echo(f"    {name}: {reason}")
    agreeing = sum(tally.agreeing for tally in tallies.values())
    click.echo(
        f"\n{len(tallies)} functions compared, {len(tallies) - len(disagreeing)} without disagreement; "
        f"{agreeing} cases agree, {sum(len(tally.disagreements) for tally in tallies.values())} disagree."
    )
    return len(disagreeing)


@click.command()
@click.option("--nnabla-python", required=True, help="Interpreter of an environment with NNabla.")
@click.option("--cases", default=20, show_default=True, help="Cases of each function.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random cases.")
@click.option("--backend", default="", help="Extension whose context nn_core runs in (default: the default context).")
@click.option("--only", default="", help="Functions to compare, separated by commas (default: all).")
@click.option("--examples", default=3, show_default=True, help="Disagreements to print of each function.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep the cases (default: a temporary folder).")
def main(nnabla_python: str, cases: int, seed: int, backend: str, only: str, examples: int, folder: Path | None) -> None:
    """Compare nn_core with NNabla."""
    if backend:
        nn_core.set_default_context(get_extension_context(backend))
    names = [name for name in SAMPLES if name in (only.split(",") if only else SAMPLES)]
    missing = {} if only else left_out(nnabla_python)
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        described = write_cases(place, names, cases, seed)
        run_there(nnabla_python, place, len(described))
        tallies: dict[str, Tally] = defaultdict(Tally)
        for number, case in enumerate(described):
            compare(place, number, case, tallies[case["api"]])
    sys.exit(1 if report(tallies, missing, examples) else 0)


if __name__ == "__main__":
    main()
