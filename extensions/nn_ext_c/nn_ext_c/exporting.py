"""The public functions: a graph as a pair of files of C."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import nn_core as nn
from nn_core.ext import ArgumentError
from nn_core.graph_rewriting import parameters_behind
from nn_ext_c.folding import folded
from nn_ext_c.graphs import program_of
from nn_ext_c.integer import lowering_recurrent as lowering_recurrent  # it registers LSTM and GRU
from nn_ext_c.integer.lowering import integer_network
from nn_ext_c.integer.network import IntegerNetwork
from nn_ext_c.integer.numbers import Array, quantized
from nn_ext_c.integer.reference import run, run_integers
from nn_ext_c.integer.writing import integer_program
from nn_ext_c.loops import number
from nn_ext_c.ports import check_name, network_of, save_source, target_of
from nn_ext_c.source import Entry, SelfTest, Source, port_name, written


def export_source(
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    name: str = "network",
    dtype: str = "float32",
    calibration: Any = None,
    method: str = "minmax",
    percentile: float = 99.99,
    io: str = "float32",
    batch_statistics: bool = False,
    self_test: bool = False,
) -> Source:
    """Return the graph of `outputs` as the texts of a header and a source of C.

    Args:
        outputs: a Variable, a sequence of them, or a mapping from names; or a network that `nn_core.utils` has loaded.
        inputs: the leaves that the function of C gets, by name or in order. By default these are all leaves that are neither
            parameters of the current scope nor trained; all others are written as constants.
        name: the stem of all names in C.
        dtype: "float32", or "int8": computed in integers, with inputs and outputs in float32.
        calibration: for int8, samples that are typical for the inputs: an array with any number of samples along its first
            axis, by name if there are several inputs.
        method: how ranges follow from the calibration: "minmax", "percentile", or "mse" for the least squared error.
        percentile: of the values that "percentile" leaves inside, on either side.
        io: for int8, the type of inputs and outputs: "float32", or "int8" for the integers themselves, with their scale and
            zero as macros.
        batch_statistics: normalize with the statistics of the batch where the graph does (``batch_stat=True``), as a training
            does. Without it such a graph is refused.
        self_test: write a function ``NAME_self_test`` too, which runs the data that the inputs have now and compares: int8 bit
            by bit, float32 within 1e-5 of the largest magnitude, but of 1 at least.

    Raises:
        ArgumentError: lists every function that cannot be exported and where it is; or when the graph is one for training.
    """
    settings = (dtype, calibration, method, percentile, io, batch_statistics, self_test)
    return _source(outputs, inputs, name, name, *settings)


def _source(
    outputs: Any, inputs: Any, name: str, file: str, dtype: str, calibration: Any, method: str, percentile: float, io: str,
    batch_statistics: bool, self_test: bool,
) -> Source:  # fmt: skip
    check_name(name)
    wanted, leaves = network_of(outputs, inputs)
    if not batch_statistics:
        _refuse_batch_statistics(wanted.values())
    _check_types(dtype, io)
    keys = {variable: key for key, variable in parameters_behind(wanted.values()).items()}
    with nn.auto_forward(False):
        made, names = folded(wanted, leaves.values(), keys)
        if dtype == "float32":
            test = _computed_test(made, leaves) if self_test else None
            return written([Entry("run", program_of(made, leaves, names), test=test)], name, ["Numbers are float32."], file)
        samples = {key: np.array(variable.d, np.float32) for key, variable in leaves.items()}
        network = integer_network(made, leaves, calibration, method, percentile)
        test = _integer_test(network, samples, io) if self_test else None
        return written([Entry("run", integer_program(network, io), test=test)], name, _scales(network, io), file)


def _check_types(dtype: str, io: str) -> None:
    if dtype not in ("float32", "int8"):
        raise ArgumentError(f"export: dtype must be 'float32' or 'int8', got {dtype!r}")
    if io not in (("float32", "int8") if dtype == "int8" else ("float32",)):
        raise ArgumentError(f"export: io must be 'float32', or 'int8' where dtype is, got {io!r}")


def _computed_test(outputs: Mapping[str, nn.Variable], inputs: Mapping[str, nn.Variable]) -> SelfTest:
    """Return the data of the inputs with the outputs for them."""
    results = {}
    for key, output in outputs.items():
        if output.parent is not None:
            output.forward()
        results[key] = np.array(output.d, np.float32)
    return SelfTest({key: np.array(variable.d, np.float32) for key, variable in inputs.items()}, results)


def _integer_test(network: IntegerNetwork, samples: Mapping[str, Array], io: str) -> SelfTest:
    """Return data of the inputs with the outputs for them, as the integers of the interface or as numbers."""
    if io == "float32":
        return SelfTest(samples, run(network, samples), 0.0)
    given = {key: quantized(samples[key], network.tensors[tensor].scale) for key, tensor in network.inputs.items()}
    return SelfTest(given, run_integers(network, given))


def quantize(
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    calibration: Any,
    method: str = "minmax",
    percentile: float = 99.99,
) -> IntegerNetwork:
    """Return the integer network that ``dtype="int8"`` writes; `nn_ext_c.integer.reference.run` computes its bits in NumPy.

    Args:
        outputs: see `export_source`.
        inputs: see `export_source`.
        calibration: see `export_source`.
        method: see `export_source`.
        percentile: see `export_source`.
    """
    wanted, leaves = network_of(outputs, inputs)
    _refuse_batch_statistics(wanted.values())
    with nn.auto_forward(False):
        made, _ = folded(wanted, leaves.values(), {})
        return integer_network(made, leaves, calibration, method, percentile)


def _scales(network: IntegerNetwork, io: str) -> list[str]:
    """Lines that say what the integers of inputs and outputs stand for."""
    lines = [f"Computed in int8; inputs and outputs are {io}. What the integers stand for:"]
    for kind, entries in (("input", network.inputs), ("output", network.outputs)):
        for port, tensor in entries.items():
            scale = network.tensors[tensor].scale
            lines.append(f"  {kind} {port_name(port)}: {number(scale.scale)[:-1]} * (q - ({scale.zero}))")
    return lines


def export(
    path: str | os.PathLike[str],
    outputs: Any,
    inputs: Mapping[str, nn.Variable] | Sequence[nn.Variable] | None = None,
    *,
    name: str | None = None,
    dtype: str = "float32",
    calibration: Any = None,
    method: str = "minmax",
    percentile: float = 99.99,
    io: str = "float32",
    batch_statistics: bool = False,
    self_test: bool = False,
) -> Source:
    """Write the graph of `outputs` as NAME.h and NAME.c; see `export_source`.

    Args:
        path: a folder, or the path of either file, with the suffix or without.
        outputs: see `export_source`.
        inputs: see `export_source`.
        name: the stem of all names in C; by default that of the file, with underscores for what names cannot hold. In a
            folder, the stem of the files, too.
        dtype: see `export_source`.
        calibration: see `export_source`.
        method: see `export_source`.
        percentile: see `export_source`.
        io: see `export_source`.
        batch_statistics: see `export_source`.
        self_test: see `export_source`.

    Returns:
        The texts, and the memory that they need.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import nn_core.functions as F
        >>> x = nn.Variable((2, 3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = export(f"{folder}/net.c", {"y": F.tanh(x)}, {"x": x})
        ...     sorted(path.name for path in Path(folder).iterdir()), made.arena_bytes
        (['net.c', 'net.h'], 4)
    """
    target, stem = target_of(path, name)
    settings = (dtype, calibration, method, percentile, io, batch_statistics, self_test)
    source = _source(outputs, inputs, stem, target.name, *settings)
    save_source(source, target)
    return source


def _refuse_batch_statistics(outputs: Iterable[nn.Variable]) -> None:
    """Refuse a graph for training: normalized by its own statistics, a batch of one sample is beta, whatever the sample is.

    Raises:
        ArgumentError: when a function of the graph has batch_stat=True.
    """
    found: dict[str, None] = {}
    for output in outputs:
        output.visit(lambda function: found.setdefault(function.name) if function.args.get("batch_stat") else None)
    if found:
        raise ArgumentError(
            "export: batch normalization must use running statistics, got batch_stat=True in "
            f"{', '.join(found)}\n  hint: build the network for inference, with batch_stat=False; or pass "
            "batch_statistics=True, if the statistics of each batch are meant"
        )
