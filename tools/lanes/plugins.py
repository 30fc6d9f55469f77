"""Use a plugin whose parts raise or return what they should not: it is named, and what does not use it stays as it was.

    python -m tools.lanes.plugins --count 600 --seed 0

Every part of `faulty_plugin` (kernels and rules, backends, fusions, formats, solvers, communicators, viewers, ...) meets
every fault of `FAULTS`: exceptions of all kinds, results of other types and shapes, and writes to what the part only reads.
An exception must name the plugin, and end nothing; a result must be refused by name, or make no difference.
"""

import asyncio
import importlib.util
import itertools
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import click
import numpy as np

import nn_core.functions as F
from nn_core.engine.arrays import spaces
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import NNCoreError, PluginError, ShapeError
from nn_core.ext import register, unregister

from .plugin_programs import PLACES, leaf
from .reliability import record, report_option

MODULE: Final = "nn_ext_faulty"


class Ends(BaseException):
    """Not an Exception."""


class Mute(Exception):  # noqa: N818  # what it does
    """Cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("mute")


class Sealed(Exception):  # noqa: N818
    """Takes no notes."""

    __slots__ = ()

    def add_note(self, note: str) -> None:
        raise AttributeError("sealed")


def _giving(make: Callable[[], Any]) -> Callable[..., Any]:
    return lambda result, arrays: make()


def _writing(result: Any, arrays: Any) -> Any:
    for array in arrays:
        array[...] = 9
    return result


#: Exceptions that go on as what they are, since they are meant for the program.
PASSING: Final = {
    "KeyboardInterrupt": lambda: KeyboardInterrupt("fault"),
    "GeneratorExit": lambda: GeneratorExit("fault"),
    "CancelledError": lambda: asyncio.CancelledError("fault"),
}
#: Exceptions that must name the plugin, where nothing goes on without it.
NAMED: Final = {
    "KeyError": lambda: KeyError("fault"),
    "an error of ours": lambda: ShapeError("faulty: a fault"),
    "StopIteration": lambda: StopIteration("fault"),
    "RecursionError": lambda: RecursionError("fault"),
    "AttributeError": lambda: AttributeError("fault"),
    "NotImplementedError": lambda: NotImplementedError("fault"),
    "UserWarning": lambda: UserWarning("fault"),
    "one that cannot be printed": Mute,
    "one that takes no notes": Sealed,
    "SystemExit": lambda: SystemExit(3),
    "SystemExit without a status": SystemExit,
    "a BaseException": lambda: Ends("fault"),
}
RESULTS: Final[dict[str, Callable[[], Any]]] = {
    "None": lambda: None,
    "a number": lambda: 7,
    "NaN": lambda: float("nan"),
    "True": lambda: True,
    "a complex number": lambda: 1j,
    "a text": lambda: "nonsense",
    "the name of another operator": lambda: "Tanh",
    "bytes": lambda: b"nonsense",
    "()": lambda: (),
    "a list of None": lambda: [None],
    "a dictionary": lambda: {"a": 1},
    "an object": object,
    "a class": lambda: Ends,
    "NotImplemented": lambda: NotImplemented,
    "an array of another shape": lambda: np.zeros((5, 1, 2), np.float32),
    "an array of texts": lambda: np.array(["a"]),
    "an array of objects": lambda: np.array([None], dtype=object),
}
FAULTS: Final[dict[str, Callable[..., Any]]] = {
    **{f"raises {name}": _giving(kind) for name, kind in {**PASSING, **NAMED}.items()},
    **{f"returns {name}": _giving(make) for name, make in RESULTS.items()},
    "writes what it reads": _writing,
}


class Case(NamedTuple):
    """A part and its fault."""

    place: str
    fault: str


def cases() -> list[Case]:
    """Return all pairs of a part and a fault."""
    return [Case(place, fault) for place, fault in itertools.product(PLACES, FAULTS)]


@contextmanager
def registered() -> Iterator[ModuleType]:
    """Register the plugin for a while."""
    found = importlib.util.spec_from_file_location(MODULE, Path(__file__).with_name("faulty_plugin.py"))
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[MODULE] = module
    found.loader.exec_module(module)
    register(module)
    try:
        yield module
    finally:
        unregister("faulty")
        del sys.modules[MODULE]


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, entry: logging.LogRecord) -> None:
        self.texts.append(entry.getMessage())


class Lane:
    """Runs cases against a registered plugin."""

    def __init__(self, module: ModuleType) -> None:
        self._fault = module.Fault
        self._expected = {place: self._run(place, None)[0] for place in PLACES}
        self._bystander = self._computed()

    def check(self, case: Case) -> str:
        """Return what is wrong with a case; empty where nothing is."""
        result, error, told = self._run(case.place, FAULTS[case.fault])
        if not self._fault.met:
            return "the part was not reached"
        found = _judged(case.place, case.fault, result, error, told, self._expected[case.place])
        if not found and self._computed() != self._bystander:
            found = "a program without the plugin computes something else afterwards"
        return found

    def _run(self, place: str, act: Callable[..., Any] | None) -> tuple[Any, BaseException | None, str]:
        heard = _Heard()
        logger = logging.getLogger("nn_core")
        logger.addHandler(heard)
        level = logger.level
        logger.setLevel(logging.DEBUG)
        PLUGINS.forget_prepared()
        spaces._SPACES.pop(("FaultyArray", "0"), None)  # so that the namespace is asked for again
        self._fault.place, self._fault.act, self._fault.met = place, act, 0
        result, caught = None, None
        try:
            result = PLACES[place]()
        except BaseException as error:
            if act is None:
                raise
            caught = error
        finally:
            self._fault.place, self._fault.act = "", None
            logger.removeHandler(heard)
            logger.setLevel(level)
        return result, caught, "\n".join(heard.texts)

    @staticmethod
    def _computed() -> bytes:
        v = leaf()
        y = F.sum(F.relu(F.sigmoid(v)) * F.sinh(v))
        y.forward(clear_no_need_grad=True)
        v.g = 0
        y.backward()
        return y.d.tobytes() + v.g.tobytes()


_ARRAYS: Final = ("returns an array of another shape", "returns a number", "returns NaN", "returns True")
#: Results that are not wrong: what a viewer shows is its own; no gradient is none; other numbers are those of the plugin.
_ALLOWED: Final = {
    *(("view", f"returns {name}") for name in RESULTS),
    *((place, fault) for place in ("cell", "scheduler") for fault in _ARRAYS),
    *(("source", f"returns {name}") for name in RESULTS if " array" in name or "list" in name),
    *(("gradient rule", fault) for fault in ("returns None", "returns a list of None")),
    # a function that can be called, and writes nothing
    *((f"{part}bind", "returns a class") for part in ("", "overlay ", "update ")),
    ("cell", "returns ()"),
    # it makes the array
    ("from_numpy", "writes what it reads"),
}
#: Parts whose results a program hands on to functions of ours, which refuse them as they refuse those of the program.
_HANDED_ON: Final = {"initializer", "scheduler"}


def _judged(place: str, fault: str, result: Any, error: BaseException | None, told: str, expected: Any) -> str:
    if error is None:
        if not fault.startswith("raises") and (place, fault) in _ALLOWED:
            return ""
        if not _equal(result, expected):
            return f"gives {_shown(result)}, {_shown(expected)} without the fault, in silence"
        passed = fault.startswith("raises") and fault.partition(" ")[2] in PASSING
        if passed:
            return "is swallowed"
        return "" if not fault.startswith("raises") or "faulty" in told else "is swallowed without a word"
    name = fault.partition("raises ")[2]
    if name in PASSING:
        return "" if type(error).__name__ == name else f"ends in {_shown(error)}"
    if not isinstance(error, Exception):
        return f"ends the program by {_shown(error)}"
    if place in _HANDED_ON and not fault.startswith("raises") and isinstance(error, NNCoreError):
        return ""
    if "faulty" not in _texts(error) and "sealed" not in repr(error):
        return f"is not named: {_shown(error)} {getattr(error, '__notes__', '')}"
    if not fault.startswith("raises") and not isinstance(error, NNCoreError) and "nn_core: " not in _texts(error):
        return f"ends in {_shown(error)}"
    return "" if "System" not in fault or isinstance(error, PluginError) else f"ends in {_shown(error)}"


def _texts(error: BaseException | None) -> str:
    texts = []
    while error is not None:
        with suppress(Exception):
            texts.append(str(error))
        texts.extend(getattr(error, "__notes__", ()))
        error = error.__cause__
    return "\n".join(texts)


def _shown(value: Any) -> str:
    with suppress(Exception):
        return f"{type(value).__name__}: {value}"[:300]
    return type(value).__name__


def _equal(one: Any, other: Any) -> bool:
    if isinstance(other, dict):
        return isinstance(one, dict) and one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in other)
    if isinstance(other, (tuple, list)):
        return isinstance(one, type(other)) and len(one) == len(other) and all(map(_equal, one, other))
    return type(one) is type(other) and bool(np.array_equal(one, other))


def check(count: int, seed: int) -> Iterator[tuple[Case, str]]:
    """Try so many cases, chosen by the seed, and give those with findings."""
    everything = cases()
    order = np.random.default_rng(seed).permutation(len(everything))[:count]
    with registered() as module:
        lane = Lane(module)
        for number in order:
            finding = lane.check(everything[number])
            if finding:
                yield everything[number], finding


@click.command()
@click.option("--count", default=300, show_default=True, help="Pairs of a part and a fault; 0: all.")
@click.option("--seed", default=0, show_default=True)
@report_option
def main(count: int, seed: int, report: Path | None) -> None:
    """Let the parts of a plugin misbehave; the exit status is 1 if there is a finding."""
    count = min(count or len(cases()), len(cases()))
    logging.getLogger("nn_core").propagate = False
    findings = 0
    for case, text in check(count, seed):
        findings += 1
        click.echo(f"--- {case.place}: {case.fault}: {text}")
    record(report, "plugins", "parts that raise, return nonsense or write", count=count, findings=findings, seed=seed)
    sys.exit(bool(findings))


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.plugins")
