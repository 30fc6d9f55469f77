"""Raise an exception at random instructions of nn_core: afterwards everything is as before the call, or as after it.

    python -m tools.lanes.interrupts --count 500 --seed 0

CPython raises KeyboardInterrupt where a function begins, where a loop jumps back, and after a call. A trace function raises it
at one such place, chosen at random among all that a scenario passes; so each finding can be repeated by its number.
"""

import dis
import gc
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import NNCoreError

from .reliability import record, report_option

_HERE = str(Path(nn.__file__).parent)
_CALLS = {"CALL", "CALL_FUNCTION_EX", "CALL_FUNCTION", "CALL_METHOD", "CALL_KW", "CALL_FUNCTION_KW"}
_STARTS = {"RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE"}


class Interrupts:
    """Counts the places where an exception may come, and raises one at place `at` (counted from 0)."""

    def __init__(self, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.count, self.at = 0, -1
        self._error = error
        self._places: dict[CodeType, frozenset[int]] = {}

    def run(self, scenario: Callable[[], object], at: int = -1) -> BaseException | None:
        """Run a scenario; what it raised, if that is the exception from here, or an error of nn_core because of it."""
        self.count, self.at = 0, at
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            scenario()
        except self._error as error:
            sys.settrace(before)
            return error.with_traceback(None)
        except NNCoreError as error:  # readers of files say so where a parser has raised something
            if not isinstance(error.__cause__, self._error):
                raise
            return error.with_traceback(None)
        finally:
            sys.settrace(before)
        return None

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        if not (name.startswith(_HERE) or name == __file__) or frame.f_code is Interrupts.run.__code__:
            return None
        frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and frame.f_lasti in self._places_of(frame.f_code):
            self.count += 1
            if self.count == self.at + 1:
                raise self._error
        return self._step

    def _places_of(self, code: CodeType) -> frozenset[int]:
        places = self._places.get(code)
        if places is None:
            found, after_call = set(), False
            for instruction in dis.get_instructions(code):
                if instruction.opname == "CACHE":
                    continue
                if after_call or instruction.opname in _STARTS:
                    found.add(instruction.offset)
                after_call = instruction.opname in _CALLS
            places = self._places[code] = frozenset(found)
        return places


@dataclass(frozen=True)
class Scenario:
    """Something to interrupt.

    Attributes:
        make: Prepares it, and gives what to run, and the state to compare, which is read before, after and in between.
    """

    make: Callable[[Path], tuple[Callable[[], object], Callable[[], Any]]]


def _network(name: str, seed: int = 3) -> tuple[nn.Variable, nn.Variable, dict[str, nn.Variable]]:
    rng = np.random.default_rng(seed)
    scope: dict[str, Any] = {}
    with nn.parameter_scope(name, scope):
        x = nn.Variable.from_numpy_array(rng.normal(size=(4, 5)).astype(np.float32))
        h = F.relu(PF.affine(x, 6, name="a", w_init=rng.normal(size=(5, 6)).astype(np.float32)))
        h = PF.batch_normalization(h, batch_stat=True)
        y = F.mean(F.tanh(PF.affine(h, 3, name="b", w_init=rng.normal(size=(6, 3)).astype(np.float32))) ** 2)
        parameters = nn.get_parameters(grad_only=True)
    return x, y, parameters


def _scopes(_: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    def run() -> None:
        with nn.parameter_scope("outer"), nn.context_scope(nn.Context(["cpu"])):
            with nn.auto_forward(), nn.no_grad():
                PF.affine(nn.Variable((2, 3)), 2, name="inner")
            with nn.recompute(), nn.settings.without("fuse"):
                PF.affine(nn.Variable((2, 3)), 2, name="inner")

    return run, lambda: None


def _parameters(_: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    scope: dict[str, Any] = {}

    def run() -> None:
        with nn.parameter_scope("net", scope):
            PF.batch_normalization(nn.Variable((2, 3)), name="a")

    def state() -> Any:
        with nn.parameter_scope("net", scope):
            names = sorted(nn.get_parameters(grad_only=False))
            nn.clear_parameters()
        return names

    return run, state


def _training(_: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    _, y, parameters = _network("net")
    solver = S.Adam(0.1)
    solver.set_parameters(parameters)

    def run() -> None:
        solver.zero_grad()
        y.forward(clear_no_need_grad=True)
        y.backward(clear_buffer=True)

    def state() -> Any:
        run()
        return [parameter.g.tobytes() for parameter in parameters.values()]

    return run, state


def _update(_: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    _, y, parameters = _network("net")
    solver = S.Adam(0.1)
    solver.set_parameters(parameters)
    solver.zero_grad()
    y.forward()
    y.backward()
    return solver.update, lambda: (
        [parameter.d.tobytes() for parameter in parameters.values()],
        [(key, part.t, [v.d.tobytes() for v in part.pstate.values()]) for key, part in solver.get_states().items()],
    )


def _dynamic(_: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    scope: dict[str, Any] = {}
    x = nn.Variable.from_numpy_array(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    found: list[Any] = []

    def run() -> None:
        with nn.auto_forward(), nn.parameter_scope("net", scope):
            h = F.tanh(PF.affine(x, 4, name="a", w_init=np.ones((3, 4), np.float32)))
            y = F.sum(h * h + F.exp(-h))
            for parameter in nn.get_parameters().values():
                parameter.grad.zero()
            y.backward()
        found[:] = [y.d.tobytes(), [parameter.g.tobytes() for parameter in scope["net"]["a"]["affine"].values()]]

    def state() -> Any:
        run()
        run()
        return list(found)

    return run, state


def _saving(folder: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    paths = [folder / f"parameters{extension}" for extension in (".h5", ".npz", ".safetensors")]
    values = [np.zeros(3, np.float32)]

    def run() -> None:
        for path in paths:
            nn.save_parameters(path, {"w": nn.Variable.from_numpy_array(values[0]), "a/b": nn.Variable((2,))})

    run()
    values[0] = np.ones(3, np.float32)

    def state() -> Any:
        assert sorted(path.name for path in folder.iterdir()) == sorted(path.name for path in paths)
        return [float(nn.files.read_entries(path, path.suffix)["w"].values.mean()) for path in paths]

    return run, state


def _loading(folder: Path) -> tuple[Callable[[], object], Callable[[], Any]]:
    _, _, saved = _network("net", seed=4)
    nn.save_parameters(folder / "file.h5", saved)
    scope: dict[str, Any] = {}
    with nn.parameter_scope("net", scope):
        for key, value in saved.items():
            nn.parameter.set_parameter(key, nn.Variable(value.shape, need_grad=True))
        flat = nn.get_parameters()
    for value in flat.values():
        value.d = 0

    def run() -> None:
        with nn.parameter_scope("net", scope):
            nn.load_parameters(folder / "file.h5")

    return run, lambda: {key: value.d.tobytes() for key, value in sorted(flat.items())}


SCENARIOS: dict[str, Scenario] = {
    "scopes": Scenario(_scopes),
    "parameters": Scenario(_parameters),
    "training": Scenario(_training),
    "update": Scenario(_update),
    "dynamic": Scenario(_dynamic),
    "saving": Scenario(_saving),
    "loading": Scenario(_loading),
}

#: Scenarios of several calls, each of which may have happened or not.
_SEVERAL = {"saving"}


def _ambient() -> Any:
    scope = nn.get_current_parameter_scope()
    from nn_core.engine.graph.modes import get_global_recompute, get_no_grad
    from nn_core.settings import disabled_optimizations

    modes = (nn.get_auto_forward(), get_no_grad(), get_global_recompute(), nn.get_current_context(), disabled_optimizations())
    return id(scope), modes


def check(name: str, count: int, seed: int, error: type[BaseException] = KeyboardInterrupt) -> Iterator[str]:
    """Interrupt a scenario at `count` places, chosen by `seed`; texts of what is wrong afterwards."""
    outside = _ambient()
    rng = np.random.default_rng([seed, *name.encode()])
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder, nn.parameter_scope("own", {}):
            run, state = SCENARIOS[name].make(Path(folder))
            interrupts = Interrupts(error)
            before = state()
            interrupts.run(run)
            after = state()
        with tempfile.TemporaryDirectory() as folder, nn.parameter_scope("own", {}):
            run, state = SCENARIOS[name].make(Path(folder))
            state()
            inside = _ambient()
            at = int(rng.integers(interrupts.count))
            try:
                raised = interrupts.run(run, at)
                gc.collect()
                if raised is None and interrupts.count > at:
                    yield f"{name}, seed {seed}, number {number}, place {at}: the exception was swallowed"
                if _ambient() != inside:
                    yield f"{name}, seed {seed}, number {number}, place {at}: a scope was left entered"
                found = state()
                if not _is_one_of(found, before, after, name in _SEVERAL):
                    yield f"{name}, seed {seed}, number {number}, place {at}: neither the state before nor that after"
            except BaseException:
                yield f"{name}, seed {seed}, number {number}, place {at}: {traceback.format_exc()}"
    if _ambient() != outside:
        yield f"{name}: the scopes are others than before the lane"


def _is_one_of(found: Any, before: Any, after: Any, several: bool) -> bool:
    if several:
        return all(value in pair for value, *pair in zip(found, before, after, strict=True))
    return bool(found in (before, after))


@click.command()
@click.option("--count", default=20, help="Interrupts of each scenario.")
@click.option("--seed", default=0)
@click.option("--scenario", "names", multiple=True, type=click.Choice(list(SCENARIOS)), help="Default: all.")
@report_option
def main(count: int, seed: int, names: tuple[str, ...], report: Path | None) -> None:
    """Interrupt scenarios; the exit status is 1 if there is a finding."""
    n_findings = 0
    for name in names or SCENARIOS:
        findings = list(check(name, count, seed))
        n_findings += len(findings)
        for text in findings:
            click.echo(f"--- {text}")
        record(report, "interrupts", name, count=count, findings=len(findings), seed=seed)
    sys.exit(n_findings > 0)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.interrupts")
