"""Call every function with odd but valid arguments in NNabla and here; float64 says who is right where they differ.

    python tools/nnabla/odd_calls.py --nnabla-python /path/to/python3.10 [--cases 100] [--seed 0] [--only sort,norm] [--usual]

A case is a row of nnabla_samples.py in which something was made odd: settings at or beyond the ends of what is usual,
arrays of zeros, of equal, tied, large, tiny or negative numbers or of another dtype, gradients that hold something
before, gradients of gradients, inputs that had another shape in the first pass, recomputation, all of these together, and
the gradient of the function alone, which it adds or writes. With --usual the arguments are usual ones, and each sample runs
in all of these ways: first and second gradients, to gradients that hold nothing or something, in each manner. NNabla runs
them in its own interpreter, as for compare_nnabla.py, which compares usual arguments. Of what both take and answer
differently, values are held against a computation in float64, and gradients against differences of such values, or against
the rule in float64 where a gradient is no slope by definition. Printed is a row for each function and verdict, with an
example; the exit status is 1 if nn_core is wrong somewhere.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2]))

from compare_nnabla import TOLERANCE, TOLERANCES, arrays_of, describe, run_there
from nnabla_samples import SAMPLES, Draw, Sample
from run_nnabla_cases import SEVERAL, Results, longer, run

import nn_core as nn

#: Changes of an array of floats, by name.
ARRAYS: Final = {
    "zeros": lambda x: x * 0,
    "ties": np.round,
    "equal": np.ones_like,
    "large": lambda x: x * 1e3,
    "tiny": lambda x: x * 1e-4,
    "negative": lambda x: -np.abs(x),
    "double": lambda x: x.astype(np.float64),
    "halves": lambda x: x.astype(np.float16),
}
#: The numbers that one in the settings may become.
NUMBERS: Final = (-2, -1, 0, 1, 2, 3, 0.5, -0.5, 1.0, 1e-3, 10.0)
#: Lengths of the steps of differences in float64, and how far these may be from a gradient in float32.
STEPS, SLACK = (1e-5, 1e-8), 2e-3
#: The inputs that a function is defined for; what it gives elsewhere follows from where its logarithms are cut off.
DOMAINS: Final = {
    "binary_cross_entropy": {"x0": (1e-30, 1 - 1e-7)},
    "categorical_cross_entropy": {"x0": (1e-30, np.inf)},
    "kl_multinomial": {"x0": (1e-30, np.inf), "x1": (1e-30, np.inf)},
}
#: Functions of which the gradient is no slope: it is clipped, passes what is rounded, or takes vectors as given.
NO_SLOPE: Final = frozenset([
    "clip_grad_by_norm", "clip_grad_by_value", "spectral_norm", "sign", "round", "ceil", "floor", "binary_sigmoid",
    "binary_tanh", "prune", "binary_connect_affine", "binary_connect_convolution", "binary_weight_affine",
    "binary_weight_convolution", "inq_affine", "inq_convolution", "fixed_point_quantize", "pow2_quantize",
    "min_max_quantize", "quantize_linear", "dequantize_linear",
])  # fmt: skip
#: How a case is run, where not by one pass over a graph of these inputs.
MANNERS: Final = ("reset", "recompute", "reset, recompute", "add", "write")
#: Those that give what one pass gives, and go with gradients of gradients too.
DETOURS: Final = MANNERS[:3]
VERDICTS: Final = (
    "nn_core is wrong", "nn_core differs from one pass", "nn_core refuses", "both are wrong", "NNabla is wrong", "no slope",
    "outside the domain", "equal",
)  # fmt: skip


def odd(name: str, seed: int, repetition: int) -> tuple[Sample, dict[str, Any]]:
    """Return a sample with one or two odd things, and the description of the case."""
    draw = Draw([seed, repetition, *name.encode()])
    sample = SAMPLES[name](draw)
    changed = []
    for _ in range(draw.length(1, 2)):
        settings = [key for key, value in sample.settings.items() if not isinstance(value, str)]
        if settings and draw.flag():
            key = draw.one_of(*settings)
            sample.settings[key] = _odd_setting(draw, sample.settings[key])
            changed.append(f"{key}={sample.settings[key]}")
        else:
            changed += _with_odd_array(draw, sample)
    case = {**describe(name, sample), "held": draw.one_of(0, 0, 1), "odd": changed}
    if case["dynamic"]:
        return sample, case
    if draw.length(1, 3) == 1 and case["wrt"]:
        case["second"] = case["wrt"]
    if draw.length(1, 2) == 1:
        case["manner"] = draw.one_of(*(DETOURS if "second" in case else MANNERS))
    return sample, case


def in_every_way(name: str, seed: int, repetition: int) -> Iterator[tuple[Sample, dict[str, Any]]]:
    """Yield a usual sample with each way to run it: order of the gradients, what they hold before, and manner."""
    for held in (0, 1):
        for order in ("first", "second"):
            for manner in ("", *(DETOURS if order == "second" else MANNERS)):
                sample = SAMPLES[name](Draw([seed, repetition, *name.encode()]))
                case = {**describe(name, sample), "held": held, "odd": []}
                if order == "second" and not case["wrt"]:
                    continue
                if case["dynamic"] and (manner or order == "second"):
                    continue
                extras = {"second": case["wrt"]} if order == "second" else {}
                yield sample, {**case, **extras, **({"manner": manner} if manner else {})}


def _odd_setting(draw: Draw, value: Any) -> Any:
    """Return another value of the kind of `value`."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (list, tuple)) and value:
        changed = list(value)
        place = draw.length(0, len(changed) - 1)
        changed[place] = _odd_setting(draw, changed[place])
        return changed
    if isinstance(value, int):
        return int(draw.one_of(*NUMBERS[:6]))
    return float(draw.one_of(*NUMBERS)) if isinstance(value, float) else value


