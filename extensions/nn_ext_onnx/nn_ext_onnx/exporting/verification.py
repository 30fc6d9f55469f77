"""A model held against the graph that it was made of."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArgumentError, BackendNotFoundError
from nn_ext_onnx.exporting.dynamic import Network
from nn_ext_onnx.exporting.writing import Constants, add_constants, is_small, write_model

#: Largest difference, relative to the largest magnitude of an output (but to 1 at least).
TOLERANCE: Final = 1e-4


def verify_networks(model: onnx.ModelProto, constants: Constants, networks: Sequence[Network]) -> None:
    """Compare a model with the graph that was given, with the data of its inputs, and with copies, with random numbers.

    Raises:
        ArgumentError: see `verify_model`.
    """
    with _whole_model(model, constants) as source:
        verify_model(source, model, *networks[0])
        for wanted, leaves in networks[1:]:
            _fill_inputs(leaves, networks[0][1].values())
            verify_model(source, model, wanted, leaves)


@contextmanager
def _whole_model(model: onnx.ModelProto, constants: Constants) -> Iterator[bytes | str]:
    """Open a model with its constants for onnxruntime: its bytes, or the path of a file that is removed at the end."""
    if is_small(constants):
        whole = onnx.ModelProto()
        whole.CopyFrom(model)
        yield add_constants(whole, constants).SerializeToString()
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        write_model(path, model, constants)
        yield str(path)


def run_model(source: onnx.ModelProto | bytes | str, arrays: Mapping[str, np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Run a model, its bytes or the file of a path with onnxruntime.

    Raises:
        BackendNotFoundError: when it is not installed.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        raise BackendNotFoundError(
            "export: verify must have onnxruntime, got no such module\n  hint: pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    given = source.SerializeToString() if isinstance(source, onnx.ModelProto) else source
    session = onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    found: list[np.ndarray[Any, Any]] = session.run(None, dict(arrays))
    return found


def _fill_inputs(inputs: Mapping[str, nn.Variable], others: Collection[nn.Variable]) -> None:
    """Give those inputs that are not among `others` random numbers; indices and labels stay as they are."""
    random = np.random.default_rng(0)
    for variable in inputs.values():
        if not any(variable is other for other in others) and np.dtype(variable.data.dtype).kind == "f":
            variable.d = random.standard_normal(variable.shape)


def verify_model(
    source: bytes | str, model: onnx.ModelProto, outputs: Mapping[str, nn.Variable], inputs: Mapping[str, nn.Variable]
) -> None:
    """Compute both with the data that the inputs have; `source` is the whole model, as bytes or by its path.

    Raises:
        ArgumentError: when an output has another shape, or differs by more than `TOLERANCE`.
    """
    dtypes = {entry.name: entry.type.tensor_type.elem_type for entry in model.graph.input}
    arrays = {
        name: np.asarray(variable.d).astype(onnx.helper.tensor_dtype_to_np_dtype(dtypes[name]))
        for name, variable in inputs.items()
    }
    found = run_model(source, arrays)
    copies = [output.apply(persistent=True) for output in outputs.values()]
    (copies[0] if len(copies) == 1 else F.sink(*copies)).forward()
    for (name, output), values in zip(outputs.items(), found, strict=True):
        expected = np.asarray(output.d)
        if values.shape != expected.shape:
            raise ArgumentError(
                f"export: output {name!r} must have shape {expected.shape}, got {values.shape} from onnxruntime"
            )
        difference = largest_difference(values, expected)
        if difference > TOLERANCE:
            raise ArgumentError(
                f"export: output {name!r} must be equal within {TOLERANCE:g} in onnxruntime, "
                f"got a difference of {difference:.2e}"
            )


def largest_difference(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Return the largest difference, relative to the largest finite magnitude that is expected; infinite where NaNs differ."""
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    if same.all():
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    scale = max(1.0, float(finite.max(initial=0.0)))
    difference = float(np.abs(found[~same] - expected[~same]).max()) / scale
    return np.inf if np.isnan(difference) else difference
