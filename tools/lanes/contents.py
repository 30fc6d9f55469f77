"""Change values inside files whose checksums are right: each is loaded as a whole, or refused by an error of nn_core.

    python -m tools.lanes.contents --count 10000 --seed 0

A value is a number, a text, an array, a list or a key of what a checkpoint, a file of a solver's states or a file of
parameters holds. A refusal names the file in a text that a person can read, and has changed nothing. What was accepted is
used: a step of training ends without another error than one of nn_core. Warnings of NumPy about numbers that are too large
for their type do not count.
"""

import copy
import json
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import NNCoreError
from nn_core.files import Entry, read_entries, write_entries
from nn_core.training import MovingAverage, load_checkpoint, save_checkpoint
from nn_core.training.checkpoint import Snapshot, read_snapshot, write_snapshot
from nn_core.training.loss_scale import LossScale
from nn_core.training.states import copied, state_of
from nn_core.utils.data_iterator import data_iterator_simple

from .reliability import record, report_option

#: Formats, whose attributes may hold other kinds of values.
_EXTENSIONS: Final = (".npz", ".h5", ".safetensors")
_TREE: Final = "checkpoint.json"
#: Characters of an error that a person still reads.
_LONGEST: Final = 3000
#: Values that take the place of another one.
HOSTILE: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 3, 2**70, -(2**63), 1.5, float("nan"), float("inf"), "", "x" * 300, "../x", "\x00", [], [1, "a"], {},
    {"a": 1}, np.zeros(3), np.ones((2, 2), np.int8), np.zeros((), np.float32), np.zeros(0), np.full(4, np.nan, np.float16),
    np.array([True]),
)  # fmt: skip


def changed(tree: Any, rng: np.random.Generator, hostile: Sequence[Any] = HOSTILE) -> Any:
    """Return a copy of a tree of dictionaries and lists in which one value, key or length is another."""
    tree = copied(tree)
    places = list(_places(tree))
    container, key = places[rng.integers(len(places))]
    action = rng.integers(8)
    if action == 0:
        del container[key]
    elif action == 1 and isinstance(container, list):
        container.append(copy.deepcopy(container[key]))
    elif action == 1:
        container[f"{key}_"] = container.pop(key)
    elif action == 2 and isinstance(container[key], np.ndarray):
        container[key] = container[key].astype(rng.choice(["int8", "float16", "float64", "bool", "uint64"]))
    else:
        container[key] = copy.deepcopy(hostile[int(rng.integers(len(hostile)))])
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], (dict, list)):
            yield from _places(tree[key])


@dataclass
class Bench:
    """Objects that are saved, and how they are used."""

    objects: dict[str, Any]
    step: Callable[[], object]

    def state(self) -> Any:
        """Everything that loading may change."""
        return copied({name: state_of(item) for name, item in self.objects.items()})


def bench() -> Bench:
    """Return a small training: a network, a solver, data, an average of the parameters and a loss scale."""
    nn.clear_parameters()
    nn.seed(1)
    x, t = nn.Variable((4, 3)), nn.Variable((4, 1))
    loss = F.mean(F.squared_error(PF.affine(F.tanh(PF.affine(x, 5, name="a")), 1, name="b"), t))
    solver = S.Adam(alpha=0.01)
    solver.set_parameters(nn.get_parameters())
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((10, 4)).astype(np.float32)
    data = data_iterator_simple(lambda i: (rows[i, :3], rows[i, 3:]), 10, 4, shuffle=True, rng=np.random.RandomState(3))
    averages = MovingAverage(nn.get_parameters())

    def step() -> None:
        x.d, t.d = data.next()
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        averages.update()

    for _ in range(3):
        step()
    objects = {
        "parameters": nn.get_parameters(grad_only=False), "solver": solver, "data": data, "averages": averages,
        "scale": LossScale(),
    }  # fmt: skip
    return Bench(objects, step)


def checkpoints(made: Bench, folder: Path, rng: np.random.Generator) -> Callable[[], object]:
    """Return a changed checkpoint, to be loaded."""
    whole = folder / "whole.npz"
    if not whole.exists():
        save_checkpoint(whole, **made.objects, iteration=7)
    snapshot, path = read_snapshot(whole), folder / "changed.npz"
    if not rng.integers(4):  # how the parts are put together, too
        entries = read_entries(whole, ".npz")
        tree = changed(json.loads(entries[_TREE].values.tobytes()), rng, (*HOSTILE, {"__array__": _TREE}, {"__float__": "x"}))
        text = json.dumps(tree, default=lambda array: array.tolist())
        write_entries(path, {**entries, _TREE: Entry(np.frombuffer(text.encode(), np.uint8))}, ".npz")
        return lambda: load_checkpoint(path, **made.objects)
    if rng.integers(10):
        snapshot = Snapshot(changed(dict(snapshot.states), rng), snapshot.values, snapshot.about)
    else:
        text = json.dumps(changed(dict(snapshot.about), rng), default=lambda array: array.shape)
        about = json.loads(text.replace("NaN", "0").replace("Infinity", "1"))  # which no checkpoint can hold there
        snapshot = Snapshot(snapshot.states, snapshot.values, about if isinstance(about, dict) else {})
    write_snapshot(path, snapshot)
    return lambda: load_checkpoint(path, **made.objects)


