"""Reading of plain HDF5 files without the HDF5 library: those that h5py writes by default, with arrays stored as they are.

The library may loop for ever or crash on damaged structures, so files of other writers are first read in a process of their
own, which takes longer than reading them. What is read here needs no trial: each offset is checked, each node is visited once,
and whatever is not exactly as expected is left to the library. The numbers of sections are those of the HDF5 File Format
Specification, version 3.0.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from nn_core.files.budgets import budget
from nn_core.files.entries import Array

_UNDEFINED: Final = 2**64 - 1
#: II.A with 8-byte offsets and lengths, from the signature to the address of the file's end, then the root group's entry.
_SUPERBLOCK: Final = struct.Struct("<8s 8B 2H I 4Q 2Q 2I 2Q")

#: Messages of object headers (IV.A.2) that are read, and those that say nothing about the contents.
_DATASPACE, _DATATYPE, _LAYOUT, _ATTRIBUTE, _CONTINUATION, _SYMBOL_TABLE = 0x1, 0x3, 0x8, 0xC, 0x10, 0x11
_IDLE: Final = frozenset({0x0, 0x4, 0x5, 0xE, 0x12})


class UnfamiliarError(Exception):
    """The file has something that is left to the library, or is damaged."""


class Group(NamedTuple):
    """A group.

    Attributes:
        attributes: Values by name.
        members: Addresses by name.
    """

    attributes: dict[str, Any]
    members: dict[str, int]


class Dataset(NamedTuple):
    """A dataset.

    Attributes:
        attributes: Values by name.
        values: A view of the file.
    """

    attributes: dict[str, Any]
    values: Array


def _float(size: int, exponent: int, mantissa: int) -> bytes:
    bias = 2 ** (exponent - 1) - 1
    head = bytes([0x11, 0x20, 8 * size - 1, 0]) + struct.pack("<I", size)
    return head + struct.pack("<2H4BI", 0, 8 * size, mantissa, exponent, 0, mantissa, bias)


def _integer(size: int, is_signed: bool) -> bytes:
    return bytes([0x10, 0x08 * is_signed, 0, 0]) + struct.pack("<I2H", size, 0, 8 * size)


#: Datatype messages (IV.A.2.d) of NumPy's little-endian numbers, and of booleans as h5py writes them: an enumeration.
_DTYPES: Final = {
    **{_float(*layout): np.dtype(f"<f{layout[0]}") for layout in ((2, 5, 10), (4, 8, 23), (8, 11, 52))},
    **{_integer(n, sign): np.dtype(f"<{'i' if sign else 'u'}{n}") for n in (1, 2, 4, 8) for sign in (True, False)},
    b"\x18\x02\0\0\x01\0\0\0" + _integer(1, True) + b"FALSE\0\0\0TRUE\0\0\0\0\0\x01": np.dtype(bool),
}
#: The class of strings of variable length, and the size of a reference to one.
_VARIABLE_LENGTH: Final = 0x19
_STRING: Final = 1
_REFERENCE: Final = struct.Struct("<IQI")


class PlainFile:
    """A file in memory.

    Args:
        contents: All of it; what follows the end that the file states is not looked at.

    Attributes:
        attributes: Those of the root group; known when all datasets are.

    Raises:
        UnfamiliarError: when it is not as expected; so does `datasets`.
    """

    def __init__(self, contents: memoryview) -> None:
        self.attributes: dict[str, Any] = {}
        self._contents = contents
        self._visited: set[int] = set()
        fields = self._unpack(_SUPERBLOCK, 0)
        (signature, *versions), (base, _, end, driver), (_, self._root) = fields[:5], fields[12:16], fields[16:18]
        sizes = fields[6:8]
        if signature != b"\x89HDF\r\n\x1a\n" or any(versions) or sizes != (8, 8) or base or driver != _UNDEFINED:
            raise UnfamiliarError("another version of the format")
        if end > len(contents):
            raise UnfamiliarError("cut off")
        self._contents = contents[:end]

    def datasets(self) -> Iterator[tuple[str, Dataset, Group]]:
        """Name, dataset and group of each dataset, in the order of names."""
        waiting: list[tuple[str, int, Group | None]] = [("", self._root, None)]
        while waiting:
            name, address, group = waiting.pop()
            item = self._item(address)
            if group is None:
                self.attributes = item.attributes
            if isinstance(item, Dataset):
                if group is None:
                    raise UnfamiliarError("no group at the root")
                yield name, item, group
                continue
            if name.count("/") >= budget().depth:
                raise UnfamiliarError("deep groups")
            inside = sorted(item.members.items(), reverse=True)
            waiting += [(f"{name}/{key}" if name else key, member, item) for key, member in inside]

    def _item(self, address: int) -> Group | Dataset:
        """Return the group or dataset whose object header is at an address."""
        messages = list(self._messages(address))
        kinds = {kind: body for kind, body in messages if kind != _ATTRIBUTE}
        attributes = dict(self._attribute(body) for kind, body in messages if kind == _ATTRIBUTE)
        if len(messages) != len(kinds) + len(attributes):
            raise UnfamiliarError("a message occurs twice")
        if kinds.keys() == {_SYMBOL_TABLE}:
            return Group(attributes, self._members(*struct.unpack_from("<2Q", kinds[_SYMBOL_TABLE])))
        if kinds.keys() != {_DATASPACE, _DATATYPE, _LAYOUT}:
            raise UnfamiliarError("neither a plain group nor a plain dataset")
        dtype, shape = self._dtype(kinds[_DATATYPE]), self._shape(kinds[_DATASPACE])
        return Dataset(attributes, self._stored(kinds[_LAYOUT], dtype, shape))

    def _messages(self, address: int) -> Iterator[tuple[int, memoryview]]:
        """Yield the messages of an object header of version 1 (IV.A.1.a), but for those that say nothing."""
        self._visit(address)
        version, _, n_messages, n_references, size = struct.unpack_from("<2BHII", self._bytes(address, 16))
        if version != 1 or n_references != 1:
            raise UnfamiliarError("another object header")
        blocks = [(address + 16, size)]
        while blocks:
            start, length = blocks.pop(0)
            block = self._bytes(start, length)
            position = 0
            while position + 8 <= length and n_messages:
                kind, size, flags = struct.unpack_from("<2HB", block, position)
                body = block[position + 8 : position + 8 + size]
                position += 8 + size
                n_messages -= 1
                if len(body) != size or flags & 0x2:
                    raise UnfamiliarError("a message in another place")
                if kind == _CONTINUATION:
                    blocks.append(struct.unpack_from("<2Q", body))
                    self._visit(blocks[-1][0])
                elif kind not in _IDLE:
                    yield kind, body
        if n_messages:
            raise UnfamiliarError("messages are missing")

    def _members(self, tree: int, heap: int) -> dict[str, int]:
        """Return the members of a group by name: a B-tree (III.A.1) of symbol nodes (III.B), with names in a heap (III.D)."""
        signature, version, size, _, start = struct.unpack_from("<4sB3x3Q", self._bytes(heap, 32))
        if signature != b"HEAP" or version:
            raise UnfamiliarError("another heap")
        names = self._bytes(start, size)
        found: dict[str, int] = {}
        for node in self._leaves(tree, None):
            self._visit(node)
            signature, version, count = struct.unpack_from("<4sBxH", self._bytes(node, 8))
            if signature != b"SNOD" or version != 1:
                raise UnfamiliarError("another symbol node")
            entries = self._bytes(node + 8, 40 * count)
            for position in range(0, 40 * count, 40):
                place, address, cached = struct.unpack_from("<2QI", entries, position)
                name = bytes(names[place : place + 1024]).partition(b"\0")[0].decode()
                if cached > 1 or not name or "/" in name or name in found:
                    raise UnfamiliarError("a link, or no name")
                found[name] = address
        return found

    def _leaves(self, address: int, level: int | None) -> Iterator[int]:
        self._visit(address)
        signature, kind, found, count = struct.unpack_from("<4s2BH", self._bytes(address, 24))
        if signature != b"TREE" or kind or (level is not None and found != level) or found > 16:
            raise UnfamiliarError("another tree")
        children = struct.unpack_from(f"<{2 * count + 1}Q", self._bytes(address + 24, 16 * count + 8))[1::2]
        for child in children:
            if found:
                yield from self._leaves(child, found - 1)
            else:
                yield child

    def _attribute(self, body: memoryview) -> tuple[str, Any]:
        """Return the name and the value of an attribute (IV.A.2.m)."""
        version, flags, *sizes = struct.unpack_from("<2B3H", body)
        if version not in (1, 3) or flags:
            raise UnfamiliarError("another attribute")
        position, parts = 8 if version == 1 else 9, []
        for size in sizes:
            parts.append(body[position : position + size])
            position += -(-size // 8) * 8 if version == 1 else size
        name = bytes(parts[0]).partition(b"\0")[0].decode()
        shape = self._shape(parts[2])
        data = body[position:]
        if parts[1][0] == _VARIABLE_LENGTH:
            if parts[1][1] & 0xF != _STRING or shape:
                raise UnfamiliarError("an attribute of several values")
            return name, self._string(*_REFERENCE.unpack_from(data))
        dtype = self._dtype(parts[1])
        return name, np.frombuffer(data, dtype, _count(shape)).reshape(shape)

    def _string(self, length: int, collection: int, index: int) -> str:
        """Return a string in a global heap (III.E)."""
        signature, version, size = struct.unpack_from("<4sB3xQ", self._bytes(collection, 16))
        if signature != b"GCOL" or version != 1:
            raise UnfamiliarError("another heap")
        heap, position = self._bytes(collection, size), 16
        while position + 16 <= size:
            number, n_bytes = struct.unpack_from("<H6xQ", heap, position)
            if number == index:
                text = heap[position + 16 : position + 16 + length]
                if number == 0 or length > n_bytes or len(text) != length:
                    break
                return bytes(text).decode()
            position += 16 + -(-n_bytes // 8) * 8
        raise UnfamiliarError("a string is missing")

    def _dtype(self, message: memoryview) -> np.dtype[Any]:
        for encoded, dtype in _DTYPES.items():
            if bytes(message[: len(encoded)]) == encoded and not any(message[len(encoded) :]):
                return dtype
        raise UnfamiliarError("another datatype")

    def _shape(self, message: memoryview) -> tuple[int, ...]:
        """Return the lengths in a dataspace message (IV.A.2.b)."""
        version, rank, flags, kind = struct.unpack_from("<4B", message)
        if (version, kind) not in ((1, 0), (2, 0), (2, 1)) or flags > 1 or rank > 32 or (version == 2 and kind != (rank > 0)):
            raise UnfamiliarError("another dataspace")
        return struct.unpack_from(f"<{rank}Q", message, 8 if version == 1 else 4)

    def _stored(self, message: memoryview, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Return the values at a place that a layout message (IV.A.2.i) states."""
        version, kind, address, size = struct.unpack_from("<2B2Q", message)
        count = _count(shape)
        if (version, kind) != (3, 1) or size != count * dtype.itemsize or (size and address == _UNDEFINED):
            raise UnfamiliarError("another layout")
        return np.frombuffer(self._bytes(address, size) if size else b"", dtype, count).reshape(shape)

    def _visit(self, address: int) -> None:
        if address in self._visited:
            raise UnfamiliarError("a part of the structure has two names")
        self._visited.add(address)

    def _bytes(self, start: int, size: int) -> memoryview:
        if start > len(self._contents) - size:
            raise UnfamiliarError("a part is beyond the end")
        return self._contents[start : start + size]

    def _unpack(self, layout: struct.Struct, start: int) -> tuple[Any, ...]:
        return layout.unpack(self._bytes(start, layout.size))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
