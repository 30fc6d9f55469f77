"""Values inside files whose checksums are right, for the lane of mutated files: networks, models, caches and tables.

Whoever writes such a file by a program of their own gets every checksum right. A field of a message, a member of an archive,
an array of a cache or a cell of a table is replaced by a hostile one or another one of the same file, left out, or doubled.
The file is loaded, and small networks are computed: either all of that works, or it ends in an error of nn_core.
"""

import csv
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

from nn_core.files import read_entries, write_entries

from . import damaged_networks

#: Changes a file in a folder.
Change = Callable[[Path, np.random.Generator], None]
#: Fields of messages by their kind in C++ (1 to 4: integers, 5 and 6: floating point, 7: booleans, 8: enumerations, 9: texts).
_INTEGERS: Final = (0, 1, -1, 2, 3, 7, 255, 2**31 - 1, -(2**31), 2**40, 2**62)
_FLOATS: Final = (0.0, -1.0, 0.5, 3.0, 1e38, float("nan"), float("inf"), -float("inf"))
_TEXTS: Final = (
    "",
    "x" * 300,
    "../x",
    "/etc/passwd",
    "a\x00b",
    "\n",
    "é",
    "0",
    "-1",
    "None",
    "%s{0}",
    "Affine",
    "Repeat",
    "Buffer",
)
#: Arrays instead of those of a cache or a table.
_ARRAYS: Final = (
    np.zeros(0), np.zeros((0, 3)), np.float32(1), np.ones((1, 1, 1, 1)), np.full(3, np.nan), np.array(["a", "b"]),
    np.ones(2, complex), np.array([None, {}]), np.zeros(2, [("a", "i4")]), np.array(["2020-01-01"], "M8[D]"),
    np.ones(25, np.uint64), np.ones((25, 2), bool),
)  # fmt: skip
_CELLS: Final = (
    "", "nan", "-inf", "1e400", "x", "../x.npy", "a.npy", "missing.npy", "/etc/passwd", "0x10", "1_000", "\x00", '"',
    "9" * 400, "1,2",
)  # fmt: skip


def changed_message(made: Any, rng: np.random.Generator) -> None:
    """Change one field of a protobuf message, or of one inside it."""
    places = list(_fields(made))
    owner, field = places[rng.integers(len(places))]
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        owner.ClearField(field.name)
    elif repeated:
        _change_list(made, getattr(owner, field.name), field, rng)
    elif field.message_type is not None or rng.integers(6) == 0:
        owner.ClearField(field.name)
    else:
        setattr(owner, field.name, _hostile(made, field, getattr(owner, field.name), rng))


def _change_list(made: Any, values: Any, field: Any, rng: np.random.Generator) -> None:
    place, action = int(rng.integers(len(values))), int(rng.integers(4))
    if action == 0:
        del values[place]
    elif action == 1:
        del values[:]
    elif action == 2:
        values.extend([values[place]] * int(rng.choice([1, 3, 20 if field.message_type else 2000])))
    elif field.message_type is not None:
        values[place].CopyFrom(values[int(rng.integers(len(values)))])
    else:
        values[place] = _hostile(made, field, values[place], rng)


