"""Everything that one or more files say together: messages, parameters, states of solvers."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

import numpy as np

from nn_core.ext import Entry, FileFormatError, naming_file, one_line, open_to_read, read_entries
from nn_ext_nnp.archive import Member, as_file, read_archive
from nn_ext_nnp.codec import parse_bytes, parse_text, require_known_functions
from nn_ext_nnp.places import TextFile
from nn_ext_nnp.schema import message
from nn_ext_nnp.wire import entry_of, split_parameters

#: Extensions of NNabla's files.
OWN_EXTENSIONS: Final = (".nnp", ".nntxt", ".prototxt", ".protobuf", ".h5", ".nnb")
Source: TypeAlias = str | os.PathLike[str] | IO[bytes]


@dataclass(slots=True)
class Document:
    """The result of reading.

    Attributes:
        proto: the messages of all texts, without parameters.
        parameters: values and attributes by name.
        states: entries of files with states of solvers, by the name of the file.
        name: of the first file, with all texts, for messages.
    """

    proto: Any = field(default_factory=lambda: message("NNablaProtoBuf"))
    parameters: dict[str, Entry] = field(default_factory=dict)
    states: dict[str, Mapping[str, Entry]] = field(default_factory=dict)
    name: TextFile = field(default_factory=lambda: TextFile("the file"))


def read_document(
    sources: Source | Sequence[Source],
    extension: str = ".nntxt",
    with_parameters: bool = True,
    batch_size: int | None = None,
    dimensions: Mapping[str, int] | None = None,
) -> Document:
    """Read files of networks and parameters, which are taken together.

    Args:
        sources: paths, or binary files of the format `extension`.
        extension: format of open files.
        with_parameters: whether to read parameters.
        batch_size: see `nn_ext_nnp.exchange.read_other`; without effect on NNabla's files.
        dimensions: likewise.

    Raises:
        ArgumentError: when a file has another extension, for which there is no package either.
        FileFormatError: when it is damaged, or says what there is not.
        FileNotFoundError: when there is none.
    """
    listed: list[Source] = list(sources) if isinstance(sources, (list, tuple)) else [sources]  # type: ignore[list-item]
    document = Document()
    for position, source in enumerate(listed):
        is_path = isinstance(source, (str, os.PathLike))
        name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else str(getattr(source, "name", "the file"))
        if position == 0:
            document.name = TextFile(name)
        kind = Path(name).suffix.lower() if is_path else extension
        with naming_file(source), _opened(source) as file:
            if kind in OWN_EXTENSIONS:
                _add(document, kind, file, name, with_parameters)
            else:
                from nn_ext_nnp.exchange import read_other  # it gives documents itself

                content = name if is_path else file.read()
                _take_over(document, read_other(content, name, kind, batch_size, dimensions), with_parameters)
    return document


def _opened(source: Source) -> AbstractContextManager[IO[bytes]]:
    return open_to_read(source) if isinstance(source, (str, os.PathLike)) else nullcontext(source)


def _add(document: Document, extension: str, file: IO[bytes], name: str, with_parameters: bool) -> None:
    if extension == ".nnp":
        for member in read_archive(file, name):
            _add_member(document, member, f"{name}/{member.name}", with_parameters)
    elif extension in (".nntxt", ".prototxt", ".protobuf", ".h5"):
        _add_member(document, Member(f"x{extension}", file.read()), name, with_parameters)
    else:
        from nn_ext_nnp.nnb.reading import read_nnb  # it gives documents itself

        _take_over(document, read_nnb(file.read(), name), with_parameters)


def _take_over(document: Document, found: Document, with_parameters: bool) -> None:
    document.proto.MergeFrom(found.proto)
    document.parameters.update(found.parameters if with_parameters else {})


def _add_member(document: Document, member: Member, name: str, with_parameters: bool) -> None:
    extension = member.extension
    if extension in (".nntxt", ".prototxt"):
        add_message(document, parse_text(member.data, name), name, member.data)
        document.name.add(name, member.data)
    elif extension == ".protobuf":
        rest, parameters = split_parameters(member.data, name)
        add_message(document, parse_bytes(rest, name), name)
        document.parameters.update(parameters)
    elif extension == ".h5" and with_parameters:
        document.parameters.update(_in_order(read_entries(as_file(member, name), ".h5")))
    elif extension == ".optimizer" and ".h5" in member.name:
        document.states[member.name] = read_entries(as_file(member, name), ".h5")
    elif extension == ".optimizer":
        add_message(document, parse_bytes(member.data, name), name)


def _in_order(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    try:
        return dict(sorted(entries.items(), key=lambda item: item[1].attributes.get("index", 0)))
    except TypeError as error:
        raise FileFormatError(f"the attributes index of parameters must be numbers, got: {one_line(error)}") from error


def add_message(document: Document, made: Any, name: str, text: bytes = b"") -> None:
    """Take over a message; its parameters become entries."""
    require_known_functions(made, name, text)
    for parameter in made.parameter:
        values = np.fromiter(parameter.data, np.float32, len(parameter.data))
        if parameter.variable_name in document.parameters:
            raise FileFormatError(f"{name}: parameters must have different names, got {parameter.variable_name!r} twice")
        document.parameters[parameter.variable_name] = entry_of(parameter, values, name, len(document.parameters))
    del made.parameter[:]
    document.proto.MergeFrom(made)
