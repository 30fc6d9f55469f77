"""Call every function with one wrong argument in NNabla and here: does what catches NNabla's exception catch ours?

    python tools/nnabla/error_classes.py --nnabla-python /path/to/python3.10 [--only sort,affine] [--list]

A case is a row of nnabla_samples.py in which one thing was made wrong: a setting of another type, sign or range, an input of
another shape, dtype or kind, one too few or too many. Both run it, nn_core in the mode for unchanged programs, and each case
counts as caught where our class is NNabla's or derives from it, else as another class; as accepted here or there; or as taken
by both. Printed are the counts and the cases of other classes; the exit status is 1 if there is one.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from nnabla_samples import SAMPLES, Draw, Sample

#: Values that take the place of a setting.
WRONG_SETTINGS: tuple[Any, ...] = (
    "a text",
    None,
    -1,
    -7,
    0,
    1000,
    2.5,
    -0.5,
    1e30,
    float("nan"),
    [],
    [1] * 9,
    ["a"],
    [-1],
    [2.5],
    {"list": [1]},
)
#: How the shape of an input is made wrong.
WRONG_SHAPES = ("longer", "shorter", "an axis more", "an axis less", "no axis", "nothing")
#: Kinds of values that take the place of an input.
WRONG_INPUTS = ("array", "list", "text", "none", "number", "integers", "bools", "halves")


def cases_of(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """Iterate over the cases of a function."""
    yield _case(name, _sample(name, seed), "as it is")
    settings = list(_sample(name, seed).settings)
    for key in settings:
        for wrong in WRONG_SETTINGS:
            sample = _sample(name, seed)
            sample.settings[key] = wrong
            yield _case(name, sample, f"{key}={wrong}")
    count = len(_sample(name, seed).inputs)
    for place in range(count):
        for change in WRONG_SHAPES:
            sample = _sample(name, seed)
            array = sample.inputs[place]
            if array is not None:
                sample.inputs[place] = reshaped(array, change)
                yield _case(name, sample, f"x{place}: {change}")
        for kind in WRONG_INPUTS:
            case = _case(name, _sample(name, seed), f"x{place}: {kind}")
            if case["inputs"][place] is not None:
                case["inputs"][place] = _another(case["inputs"][place], kind)
                yield case
    for change in ("one less", "one more", "another keyword", "a second time"):
        case = _case(name, _sample(name, seed), change)
        if change == "one less":
            case["inputs"] = case["inputs"][:-1]
        elif change == "one more":
            case["inputs"] += [case["inputs"][0] if case["inputs"] else 1] * 9
        elif change == "another keyword":
            case["named"]["acme"] = 1
        elif settings and case["inputs"]:
            case["inputs"] += [1] * 4
        yield case


def _sample(name: str, seed: int) -> Sample:
    return SAMPLES[name](Draw([seed, *name.encode()]))


def reshaped(array: np.ndarray, change: str) -> np.ndarray:
    """Return an array of a wrong shape."""
    if change == "an axis more":
        return array[None]
    if change == "no axis":
        return array.reshape(-1)[:1].reshape(())
    if array.ndim == 0:
        return np.stack([array, array])
    if change == "nothing":
        return array[:0]
    if change == "an axis less":
        return array[0]
    return np.concatenate([array, array, array], axis=-1) if change == "longer" else array[..., :-1]


def _case(name: str, sample: Sample, change: str) -> dict[str, Any]:
    named = {key: _variable(array) for key, array in sample.named.items()}
    inputs = [None if array is None else _variable(array) for array in sample.inputs]
    return {"api": name, "inputs": inputs, "named": {**sample.settings, **named}, "dynamic": sample.dynamic, "change": change}


def _variable(array: np.ndarray) -> dict[str, Any]:
    return {"variable": array.ravel().tolist(), "dtype": array.dtype.name, "shape": array.shape}


def _another(value: dict[str, Any], kind: str) -> Any:
    """Return what takes the place of an input."""
    if kind == "array":
        return {"array": value["variable"], "dtype": value["dtype"], "shape": value["shape"]}
    if kind in ("integers", "bools", "halves"):
        dtype = {"integers": "int32", "bools": "bool", "halves": "float16"}[kind]
        return {**value, "variable": np.array(value["variable"]).astype(dtype).tolist(), "dtype": dtype}
    return {"list": {"list": value["variable"]}, "text": "text", "none": None, "number": 1.5}[kind]


def verdict(theirs: list[Any], ours: list[Any]) -> str:
    """Say what became of a case."""
    if not theirs or not ours:
        return "taken by both" if not theirs and not ours else "refused here only" if ours else "refused there only"
    if theirs[0] == ["the process ends"]:
        return "ends the process there"
    return "caught" if theirs[0][0] in ours[0] else "another class"


@click.command()
@click.option("--nnabla-python", required=True, help="Interpreter of an environment with NNabla.")
@click.option("--seed", default=0, show_default=True, help="Seed of the samples.")
@click.option("--only", default="", help="Functions to call, separated by commas (default: all).")
@click.option("--list", "listed", is_flag=True, help="Print every case that one side refuses.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to keep the results; those that are there are used.")
def main(nnabla_python: str, seed: int, only: str, listed: bool, folder: Path | None) -> None:
    """Compare the classes of exceptions."""
    cases = [case for name in (only.split(",") if only else SAMPLES) for case in cases_of(name, seed)]
    with TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        (place / "cases.json").write_text(json.dumps(cases))
        script = str(Path(__file__).with_name("run_error_cases.py"))
        for python, package in ((nnabla_python, "nnabla"), (sys.executable, "nn_core")):
            if not (place / f"{package}.json").exists():
                subprocess.run([python, script, package, str(place)], check=True)
        theirs, ours = (json.loads((place / f"{package}.json").read_text()) for package in ("nnabla", "nn_core"))
    counts: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for case, there, here in zip(cases, theirs, ours, strict=True):
        found = verdict(there, here)
        counts[found] += 1
        if there and here:
            pairs[there[0][0], here[0][0]] += 1
        if found == "another class" or (listed and (there or here)):
            click.echo(f"{found}: {case['api']} {case['change']}: {_text(there)} | {_text(here)}")
    for (there, here), count in pairs.most_common():
        click.echo(f"{there} there, {here} here: {count}")
    click.echo(f"{len(cases)} cases: {', '.join(f'{count} {name}' for name, count in counts.most_common())}")
    sys.exit(bool(counts["another class"]))


def _text(result: list[Any]) -> str:
    return f"{result[0][0]} in {result[1]}: {result[2]}" if result else "taken"


if __name__ == "__main__":
    main()