def solver_states(made: Bench, folder: Path, rng: np.random.Generator) -> Callable[[], object]:
    """Return a changed file of a solver's states."""
    solver: Any = made.objects["solver"]
    whole = folder / "states.npz"
    if not whole.exists():
        solver.save_states(whole)
    path = folder / f"changed_states{_EXTENSIONS[rng.integers(3)]}"
    _write_changed(path, read_entries(whole, ".npz"), rng)
    return lambda: solver.load_states(path)


def parameters(made: Bench, folder: Path, rng: np.random.Generator) -> Callable[[], object]:
    """Return a changed file of parameters."""
    whole = folder / "parameters.npz"
    if not whole.exists():
        nn.save_parameters(whole)
    path = folder / f"changed_parameters{_EXTENSIONS[rng.integers(3)]}"
    _write_changed(path, read_entries(whole, ".npz"), rng)
    return lambda: nn.load_parameters(path, strict=True)


def dictionaries(made: Bench, folder: Path, rng: np.random.Generator) -> Callable[[], object]:
    """Return a changed state that a program hands over itself."""
    names = [name for name in made.objects if name != "parameters"]
    name = names[rng.integers(len(names))]
    state = changed({"": state_of(made.objects[name])}, rng).get("", {})
    return lambda: made.objects[name].set_state(state)


def _write_changed(path: Path, entries: dict[str, Entry], rng: np.random.Generator) -> None:
    tree = {
        name: {"values": entry.values, "attributes": dict(entry.attributes), "group": dict(entry.group)}
        for name, entry in entries.items()
    }
    while True:
        new = changed(tree, rng)
        made = {}
        with suppress(NNCoreError, TypeError, LookupError, AttributeError, ValueError):  # no format could hold it
            for name, part in new.items():
                made[name] = Entry(part["values"], part["attributes"], part["group"])
            write_entries(path, made, path.suffix)
            return


KINDS: Final[dict[str, Callable[[Bench, Path, np.random.Generator], Callable[[], object]]]] = {
    "checkpoints": checkpoints, "files of solver states": solver_states, "files of parameters": parameters,
    "states of a program": dictionaries,
}  # fmt: skip


def check(kind: str, count: int, seed: int) -> Iterator[str]:
    """Load so many changed files of a kind, and give the findings as texts."""
    make = KINDS[kind]
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder, made = Path(name), bench()
        initial = made.state()
        for number in range(count):
            rng = np.random.default_rng([seed, number])
            load = make(made, folder, rng)
            problem = _tried(made, load, is_file=make is not dictionaries) or _restored(made, initial)
            if problem:
                yield f"{kind}, seed {seed}, number {number}: {problem}"
                made = bench()


def _tried(made: Bench, load: Callable[[], object], is_file: bool) -> str:
    before = made.state()
    try:
        load()
    except NNCoreError as error:
        if not _equal(before, made.state()):
            return "something changed although it was refused"
        return blamed(str(error), ["changed"]) if is_file else ""
    except Exception:  # that is what is looked for
        return traceback.format_exc(limit=-4)
    try:
        made.step()
    except NNCoreError:
        return ""
    except Exception:
        return f"accepted, and then\n{traceback.format_exc(limit=-4)}"
    return ""


def blamed(text: str, names: Sequence[str]) -> str:
    """Say what is wrong with the text of a refusal of files with some names; empty where nothing is."""
    if not any(name in text for name in names):
        return f"refused without the name of the file: {text[:300]}"
    if len(text) > _LONGEST:
        return f"refused by {len(text)} characters: {text[:300]}"
    is_plain = all(character.isprintable() or character in "\n\t" for character in text)
    return "" if is_plain else f"refused with control characters: {text[:300]!r}"


def _restored(made: Bench, state: Any) -> str:
    """Set everything back; say what stands against it, which the changed contents have left behind."""
    try:
        _restore(made, state)
    except Exception:
        return f"accepted, and then its former state was refused\n{traceback.format_exc(limit=-4)}"
    return ""


def _restore(made: Bench, state: Any) -> None:
    for name, item in made.objects.items():
        if name == "parameters":
            for key, variable in item.items():
                variable.d = state[name][key]
                variable.need_grad = True
        else:
            item.set_state(copied(state[name]))


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_equal(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        return len(first) == len(second) and all(map(_equal, first, second))
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return False
    return bool(first == second) or first != first


@click.command()
@click.option("--count", default=60, show_default=True, help="Changed contents of each kind.")
@click.option("--seed", default=0, show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)), help="Some kinds only.")
@report_option
def main(count: int, seed: int, kinds: tuple[str, ...], report: Path | None) -> None:
    """Load changed contents; the exit status is 1 if there is a finding."""
    os.environ.setdefault("NN_CORE_LOG_LEVEL", "ERROR")
    nn.logger.setLevel("ERROR")
    n_findings = 0
    for kind in kinds or KINDS:
        findings = list(check(kind, count, seed))
        record(report, "contents", kind, count=count, findings=len(findings), seed=seed)
        for text in findings:
            click.echo(f"--- {text}")
        n_findings += len(findings)
    sys.exit(bool(n_findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.contents")
