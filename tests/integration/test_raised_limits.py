"""The message of a refused file names a limit and its value; with that, the reader takes the file."""

import re
from dataclasses import fields

import pytest

import nn_core as nn
from nn_core.errors import FileFormatError
from nn_core.files import Budget, reading_budget
from tests.large_files import READERS

#: The limits that a small file of each kind meets when they are 0.
MET = {
    "f.safetensors": {"text_bytes", "digits", "depth"},
    "f.npz": {"expansion", "depth"},
    "f.h5": {"depth"},
    "rows.h5": set(),
    "f.pth": {"members", "text_bytes", "depth", "nodes"},
    "f.protobuf": {"depth"},
    "f.nntxt": {"text_bytes", "blanks"},
    "f.nnp": {"members", "text_bytes", "blanks"},
    "f.onnx": {"nodes"},
    "f.prototxt": {"text_bytes", "blanks", "nodes"},
    "f.csv": set(),
    "f.parquet": set(),
    "f.tar": set(),
    "checkpoint.npz": {"expansion", "depth"},
}
_HINT = re.compile(r"with nn_core\.files\.reading_budget\((\w+)=(\d+)\):")


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_a_file_with_the_limits_of_its_messages(name, tmp_path):
    make, _, program = READERS[name]
    path = tmp_path / name
    make(path, 5)
    names = {}
    exec(program, names)
    met = {part.name for part in fields(Budget) if _raised(names["read"], path, part.name)}
    assert met == MET[name]


def _raised(read, path, part):
    """Read a file with a limit of 0, raise what messages name, and tell whether any did."""
    most = {part: 0}
    for n_refused in range(20):
        try:
            with nn.parameter_scope("", {}), reading_budget(**most):
                read(path)
        except FileFormatError as error:
            found = _HINT.search(str(error))
            assert found, str(error)
            assert most.get(found[1], -1) < int(found[2])
            most[found[1]] = int(found[2])
        else:
            return n_refused > 0
    raise AssertionError(f"refused in spite of {most}")
