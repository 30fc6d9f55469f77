"""The bytes of NNB files: a header, a table of offsets, and the items that it lists."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nn_core.ext import FileFormatError

#: Version, API level, size and place of five lists, number of items, and their size in all.
_HEADER: Final = struct.Struct("<14i")
_VARIABLE: Final = struct.Struct("<IiIB3xi")
_FUNCTION: Final = struct.Struct("<HHiIiI")
_WORD: Final = 4
VERSIONS: Final = (2, 3)
#: Functions with more inputs or settings than this are taken for damage.
_LISTS: Final = ("buffers", "variables", "functions", "inputs", "outputs")


@dataclass(slots=True)
class StoredVariable:
    """A variable in the file.

    Attributes:
        shape: its shape, the number of samples filled in.
        type: code of the type of its numbers.
        fraction: binary digits after the point of fixed-point numbers.
        data: bytes of a parameter; None of what is computed.
        buffer: number of the buffer of what is computed.
    """

    shape: tuple[int, ...]
    type: int = 0
    fraction: int = 0
    data: bytes | None = None
    buffer: int = 0


@dataclass(slots=True)
class StoredFunction:
    """A function in the file; inputs and outputs are numbers of variables."""

    number: int
    inputs: list[int]
    outputs: list[int]
    settings: list[bool | int | float | list[int]]
    codes: Sequence[str] = ()
    implement: int = 0


@dataclass(slots=True)
class StoredNetwork:
    """All that a file says."""

    version: int = 2
    level: int = 1
    buffers: list[int] = field(default_factory=list)
    variables: list[StoredVariable] = field(default_factory=list)
    functions: list[StoredFunction] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)


class _Items:
    """Items to write, each padded to words."""

    def __init__(self) -> None:
        self.items: list[bytes] = []

    def add(self, data: bytes) -> int:
        self.items.append(data + bytes(-len(data) % _WORD))
        return len(self.items) - 1

    def add_list(self, numbers: Sequence[int]) -> int:
        return self.add(struct.pack(f"<{len(numbers)}i", *numbers))


def pack(network: StoredNetwork) -> bytes:
    """Return the bytes of a file."""
    items = _Items()
    inputs, outputs = items.add_list(network.inputs), items.add_list(network.outputs)
    buffers = items.add_list(network.buffers)
    places = [_pack_variable(items, number, variable) for number, variable in enumerate(network.variables)]
    variables = items.add_list(places)
    functions = items.add_list([_pack_function(items, function) for function in network.functions])
    lists = (
        (len(network.buffers), buffers), (len(places), variables), (len(network.functions), functions),
        (len(network.inputs), inputs), (len(network.outputs), outputs),
    )  # fmt: skip
    offsets = [0]
    for item in items.items:
        offsets.append(offsets[-1] + len(item))
    head = _HEADER.pack(network.version, network.level, *sum(lists, ()), len(items.items), offsets[-1])
    return head + struct.pack(f"<{len(offsets) - 1}I", *offsets[:-1]) + b"".join(items.items)


def _pack_variable(items: _Items, number: int, variable: StoredVariable) -> int:
    shape = items.add_list(variable.shape)
    place = -(variable.buffer + 1) if variable.data is None else items.add(variable.data)
    code = variable.fraction << 4 | variable.type
    return items.add(_VARIABLE.pack(number, len(variable.shape), shape, code, place))


def _pack_function(items: _Items, function: StoredFunction) -> int:
    head = (
        function.number, function.implement,
        len(function.inputs), items.add_list(function.inputs), len(function.outputs), items.add_list(function.outputs),
    )  # fmt: skip
    packed = bytearray(_FUNCTION.pack(*head))
    for code, value in zip(function.codes, function.settings, strict=True):
        if code == "B":
            packed += struct.pack("<B", bool(value))
            continue
        packed += bytes(-len(packed) % _WORD)
        if isinstance(value, list):
            packed += struct.pack("<iI", len(value), items.add_list(value))
        else:
            packed += struct.pack("<f" if code == "f" else "<i", value)
    return items.add(bytes(packed))


class Reader:
    """The items of a file, each checked before it is used.

    Raises:
        FileFormatError: when the header, the table or an item do not fit the file.
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        if len(data) < _HEADER.size:
            raise self.error(f"the file must have at least {_HEADER.size} bytes", len(data))
        self.version, self.level, *lists, count, size = _HEADER.unpack_from(data)
        if self.version not in VERSIONS:
            raise self.error("the version must be 2 or 3", self.version)
        start = _HEADER.size + _WORD * count
        if count < 0 or size < 0 or start + size != len(data):
            raise self.error(f"{count} items of {size} bytes must fill the file", len(data))
        self._lists = dict(zip(_LISTS, zip(lists[::2], lists[1::2], strict=True), strict=True))
        offsets = struct.unpack_from(f"<{count}I", data, _HEADER.size)
        if any(a > b for a, b in zip(offsets, [*offsets[1:], size], strict=True)) or any(o % _WORD for o in offsets):
            raise self.error("items must follow each other within the file", "other offsets")
        self._spans = list(zip(offsets, [*offsets[1:], size], strict=True))
        self._data = memoryview(data)[start:]

    def error(self, rule: str, given: object) -> FileFormatError:
        """Return the error about something that does not hold."""
        return FileFormatError(f"{self.name}: {rule}, got {given}")

    def item(self, index: int) -> memoryview:
        """Return the bytes of an item."""
        if not 0 <= index < len(self._spans):
            raise self.error(f"items must be numbered from 0 to {len(self._spans) - 1}", index)
        start, end = self._spans[index]
        return self._data[start:end]

    def numbers(self, count: int, index: int) -> list[int]:
        """Return the numbers of a list."""
        if count == 0:
            return []
        item = self.item(index)
        if not 0 < count <= len(item) // _WORD:
            raise self.error(f"list {index} must have from 0 to {len(item) // _WORD} numbers", count)
        return list(struct.unpack_from(f"<{count}i", item))

    def listed(self, name: str) -> list[int]:
        """One of the lists of the header."""
        return self.numbers(*self._lists[name])

    def variable(self, index: int) -> tuple[int, StoredVariable]:
        """Return the identifier of a variable, and the variable."""
        item = self.item(index)
        if len(item) != _VARIABLE.size:
            raise self.error(f"a variable must have {_VARIABLE.size} bytes", len(item))
        number, count, shape, code, place = _VARIABLE.unpack(item)
        dims = tuple(self.numbers(count, shape))
        if min((0, *dims)) < 0:
            raise self.error("lengths of axes must be at least 0", dims)
        data = bytes(self.item(place)) if place >= 0 else None
        return number, StoredVariable(dims, code & 15, code >> 4, data, -place - 1)

    def function(self, index: int) -> tuple[StoredFunction, memoryview]:
        """Return a function without settings, and the bytes of these."""
        item = self.item(index)
        if len(item) < _FUNCTION.size:
            raise self.error(f"a function must have at least {_FUNCTION.size} bytes", len(item))
        number, implement, n_inputs, inputs, n_outputs, outputs = _FUNCTION.unpack_from(item)
        made = StoredFunction(number, self.numbers(n_inputs, inputs), self.numbers(n_outputs, outputs), [], (), implement)
        return made, item[_FUNCTION.size :]

    def settings(self, item: memoryview, codes: Sequence[str]) -> list[bool | int | float | list[int]]:
        """Return the settings of a function by their codes: B, i, f, and iI for a list."""
        found: list[bool | int | float | list[int]] = []
        place = 0
        for code in codes:
            place += 0 if code == "B" else -place % _WORD
            size = {"B": 1, "iI": 2 * _WORD}.get(code, _WORD)
            if place + size > len(item):
                raise self.error(f"settings must have the codes {' '.join(codes)}", f"{len(item)} bytes")
            if code == "B":
                found.append(bool(item[place]))
            elif code == "iI":
                found.append(self.numbers(*struct.unpack_from("<iI", item, place)))
            else:
                found.append(struct.unpack_from("<f" if code == "f" else "<i", item, place)[0])
            place += size
        return found
