"""Parameters in the formats of NNP: what ``save_parameters`` and ``load_parameters`` use."""

import io
from collections.abc import Mapping
from typing import IO

import numpy as np

from nn_core.ext import Entry, write_entries
from nn_ext_nnp.archive import Member, write_archive
from nn_ext_nnp.codec import print_text
from nn_ext_nnp.document import read_document
from nn_ext_nnp.schema import message
from nn_ext_nnp.wire import parameter_bytes, require_floats


def read_nnp(file: IO[bytes]) -> dict[str, Entry]:
    """Return the parameters of an archive."""
    return read_document(file, ".nnp").parameters


def write_nnp(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write an archive with parameters and no network."""
    write_archive(file, [Member("parameter.h5", h5_bytes(entries))])


def read_nntxt(file: IO[bytes]) -> dict[str, Entry]:
    """Return the parameters of a text."""
    return read_document(file, ".nntxt").parameters


def write_nntxt(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write a text with parameters and no network."""
    made = message("NNablaProtoBuf")
    for name, entry in entries.items():
        require_floats(name, entry)
        parameter = made.parameter.add(variable_name=name, need_grad=bool(entry.attributes.get("need_grad", True)))
        parameter.shape.dim.extend(entry.values.shape)
        parameter.shape.SetInParent()
        parameter.data.extend(np.asarray(entry.values, np.float32).ravel().tolist())
    file.write(print_text(made))


def read_protobuf(file: IO[bytes]) -> dict[str, Entry]:
    """Return the parameters of a binary message."""
    return read_document(file, ".protobuf").parameters


def write_protobuf(file: IO[bytes], entries: Mapping[str, Entry]) -> None:
    """Write a binary message with parameters and no network."""
    file.write(parameter_bytes(entries))


def h5_bytes(entries: Mapping[str, Entry]) -> bytes:
    """Parameters as the bytes of an HDF5 file."""
    file = io.BytesIO()
    write_entries(file, entries, ".h5")
    return file.getvalue()
