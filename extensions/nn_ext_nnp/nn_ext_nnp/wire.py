"""Parameters in binary messages, read and written without a list of Python numbers."""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from nn_core.ext import DTypeError, Entry, FileFormatError, one_line
from nn_ext_nnp.schema import classes, message

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_PARAMETER: Final = 200
_DATA: Final = 100

#: Axes that an array of NumPy can have.
_MOST_AXES: Final = 64

Array = np.ndarray[Any, Any]


def split_parameters(data: bytes, file: str) -> tuple[bytes, dict[str, Entry]]:
    """Return the bytes of all other fields of an NNablaProtoBuf, and its parameters.

    Raises:
        FileFormatError: when a message ends early, or a parameter contradicts its shape.
    """
    view = memoryview(data)
    rest = bytearray()
    entries: dict[str, Entry] = {}
    for number, kind, start, body, end in _fields(view, file):
        if (number, kind) != (_PARAMETER, _BYTES):
            rest += view[start:end]
            continue
        name, entry = _parameter(view[body:end], file, len(entries))
        entries[name] = entry
    return bytes(rest), entries


def parameter_bytes(entries: Mapping[str, Entry]) -> bytes:
    """Return the field `parameter` of an NNablaProtoBuf for each entry."""
    parts: list[bytes] = []
    for name, entry in entries.items():
        require_floats(name, entry)
        head = message("Parameter", variable_name=name, need_grad=bool(entry.attributes.get("need_grad", True)))
        head.shape.dim.extend(entry.values.shape)
        head.shape.SetInParent()
        values = np.ascontiguousarray(entry.values, "<f4").tobytes()
        # fields in the order of their numbers: name, shape, data, need_grad
        need_grad = b""
        if head.need_grad:
            need_grad = message("Parameter", need_grad=True).SerializeToString()
        head.need_grad = False
        body = head.SerializeToString()
        if values:
            body += _varint(_DATA << 3 | _BYTES) + _varint(len(values)) + values
        body += need_grad
        parts += [_varint(_PARAMETER << 3 | _BYTES), _varint(len(body)), body]
    return b"".join(parts)


#: float32 has all whole numbers up to this one.
_WHOLE: Final = 2**24


def require_floats(name: str, entry: Entry) -> None:
    """Refuse arrays that float32 numbers, which are all that messages hold, do not stand for.

    Whole numbers that float32 has, such as the step counters in states of solvers, are taken.

    Raises:
        DTypeError: when they are no floating-point numbers, and too large for float32 or no numbers at all.
    """
    values = entry.values
    is_whole = values.dtype.kind in "iu" and (values.size == 0 or -_WHOLE <= values.min() <= values.max() <= _WHOLE)
    if values.dtype.kind != "f" and not is_whole:
        raise DTypeError(
            f"array {name} must hold floating-point numbers to be in an NNP message, got {entry.values.dtype}\n"
            "  hint: .h5 holds any numbers"
        )


def entry_of(parameter: Any, values: Array, file: str, index: int) -> Entry:
    """Return the entry of a Parameter message with `values`.

    Raises:
        FileFormatError: when the name is missing, or the shape has another number of elements.
    """
    shape = tuple(parameter.shape.dim)
    if not parameter.variable_name:
        raise FileFormatError(f"{file}: parameters must have names, got one without")
    what = f"{file}: parameter {parameter.variable_name!r}"
    return Entry(in_shape(values, shape, what), {"need_grad": parameter.need_grad, "index": index})


def in_shape(values: Array, shape: tuple[int, ...], what: str) -> Array:
    """Return values in the shape that a file gives them.

    Raises:
        FileFormatError: when no array has this shape, or not so many elements; the error begins with `what`.
    """
    if len(shape) > _MOST_AXES:
        raise FileFormatError(f"{what} must have at most {_MOST_AXES} axes, got {len(shape)}")
    if any(dim < 0 for dim in shape) or prod(shape) != values.size:
        raise FileFormatError(f"{what} of shape {shape} must have as many values, got {values.size}")
    try:
        return values.reshape(shape)
    except ValueError as error:  # no elements, and a length beyond any array
        raise FileFormatError(f"{what} must have a shape of an array, got {shape}") from error


def _parameter(view: memoryview, file: str, index: int) -> tuple[str, Entry]:
    head = bytearray()
    chunks: list[Array] = []
    for number, kind, start, body, end in _fields(view, file):
        if number != _DATA or kind not in (_BYTES, _FIXED32):
            head += view[start:end]
        elif (end - body) % 4:
            raise FileFormatError(f"{file}: values of parameters must be whole float32 numbers, got {end - body} bytes")
        else:
            chunks.append(np.frombuffer(view[body:end], "<f4"))
    parsed = classes()["Parameter"]()
    try:
        parsed.ParseFromString(bytes(head))
    except Exception as error:
        raise FileFormatError(f"{file}: parameters must be whole messages, got: {one_line(error)}") from error
    values = np.concatenate(chunks) if chunks else np.empty(0, np.float32)
    return parsed.variable_name, entry_of(parsed, values.astype(np.float32, copy=False), file, index)


def _fields(view: memoryview, file: str) -> Iterator[tuple[int, int, int, int, int]]:
    """Return number, wire type, and the places where a field, its content and the next field start."""
    place = 0
    while place < len(view):
        start = place
        tag, place = _read_varint(view, place, file)
        number, kind = tag >> 3, tag & 7
        body = place
        if kind == _VARINT:
            _, place = _read_varint(view, place, file)
        elif kind == _BYTES:
            length, body = _read_varint(view, place, file)
            place = body + length
        elif kind in (_FIXED32, _FIXED64):
            place += 4 if kind == _FIXED32 else 8
        else:
            raise FileFormatError(f"{file}: the file must be an NNP message, got a field of wire type {kind}")
        if place > len(view) or number == 0:
            end = f"ends at byte {place} of {len(view)}"
            raise FileFormatError(f"{file}: the file must be whole, got field {number} that {end}")
        yield number, kind, start, body, place


def _read_varint(view: memoryview, place: int, file: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(view):
            break
        byte = view[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise FileFormatError(f"{file}: the file must be whole, got a number that does not end")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
