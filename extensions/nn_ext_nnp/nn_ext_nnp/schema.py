"""Classes of messages, made from the tables when they are first used; no compiler and no generated module."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from nn_ext_nnp.functions import FUNCTIONS
from nn_ext_nnp.messages import MESSAGES, SOLVERS

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS: Final = {
    "s": _Field.TYPE_STRING,
    "i": _Field.TYPE_INT64,
    "u": _Field.TYPE_UINT32,
    "b": _Field.TYPE_BOOL,
    "f": _Field.TYPE_FLOAT,
    "d": _Field.TYPE_DOUBLE,
}
_FIRST_FUNCTION: Final = 1001
_FIRST_SOLVER: Final = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """A function or a solver.

    Attributes:
        name: "Convolution".
        field: its parameter field, "convolution_param"; None when it has none.
        settings: names of its settings and their types.
        number: number of the parameter field.
    """

    name: str
    field: str | None
    settings: dict[str, str]
    number: int


@cache
def functions() -> dict[str, Kind]:
    """Return the functions of NNP files by name."""
    return {kind.name: kind for kind in _kinds(FUNCTIONS, _FIRST_FUNCTION)}


@cache
def solvers() -> dict[str, Kind]:
    """Return the solvers of NNP files by name."""
    return {kind.name: kind for kind in _kinds(SOLVERS, _FIRST_SOLVER)}


@cache
def file_descriptor() -> descriptor_pb2.FileDescriptorProto:
    """Return the description of all messages."""
    file = descriptor_pb2.FileDescriptorProto(name="nn_ext_nnp.proto", syntax="proto3")
    for line in _lines(MESSAGES):
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for field in filter(None, map(str.strip, fields.split(","))):
            field_name, number, kind = re.split("[= ]", field)
            _add_field(message, field_name, int(number), kind)
    by_name = {message.name: message for message in file.message_type}
    for owner, kinds in (("Solver", solvers()), ("Function", functions())):
        _add_kinds(file, by_name[owner], kinds)
    return file


@cache
def classes() -> dict[str, type[Any]]:
    """Classes of messages by name; in a pool of their own, so that NNabla's may be loaded beside them."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file_descriptor().SerializeToString())
    found = pool.FindFileByName("nn_ext_nnp.proto")
    return {name: message_factory.GetMessageClass(d) for name, d in found.message_types_by_name.items()}


def message(kind: str, /, **fields: Any) -> Any:
    """Return a message of the class `kind`."""
    made: Message = classes()[kind](**fields)
    return made


def _lines(table: str) -> Iterator[str]:
    return (line for line in re.sub(r"\n +", " ", table).splitlines() if line)


def _kinds(table: str, first: int) -> Iterator[Kind]:
    for offset, line in enumerate(_lines(table)):
        head, colon, settings = line.partition(":")
        name, stem = head.split()
        pairs = dict(setting.split(":") for setting in settings.split())
        yield Kind(name, f"{stem}_param" if colon else None, pairs, first + offset)


def _add_kinds(file: Any, owner: Any, kinds: dict[str, Kind]) -> None:
    owner.oneof_decl.add(name="parameter")
    for kind in kinds.values():
        if kind.field is None:
            continue
        parameter = file.message_type.add(name=f"{kind.name}Parameter")
        for number, (name, code) in enumerate(kind.settings.items(), 1):
            _add_field(parameter, name, number, code)
        _add_field(owner, kind.field, kind.number, parameter.name).oneof_index = 0


def _add_field(message: Any, name: str, number: int, code: str) -> Any:
    field = message.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
    if code.endswith("*"):
        field.label = _Field.LABEL_REPEATED
    code = code.removesuffix("*")
    if code.startswith("{"):
        entry = message.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "s")
        _add_field(entry, "value", 2, code.strip("{}"))
        field.label = _Field.LABEL_REPEATED
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{message.name}.{entry.name}"
    elif code in _SCALARS:
        field.type = _SCALARS[code]
    else:
        field.type, field.type_name = _Field.TYPE_MESSAGE, f".{code}"
    return field
