"""Texts and bytes of NNP messages, read strictly."""

import re
from typing import Any, Final

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from nn_core.ext import FileFormatError, budget, one_line
from nn_ext_nnp.places import line_at, position_of
from nn_ext_nnp.schema import functions, message

#: Functions of files that stand for the parts of loops.
LOOP_FUNCTIONS: Final = ("RepeatStart", "RepeatEnd", "RecurrentInput", "RecurrentOutput", "Delay")


def parse_text(data: bytes, file: str) -> Any:
    """Return the NNablaProtoBuf that a text says.

    As in NNabla, messages that a text has twice are joined, and of a number or a name the last one counts, so that texts may
    be put together.

    Raises:
        FileFormatError: when it is not UTF-8, or has a field that there is not; names the line.
    """
    budget().require("text_bytes", len(data), f"{file}: the text")
    # the parser takes 150 bytes of memory for each of them
    blanks = re.search(rb"[ \t\r\f\v]{%d}" % (budget().blanks + 1), data)
    if blanks is not None:
        start = blanks.start()
        budget().require("blanks", _blanks_from(data, start), f"{file}:{line_at(data, start)}: blanks in a row")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{file}: the text must be UTF-8, got {error}") from error
    made = message("NNablaProtoBuf")
    try:
        text_format.Merge(text, made)
    except text_format.ParseError as error:
        line = error.GetLine()
        where = f"{file}:{line}" if line else file
        raise FileFormatError(f"{where}: the text must be that of an NNP network, got: {one_line(error)}") from error
    except (RecursionError, ValueError) as error:  # nesting without end; numbers that fit no type
        raise FileFormatError(f"{file}: the text must be that of an NNP network, got: {one_line(error)}") from error
    return made


def _blanks_from(data: bytes, start: int) -> int:
    """Return how many blanks follow each other in a text."""
    found = re.compile(rb"[^ \t\r\f\v]").search(data, start)
    return (len(data) if found is None else found.start()) - start


def parse_bytes(data: bytes, file: str) -> Any:
    """Return the NNablaProtoBuf that bytes say; functions are numbered as in NNabla 1.39.

    Raises:
        FileFormatError: when they are damaged, or have a field that there is not.
    """
    made = message("NNablaProtoBuf")
    try:
        made.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise FileFormatError(f"{file}: the file must be whole and an NNP message, got: {one_line(error)}") from error
    unknown = _unknown_field(made)
    if unknown:
        raise FileFormatError(f"{file}: fields must be those of NNabla 1.39, got {unknown}")
    return made


def print_text(made: Any) -> bytes:
    """Return the text of a message, as NNabla writes it."""
    text: str = text_format.MessageToString(made, as_utf8=False)  # other letters as bytes in octal digits
    return text.encode()


def require_known_functions(made: Any, file: str, data: bytes = b"") -> None:
    """Refuse functions that there are not, all in one message.

    Raises:
        FileFormatError: names each with its place; with the line if `data` is the text.
    """
    unknown = [
        f"{function.type!r} ({function.name!r} in network {network.name!r}{_line_of(data, network.name, function)})"
        for network in made.network
        for function in network.function
        if function.type not in functions() and function.type not in LOOP_FUNCTIONS
    ]
    if unknown:
        raise FileFormatError(f"{file}: functions must be those of NNabla 1.39, got {', '.join(unknown)}")


def _line_of(data: bytes, network: str, function: Any) -> str:
    start = position_of(data, "function", function.name, network) or 0  # none if the name is not its first field
    found = data.find(f'type: "{function.type}"'.encode(), start)
    return "" if found < 0 else f", line {line_at(data, found)}"


def _unknown_field(made: Any, path: str = "") -> str:
    """Return the first field without a name in a message or in one inside it; "" when there is none."""
    from google.protobuf import unknown_fields  # only binary files need it

    for field in unknown_fields.UnknownFieldSet(made):
        return f"number {field.field_number} in {path or made.DESCRIPTOR.name}"
    for descriptor, value in made.ListFields():
        if descriptor.message_type is None:
            continue
        values = value.values() if descriptor.message_type.GetOptions().map_entry else value
        for item in values if descriptor.is_repeated else [value]:
            if not hasattr(item, "DESCRIPTOR"):
                continue
            unknown = _unknown_field(item, f"{path or made.DESCRIPTOR.name}.{descriptor.name}")
            if unknown:
                return unknown
    return ""
