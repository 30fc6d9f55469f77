"""The budget of reading a file, and how a program raises it."""

import io
import re
import struct
import zipfile
from dataclasses import fields
from pathlib import Path

import h5py
import numpy as np
import pytest

import nn_core
from nn_core.errors import ArgumentError, FileFormatError
from nn_core.files import Budget, budget, read_entries, reading_budget

SECURITY = Path(nn_core.__file__).parents[1] / "SECURITY.md"


def safetensors(shape):
    header = ('{"w": {"dtype": "F32", "shape": [' + shape + '], "data_offsets": [0, 4]}}').encode()
    return struct.pack("<Q", len(header)) + header + bytes(4)


def npz():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("w.npy", "w") as member:
        np.lib.format.write_array(member, np.zeros(100_000, np.float32))
    return file.getvalue()


def deep_h5(depth):
    file = io.BytesIO()
    with h5py.File(file, "w") as made:
        made["/".join("g" * depth)] = np.ones(3)
    return file.getvalue()


FILES = {
    "digits": (".safetensors", lambda: safetensors("1"), 1),
    "text_bytes": (".safetensors", lambda: safetensors("1"), 1000),
    "expansion": (".npz", npz, 1100),
    "depth": (".h5", lambda: deep_h5(12), 30),
}


@pytest.mark.parametrize("part", FILES)
def test_what_needs_more_is_refused_and_read_with_a_larger_budget(part):
    extension, make, enough = FILES[part]
    with reading_budget(**{part: 0}), pytest.raises(FileFormatError):
        read_entries(io.BytesIO(make()), extension)
    with reading_budget(**{part: enough}):
        assert read_entries(io.BytesIO(make()), extension)


def test_the_message_names_the_part_and_the_way_to_raise_it():
    with pytest.raises(FileFormatError, match=r"digits of an integer must .*, digits 19, got 31\n  hint: .*\(digits=31\)"):
        read_entries(io.BytesIO(safetensors("1" + "0" * 30)), ".safetensors")
    with pytest.raises(FileFormatError, match=r"got 123456\n.*nodes=130000"), reading_budget(nodes=3):
        budget().require("nodes", 123_456, "functions")


def test_wrong_budgets_are_refused():
    with pytest.raises(ArgumentError, match=r"reading_budget: must have arguments among expansion, .*, got 'memory'"):
        reading_budget(memory=3)
    for wrong in (-1, 2.5, True, None, "3"):
        with pytest.raises(ArgumentError, match="reading_budget: depth must be a whole number of at least 0, got"):
            reading_budget(depth=wrong)


def test_budgets_nest_and_end_with_their_block():
    with reading_budget(digits=30), reading_budget(depth=3):
        assert (budget().digits, budget().depth) == (30, 3)
    assert budget() == Budget()


def test_the_defaults_are_those_of_the_security_page():
    rows = re.findall(r"\| `(\w+)` \| ([\d,]+) \|", SECURITY.read_text(encoding="utf-8"))
    assert {name: int(most.replace(",", "")) for name, most in rows} == {
        entry.name: getattr(Budget(), entry.name) for entry in fields(Budget)
    }
