"""Measure networks: times of functions, monitors over data, one backend against another."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError, atomic_writer, function_spec, say
from nn_core.utils.profiler import GraphProfiler, GraphProfilerCsvWriter
from nn_ext_nnp.commands.context import choose_context, context_named, watched
from nn_ext_nnp.commands.failing import clean_failures
from nn_ext_nnp.commands.training import Trainer, total_loss
from nn_ext_nnp.loading import Info, load

Array = np.ndarray[Any, Any]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
#: Of the values that `compare` computes with, and of the random functions of both sides.
_SEED: Final = 313


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of networks, data sets and monitors.")
@click.option("-p", "--param", type=_FILE, help="File of parameters, over those of the configuration.")
@click.option("-m", "--monitor", multiple=True, help="Which monitor; all by default.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="CSV file to write to as well.")
@click.option("-C", "--context", help="Where to run, such as cpu or cudnn:0.")
@clean_failures
def evaluate(config: Path, param: Path | None, monitor: tuple[str, ...], output: Path | None, context: str | None) -> None:
    """Compute the monitors of a configuration over their data.

    Example: nn-core evaluate -c results.nnp -m valid_error
    """
    choose_context(context)
    info = load([config] if param is None else [config, param], prepare_data_iterator=False)
    unknown = [name for name in monitor if name not in info.monitors]
    if unknown or not info.monitors:
        given = repr(unknown[0]) if unknown else "none"
        raise ArgumentError(f"evaluate: --monitor must be one of {list(info.monitors)}, got {given}")
    trainer = Trainer(info, config, Path())
    names = monitor or tuple(info.monitors)
    values = {name: trainer.watch(info.monitors[name]) for name in watched(names, len(names), "evaluate")}
    if output is not None:
        _write_csv(output, [("monitor", "value"), *((name, repr(value)) for name, value in values.items())])
    for name, value in values.items():
        say(f"{name}={value:.6f}")


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of the networks.")
@click.option("-o", "--outdir", required=True, type=_FOLDER, help="Folder of profile.csv.")
@click.option("-r", "--runs", default=100, show_default=True, type=click.IntRange(min=1), help="Runs of each function.")
@click.option("-t", "--seconds", default=1.0, show_default=True, help="Time for each function; it bounds the runs.")
@click.option("-C", "--context", help="Where to run, such as cpu or cudnn:0.")
@clean_failures
def profile(config: Path, outdir: Path, runs: int, seconds: float, context: str | None) -> None:
    """Measure each function of the networks that are trained, whole passes, and steps of training.

    A configuration without optimizers is measured by its executors, without gradients of parameters that are fixed. Times
    are in milliseconds.

    Example: nn-core profile -c training.nnp -o times
    """
    choose_context(context)
    info = load(config, prepare_data_iterator=False)
    roots = _roots(info)
    if not roots:
        raise ArgumentError("profile: the configuration must have an optimizer or an executor, got none")
    current = nn.get_current_context()
    text = io.StringIO()
    for name, (root, solver) in watched(roots.items(), len(roots), "profile"):
        backend = current.backend[0].partition(":")[0]
        measured = GraphProfiler(root, current.device_id, backend, solver, n_run=runs, max_measure_execution_time=seconds)
        measured.run()
        text.write(f"network,{name}\n")
        GraphProfilerCsvWriter(measured, text).write()
        say(f"{name}: forward {measured.result['forward_all']} ms, backward {measured.result['backward_all']} ms")
    outdir.mkdir(parents=True, exist_ok=True)
    with atomic_writer(outdir / "profile.csv") as file:
        file.write(text.getvalue().encode())


def _roots(info: Info) -> dict[str, tuple[nn.Variable, Any]]:
    """Return the variables to measure, by the name of their optimizer or executor, with the solver."""
    if info.optimizers:
        return {name: (total_loss(optimizer), optimizer.solver) for name, optimizer in info.optimizers.items()}
    return {name: (F.sink(*executor.output_assign), None) for name, executor in info.executors.items()}


@click.command()
@click.option("-c", "--config", required=True, type=_FILE, help="File of the networks.")
@click.option("-c2", "--config2", type=_FILE, help="File of the networks of the second side; the same by default.")
@click.option("-C", "--context", default="cpu", show_default=True, help="Where the first side runs, such as cudnn:0.")
@click.option("-C2", "--context2", default="reference", show_default=True, help="Where the second side runs.")
@click.option("-p", "--param", type=_FILE, help="File of parameters, over those of the configuration.")
@click.option("-b", "--batch_size", default=-1, help="Number of samples; -1: that of the file.")
@click.option("-t", "--tolerance", default=1e-4, show_default=True, help="Largest difference, relative to the values.")
@click.option("-o", "--outdir", type=_FOLDER, help="Folder of compare.csv.")
@clean_failures
def compare(
    config: Path,
    config2: Path | None,
    context: str,
    context2: str,
    param: Path | None,
    batch_size: int,
    tolerance: float,
    outdir: Path | None,
) -> None:
    """Run networks on two backends with the same values, and compare every variable and the gradients of parameters.

    Inputs are drawn from 0 to 1; labels and indices are 0. The difference is the largest one of a variable, over the largest
    magnitude in it where that is above 1. It ends with 1 when a difference is larger than the tolerance, or a value is no
    number on one side only.

    Example: nn-core compare -c network.nnp -C cpu -C2 reference
    """
    first = _side(config, param, batch_size, context)
    second = _side(config2 or config, param, batch_size, context2)
    if first.keys() != second.keys():
        only = sorted(first.keys() ^ second.keys())
        raise ArgumentError(f"compare: both sides must have the same variables, got {only[0]!r} on one of them only")
    rows = [(*key, _difference(first[key], second[key])) for key in first]
    if outdir is not None:
        outdir.mkdir(parents=True, exist_ok=True)
        _write_csv(outdir / "compare.csv", [("network", "kind", "variable", "difference"), *rows])
    worst = max(rows, key=lambda row: row[3], default=None)
    if worst is None:
        raise ArgumentError("compare: the configuration must have a network with functions, got none")
    network, kind, variable, difference = worst
    verdict = f"{len(rows)} variables, largest difference {difference:.3g}, {kind} {variable} of network {network}"
    if difference > tolerance:
        raise click.ClickException(f"compare: {context} and {context2} must agree within {tolerance:g}, got {verdict}")
    say(verdict)


def _side(config: Path, param: Path | None, batch_size: int, context: str) -> dict[tuple[str, str, str], Array]:
    """Return the values of all networks in one context, by network, kind and name of the variable."""
    found: dict[tuple[str, str, str], Array] = {}
    chosen = context_named(context)
    with nn.parameter_scope("", {}), nn.context_scope(chosen):
        nn.seed(_SEED)
        sources = [config] if param is None else [config, param]
        info = load(sources, False, batch_size if batch_size > 0 else None, context=chosen)
        for name, network in info.networks.items():
            _draw(network.inputs)
            outputs = {key: v.apply(persistent=True) for key, v in network.variables.items() if v.parent is not None}
            nn.seed(_SEED)
            F.sink(*network.outputs.values()).forward()
            found |= {(name, "value", key): np.array(v.d) for key, v in outputs.items()}
        for name, optimizer in info.optimizers.items():
            loss = total_loss(optimizer)
            nn.seed(_SEED)
            loss.forward()
            optimizer.solver.zero_grad()
            loss.backward()
            found |= {(name, "gradient", key): np.array(p.g) for key, p in optimizer.parameters.items()}
    return found


def _draw(inputs: Mapping[str, nn.Variable]) -> None:
    rng = np.random.default_rng(_SEED)
    for _, variable in sorted(inputs.items()):
        values = rng.random(variable.shape, np.float32)
        variable.d = np.zeros_like(values) if _is_index(variable) else values


def _is_index(variable: nn.Variable) -> bool:
    """Return whether a function reads a variable as labels or indices, which must be whole numbers."""
    for function in variable.function_references:
        spec = function_spec(function.info.type_name)
        for entry, value in zip(() if spec is None else spec.inputs, function.inputs, strict=False):
            if entry.dtype == "index" and value == variable:
                return True
    return False


def _difference(first: Array, second: Array) -> float:
    """Return the largest difference over the largest magnitude, or over 1; infinite for values that are numbers on one
    side.
    """
    if first.shape != second.shape:
        return float("inf")
    numbers = np.isfinite(first)
    if not np.array_equal(first[~numbers], second[~numbers], equal_nan=True) or not np.isfinite(second[numbers]).all():
        return float("inf")
    a, b = first[numbers].astype(np.float64), second[numbers].astype(np.float64)
    return float(np.abs(a - b).max(initial=0.0) / np.abs(b).max(initial=1.0))


def _write_csv(path: Path, rows: list[tuple[Any, ...]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with atomic_writer(path) as file:
        file.write(text.getvalue().encode())
