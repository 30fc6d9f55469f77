"""Bodies of requests and answers: JSON, .npy of one array, safetensors of arrays by name."""

import io
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from nn_core.ext import (
    ArgumentError,
    DTypeError,
    Entry,
    FileFormatError,
    ShapeError,
    one_line,
    read_entries,
    read_npy,
    write_entries,
)
from nn_ext_serve.predictor import NonFiniteError
from nn_ext_serve.tensors import Array, TensorSpec, as_array

JSON: Final = "application/json"
NPY: Final = "application/x-npy"
SAFETENSORS: Final = "application/x-safetensors"
MEDIA_TYPES: Final = (JSON, NPY, SAFETENSORS)

#: Errors of a body that is refused: the request is wrong, not the server.
BODY_ERRORS: Final = (ArgumentError, DTypeError, FileFormatError, ShapeError)


def decoded(media_type: str, body: bytes, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """Return the arrays of a body by name; whether they fit the network is checked elsewhere.

    Raises:
        FileFormatError: when the body is damaged, or its text is not strict JSON.
        ArgumentError: when JSON has other keys than "inputs", or an array without a name is given for several inputs.
        DTypeError, ShapeError: when lists of JSON are ragged or hold something else than numbers.
    """
    if media_type == SAFETENSORS:
        return {name: np.asarray(entry.values) for name, entry in read_entries(io.BytesIO(body), ".safetensors").items()}
    if media_type == NPY:
        return {_only_name(specs): _npy(body)}
    return _json(body, specs)


def encoded(media_type: str, outputs: Mapping[str, Array]) -> bytes:
    """Return outputs as a body.

    Raises:
        ArgumentError: when several outputs would have to be one .npy.
        NonFiniteError: when JSON would have to hold NaN or infinities, for which it has no words.
    """
    file = io.BytesIO()
    if media_type == SAFETENSORS:
        write_entries(file, {name: Entry(values) for name, values in outputs.items()}, ".safetensors")
    elif media_type == NPY:
        if len(outputs) > 1:
            raise ArgumentError(f"predict: {NPY} must hold one output, got {list(outputs)}\n  hint: ask for {SAFETENSORS}")
        np.save(file, next(iter(outputs.values())), allow_pickle=False)
    else:
        try:
            text = json.dumps({"outputs": {name: values.tolist() for name, values in outputs.items()}}, allow_nan=False)
        except ValueError as error:
            raise NonFiniteError(
                f"predict: outputs must be finite in JSON, got NaN or infinities\n  hint: ask for {SAFETENSORS}"
            ) from error
        file.write(text.encode())
    return file.getvalue()


def _json(body: bytes, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    try:
        content = json.loads(body.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError is a ValueError
        raise FileFormatError(f"predict: the body must be JSON, got {one_line(error)}") from error
    if not isinstance(content, dict) or content.keys() != {"inputs"}:
        got = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ArgumentError(f'predict: JSON must be {{"inputs": ...}}, got {got}')
    given = content["inputs"]
    if not isinstance(given, dict):
        given = {_only_name(specs): given}
    return {name: _of_lists(name, values) for name, values in given.items()}


def _of_lists(name: str, values: Any) -> Array:
    found = as_array("predict", name, values)
    if found.dtype.kind not in "fiub":
        got = "null or large integers" if found.dtype == object else "text"
        raise DTypeError(f"predict: {name!r} must hold numbers, got {got}")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ArgumentError(f"predict: {name!r} must hold numbers below 1e308, got larger ones")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name}, which JSON does not have")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found


def _only_name(specs: Mapping[str, TensorSpec]) -> str:
    if len(specs) > 1:
        raise ArgumentError(f"predict: inputs must be given by name, {sorted(specs)}, got one array")
    return next(iter(specs))


def _npy(body: bytes) -> Array:
    """Return the array of a .npy file, which must be all of the body."""
    file = io.BytesIO(body)
    try:
        values = read_npy(file, "inputs", len(body))
    except ValueError as error:
        raise FileFormatError(f"predict: the body must be a .npy file of numbers, got {one_line(error)}") from error
    if file.read(1):
        raise FileFormatError(f"predict: the body must be one .npy file, got more than an array of {values.nbytes} bytes")
    return values