def _fields(made: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the fields that are set in a message and in those inside it, each with its owner."""
    for field, value in made.ListFields():
        yield made, field
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for part in value if not hasattr(value, "ListFields") else [value]:
                yield from _fields(part)


def _hostile(made: Any, field: Any, value: Any, rng: np.random.Generator) -> Any:
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        others = [other for _, each in _leaves(made) for other in [each] if isinstance(other, type(value))]
        if rng.integers(2):
            return others[int(rng.integers(len(others)))]
        text = _TEXTS[int(rng.integers(len(_TEXTS)))]
        return text.encode() if isinstance(value, bytes) else text
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return _FLOATS[int(rng.integers(len(_FLOATS)))]
    if kind == field.CPPTYPE_BOOL:
        return not value
    if kind == field.CPPTYPE_ENUM:
        return field.enum_type.values[int(rng.integers(len(field.enum_type.values)))].number
    number = _INTEGERS[int(rng.integers(len(_INTEGERS)))]
    lowest, highest = _RANGES[kind]
    return min(max(number, lowest), highest)


def _leaves(made: Any) -> Iterator[tuple[str, Any]]:
    for owner, field in _fields(made):
        value = getattr(owner, field.name)
        if field.message_type is None:
            yield from ((field.name, each) for each in ([value] if isinstance(value, (str, bytes, int, float)) else value))


#: Smallest and largest number by the kind of an integer in C++: int32, int64, uint32, uint64.
_RANGES: Final = {1: (-(2**31), 2**31 - 1), 2: (-(2**63), 2**63 - 1), 3: (0, 2**32 - 1), 4: (0, 2**64 - 1)}


def _change_text(folder: Path, rng: np.random.Generator) -> None:
    path = folder / "net.nntxt"
    path.write_bytes(_changed_text(path.read_bytes(), rng))


def _changed_text(content: bytes, rng: np.random.Generator) -> bytes:
    from nn_ext_nnp.codec import parse_text, print_text  # the package is not part of nn_core

    made = parse_text(content, "net.nntxt")
    for _ in range(int(rng.choice([1, 1, 2]))):
        changed_message(made, rng)
    return print_text(made)


def _change_binary(folder: Path, rng: np.random.Generator) -> None:
    from nn_ext_nnp.codec import parse_bytes

    path = folder / "net.protobuf"
    made = parse_bytes(path.read_bytes(), "net.protobuf")
    changed_message(made, rng)
    path.write_bytes(made.SerializeToString())


def _change_archive(folder: Path, rng: np.random.Generator) -> None:
    """Change the text of an archive, an array of its parameters, or its list of members."""
    path = folder / "net.nnp"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    name = names[int(rng.integers(len(names)))]
    if name.endswith(".nntxt"):
        members[name] = _changed_text(members[name], rng)
    elif name.endswith(".h5"):
        members[name] = _changed_entries(members[name], rng)
    elif rng.integers(2):
        del members[name]
    else:
        members[_TEXTS[int(rng.integers(1, 5))]] = members.pop(name)
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


def _changed_entries(content: bytes, rng: np.random.Generator) -> bytes:
    entries = read_entries(io.BytesIO(content), ".h5")
    name = list(entries)[int(rng.integers(len(entries)))]
    array = _ARRAYS[int(rng.integers(5))]
    entries[name] = type(entries[name])(np.asarray(array), entries[name].attributes)
    file = io.BytesIO()
    write_entries(file, entries, ".h5")
    return file.getvalue()


def _change_model(folder: Path, rng: np.random.Generator) -> None:
    paths = sorted(folder.glob("*.onnx"))
    path = paths[int(rng.integers(len(paths)))]
    made = onnx.ModelProto()
    made.ParseFromString(path.read_bytes())
    changed_message(made, rng)
    path.write_bytes(made.SerializeToString())


def _change_runtime_file(folder: Path, rng: np.random.Generator) -> None:
    """Change a number, a list or the bytes of a parameter of a network for NNabla's C runtime, and pack it again."""
    from nn_ext_nnp.nnb.binary import pack

    path = folder / "net.nnb"
    content = path.read_bytes()
    while True:
        network = _unpacked(content)
        places = list(_stored_places(network))
        place = places[int(rng.integers(len(places)))]
        owner, key = place
        new = _other_stored(_stored(owner, key), [_stored(*other) for other in places], rng)
        if isinstance(owner, list):
            owner[key] = new
        else:
            setattr(owner, key, new)
        with suppress(struct.error, ValueError, TypeError):  # a word of the file could not hold it
            path.write_bytes(pack(network))
            return


def _unpacked(content: bytes) -> Any:
    """Return all that an NNB file says, with lists in place of tuples."""
    from nn_ext_nnp.nnb.binary import Reader, StoredNetwork
    from nn_ext_nnp.nnb.codes import stated_codes
    from nn_ext_nnp.nnb.functions import by_number

    reader = Reader(content, "net.nnb")
    lists = {name: reader.listed(name) for name in ("buffers", "variables", "functions", "inputs", "outputs")}
    variables, functions = [], []
    for index in lists["variables"]:
        _, variable = reader.variable(index)
        variable.shape = list(variable.shape)  # type: ignore[assignment]  # to be changed
        variables.append(variable)
    for index in lists["functions"]:
        function, rest = reader.function(index)
        codes = stated_codes(by_number()[function.number].name)
        functions.append(replace(function, codes=codes, settings=reader.settings(rest, codes)))
    return StoredNetwork(
        reader.version, reader.level, lists["buffers"], variables, functions, lists["inputs"], lists["outputs"]
    )


def _stored_places(made: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the owner and the index or name of each value of an NNB file, lists among them, but for the codes of settings."""
    keys = range(len(made)) if isinstance(made, list) else [field.name for field in fields(made) if field.name != "codes"]
    for key in keys:
        value = _stored(made, key)
        if not is_dataclass(value) and value is not None:
            yield made, key
        if isinstance(value, list) or is_dataclass(value):
            yield from _stored_places(value)


def _stored(owner: Any, key: Any) -> Any:
    return owner[key] if isinstance(owner, list) else getattr(owner, key)


def _other_stored(value: Any, others: list[Any], rng: np.random.Generator) -> Any:
    """Return another number, list or text of bytes: a hostile one, or half of the time one of the same file."""
    alike = [other for other in others if type(other) is type(value)]
    if isinstance(value, list):
        place = int(rng.integers(len(value) + 1))
        return [value[:place], value + value[:place] * int(rng.choice([1, 3, 300])), value[place:]][int(rng.integers(3))]
    if rng.integers(2):
        return alike[int(rng.integers(len(alike)))]
    if isinstance(value, bytes):
        return [b"", value[: len(value) // 2], value * 3, b"\xff" * len(value)][int(rng.integers(4))]
    if isinstance(value, bool):
        return not value
    numbers = _FLOATS if isinstance(value, float) else _INTEGERS
    return numbers[int(rng.integers(len(numbers)))]


def change_cache(folder: Path, rng: np.random.Generator) -> None:
    """Change an array of a cache, its index, or its names of variables, and write checksums that fit."""
    checksums = json.loads((folder / "cache_checksums.json").read_text())
    rows = checksums["files"]
    row = rows[int(rng.integers(len(rows)))]
    match int(rng.integers(4)):
        case 0:
            row[1] = _INTEGERS[int(rng.integers(len(_INTEGERS)))]
        case 1:
            row[0] = _TEXTS[int(rng.integers(len(_TEXTS)))]
        case 2:
            checksums["variables"] = [_TEXTS[int(rng.integers(len(_TEXTS)))], *checksums["variables"][int(rng.integers(3)) :]]
        case _:
            path = folder / row[0]
            path.write_bytes(_changed_arrays(path.read_bytes(), rng))
            row[2] = zlib.crc32(path.read_bytes())
    (folder / "cache_checksums.json").write_text(json.dumps(checksums))
    (folder / "cache_info.csv").write_text("".join(f"{name}\n" for name in checksums["variables"]))
    index = "".join(f"{name},{count}\n" for name, count, _ in rows)
    (folder / "cache_index.csv").write_text(index)


def _changed_arrays(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the arrays of a file of a cache, which follow each other, with another one among them."""
    read, file, arrays = io.BytesIO(content), io.BytesIO(), []
    while read.tell() < len(content):
        arrays.append(np.load(read))
    arrays[int(rng.integers(len(arrays)))] = np.asarray(_ARRAYS[int(rng.integers(len(_ARRAYS)))])
    for array in arrays:
        np.save(file, array, allow_pickle=True)
    return file.getvalue()


def change_table(folder: Path, rng: np.random.Generator) -> None:
    """Change a cell of a table, or an array that one of its cells names."""
    if rng.integers(3) == 0:
        np.save(folder / "a.npy", np.asarray(_ARRAYS[int(rng.integers(len(_ARRAYS)))]), allow_pickle=True)
        return
    path = folder / "t.csv"
    rows = list(csv.reader(io.StringIO(path.read_text())))
    row = rows[int(rng.integers(len(rows)))]
    row[int(rng.integers(len(row)))] = _CELLS[int(rng.integers(len(_CELLS)))]
    path.write_text("".join(",".join(cells) + "\n" for cells in rows))


def _judged(load: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Load; any contents count, since there is nothing to compare them with."""

    def run(folder: Path) -> None:
        load(folder)

    return run


def _save_binary(folder: Path) -> None:
    damaged_networks.KINDS[".nntxt"][0](folder)
    from nn_ext_nnp.codec import parse_text

    made = parse_text((folder / "net.nntxt").read_bytes(), "net.nntxt")
    (folder / "net.protobuf").write_bytes(made.SerializeToString())
    (folder / "net.nntxt").unlink()


#: How files are saved into a folder, loaded from it, and changed there, by kind.
KINDS: Final[Mapping[str, tuple[Callable[[Path], None], Callable[[Path], Any], Change]]] = {
    "values of .nntxt": (damaged_networks.KINDS[".nntxt"][0], damaged_networks.KINDS[".nntxt"][1], _change_text),
    "values of .protobuf": (
        _save_binary, _judged(lambda folder: damaged_networks.loaded(folder / "net.protobuf")), _change_binary
    ),
    "values of .nnp": (damaged_networks.KINDS[".nnp"][0], _judged(damaged_networks.KINDS[".nnp"][1]), _change_archive),
    "values of .nnb": (damaged_networks.KINDS[".nnb"][0], damaged_networks.KINDS[".nnb"][1], _change_runtime_file),
    "values of .onnx": (damaged_networks.KINDS[".onnx"][0], damaged_networks.KINDS[".onnx"][1], _change_model),
}  # fmt: skip