def _with_odd_array(draw: Draw, sample: Sample) -> list[str]:
    """Make an array of floats odd; returns what was done."""
    places = [n for n, array in enumerate(sample.inputs) if array is not None and array.dtype.kind == "f" and array.size]
    if not places:
        return []
    place, kind = draw.one_of(*places), draw.one_of(*ARRAYS)
    with np.errstate(over="ignore"):
        sample.inputs[place] = np.asarray(ARRAYS[kind](sample.inputs[place]))
    return [f"x{place}: {kind}"]


def judge(
    case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], theirs: Results, errors: Mapping[str, str]
) -> dict[str, str]:
    """Return the verdict by result, one for the whole case if it is refused, none where numbers are drawn.

    Where NNabla refuses, there is one only if another shape before, or recomputation, has changed something here.
    """
    if case["random"]:
        return {}
    if "forward" in errors:
        return _as_one_pass(case, arrays)
    if not _is_defined(case, arrays):
        return {"arguments": "outside the domain"}
    ours, our_errors = run("nn_core", case, arrays)
    refused = our_errors.get("forward") or (our_errors.get("backward") if "backward" not in errors else None)
    if refused == SEVERAL:
        return {}
    if refused:
        return {refused: "nn_core refuses"}
    with nn.context_scope(nn.Context(["reference:double"])):
        exact, _ = run("nn_core", {**case, "manner": ""} if case.get("manner") in DETOURS else case, arrays)
    verdicts = {}
    for key in theirs.keys() & ours.keys():
        tolerance = TOLERANCES.get(case["api"], TOLERANCE)
        if close(ours[key], theirs[key], tolerance):
            verdicts[key] = "equal"
            continue
        if _is_beyond(exact.get(key)):
            verdicts[key] = "outside the domain"
            continue
        if key.startswith("grad_") and case["api"] not in NO_SLOPE:
            right = [_is_slope(case, arrays, key[5:], results[key]) for results in (ours, theirs)]
        else:
            right = [close(results[key], exact.get(key), tolerance) for results in (ours, theirs)]
        verdicts[key] = _verdict(*right)
    return verdicts


def _is_beyond(exact: np.ndarray | None) -> bool:
    """Tell whether float32 does not hold numbers that a computation in float64 gives: what overflows then is chance."""
    if exact is None or exact.dtype.kind != "f":
        return False
    finite = exact[np.isfinite(exact)]
    return bool(np.any(np.abs(finite) > np.finfo(np.float32).max))


def _as_one_pass(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Return a verdict for each result that is another one than that of one pass."""
    if case.get("manner") not in DETOURS:
        return {}
    once = {**case, "manner": ""}
    plain, refused = run("nn_core", once, arrays)
    before, refused_before = run("nn_core", once, longer(arrays)) if "reset" in case["manner"] else (plain, {})
    if refused or refused_before or before.keys() != plain.keys():
        return {}  # it does not take these inputs, or no longer ones, or gives another number of results for them
    found, errors = run("nn_core", case, arrays)
    verdicts = dict.fromkeys(errors.values(), "nn_core differs from one pass")
    tolerance = TOLERANCES.get(case["api"], TOLERANCE)
    differing = [key for key in found.keys() & plain.keys() if not close(found[key], plain[key], tolerance)]
    return verdicts | dict.fromkeys(differing, "nn_core differs from one pass")


def _is_defined(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bool:
    """Tell whether the function is defined for these arrays."""
    limits = DOMAINS.get(case["api"], {})
    values = {name: arrays[name].astype(np.float64) for name in limits}  # in halves a limit just below 1 would be 1
    return all(bool(np.all((values[name] >= low) & (values[name] <= high))) for name, (low, high) in limits.items())


def _verdict(ours: bool | None, theirs: bool | None) -> str:
    """Say who is wrong of two that differ; None where nobody can be."""
    if ours is None or theirs is None:
        return "no slope"
    return "NNabla is wrong" if ours else "nn_core is wrong" if theirs else "both are wrong"


def close(given: np.ndarray, expected: np.ndarray | None, tolerance: float) -> bool:
    """Return whether two results are equal in shape, in NaN and infinities, and up to `tolerance` of the largest number."""
    if expected is None or given.shape != expected.shape:
        return False
    given, expected = given.astype(np.float64), expected.astype(np.float64)
    plain = np.isfinite(expected)
    if not np.array_equal(given[~plain], expected[~plain], equal_nan=True):
        return False
    scale = max(1.0, float(np.max(np.abs(expected[plain]), initial=0.0)))
    return bool(np.all(np.abs(given[plain] - expected[plain]) <= tolerance * scale))


def _is_slope(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray], name: str, gradient: np.ndarray) -> bool | None:
    """Return whether a gradient is that of float64: differences of the sum that it is the gradient of say so at some places.

    None where that sum has no slope: where it is infinite or NaN, or has other slopes before than after each of these places.
    """
    x = np.asarray(arrays[name], np.float64)
    middle = _total(case, arrays)
    if not np.isfinite(middle):
        return None
    held = 0 if case.get("manner") == "write" else case["held"]
    places = [np.unravel_index(place, x.shape) for place in np.random.default_rng(x.size).permutation(x.size)[:6]]
    found = set()
    for index in places:
        totals = [[_total(case, {**arrays, name: _moved(x, index, step)}) for step in (-length, length)] for length in STEPS]
        slopes = [
            (after - before) / (2 * length) + held
            for length, (before, after) in zip(STEPS, totals, strict=True)
            if np.isclose(after - middle, middle - before, rtol=SLACK, atol=10 * length * SLACK)
        ]
        if slopes and not _grows(slopes):
            found.add(any(np.isclose(gradient[index], slope, rtol=SLACK, atol=SLACK) for slope in slopes))
    return all(found) if found else None


def _grows(slopes: list[float]) -> bool:
    """Tell whether slopes grow as steps get shorter, as those of a function that jumps do."""
    return len(slopes) == len(STEPS) and bool(np.isclose(slopes[1], slopes[0] * STEPS[0] / STEPS[1], rtol=0.05))


def _moved(x: np.ndarray, index: Any, step: float) -> np.ndarray:
    moved = x.copy()
    moved[index] += step
    return moved


def _total(case: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> float:
    """Return the number of which the gradients of a case are taken, in float64."""
    with nn.context_scope(nn.Context(["reference:double"])), np.errstate(all="ignore"):
        results, _ = run("nn_core", {**case, "manner": "", "wants_loss": True}, arrays)
    return float(results["loss"])


def report(found: Mapping[tuple[str, str, str], list[str]], n_cases: int) -> int:
    """Print a row for each function, verdict and result; returns the number of rows in which nn_core is wrong."""
    for (verdict, name, key), examples in sorted(found.items(), key=lambda row: (VERDICTS.index(row[0][0]), row[0][1])):
        if verdict != "equal":
            click.echo(f"{verdict}: {name} {key} ({len(examples)})\n    {examples[0]}")
    counts = {verdict: sum(len(rows) for (kind, *_), rows in found.items() if kind == verdict) for verdict in VERDICTS}
    click.echo(f"{n_cases} cases; results: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}")
    return sum(verdict in VERDICTS[:2] for verdict, *_ in found)


def _text(sample: Sample, case: Mapping[str, Any]) -> str:
    shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays_of(sample).items())
    order = "second" if "second" in case else "first"
    manner = f", {case['manner']}" if "manner" in case else ""
    return f"{shapes} {case['settings']}, odd: {case['odd']}, gradient: {order}, to {case['held']}{manner}"


@click.command()
@click.option("--nnabla-python", required=True, help="Interpreter of an environment with NNabla.")
@click.option("--cases", default=100, show_default=True, help="Cases of each function.")
@click.option("--seed", default=0, show_default=True, help="Seed of the random cases.")
@click.option("--only", default="", help="Functions to call, separated by commas (default: all).")
@click.option("--usual", is_flag=True, help="Take usual arguments, and run each sample in every way.")
def main(nnabla_python: str, cases: int, seed: int, only: str, usual: bool) -> None:
    """Call functions with odd arguments in NNabla and here."""
    draw = in_every_way if usual else lambda *place: [odd(*place)]
    names = only.split(",") if only else SAMPLES
    drawn = [case for name in names for number in range(cases) for case in draw(name, seed, number)]
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for number, (sample, _) in enumerate(drawn):
            np.savez(folder / f"{number}.npz", **arrays_of(sample))
        (folder / "cases.json").write_text(json.dumps([case for _, case in drawn]))
        run_there(nnabla_python, folder, len(drawn))
        for number, (sample, case) in enumerate(drawn):
            errors = json.loads((folder / f"{number}.nnabla.json").read_text())
            with np.load(folder / f"{number}.nnabla.npz") as file:
                verdicts = judge(case, arrays_of(sample), dict(file), errors)
            text = f"case {number}: {_text(sample, case)}"
            for key, verdict in verdicts.items():
                found[verdict, case["api"], key].append(text)
    sys.exit(1 if report(found, len(drawn)) else 0)


if __name__ == "__main__":
    main()
