"""NNB files of five networks beside those that NNabla 1.39's converter writes of them (tools/nnabla/nnabla_networks.py).

The order of functions of branching networks, and so the buffers that variables share, may be other ones.
"""

import struct
from pathlib import Path

import numpy as np
import pytest

from nn_ext_nnp.document import read_document
from nn_ext_nnp.nnb.binary import Reader
from nn_ext_nnp.nnb.codes import stated_codes
from nn_ext_nnp.nnb.functions import by_number
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnb.writing import nnb_bytes

DATA = Path(__file__).with_name("data") / "nnb"
NAMES = sorted(path.stem for path in DATA.glob("*.nnb"))
#: In a chain of functions there is one order, and one way to share buffers.
CHAINS = ("lenet", "separable")


def both(name):
    return nnb_bytes(read_document(DATA / f"{name}.protobuf"), NnbOptions()), (DATA / f"{name}.nnb").read_bytes()


def described(data):
    """Variables by identifier, functions in an order of their own, inputs and outputs."""
    reader = Reader(data, "the file")
    variables = {
        number: (variable.shape, variable.type, variable.fraction, variable.data)
        for number, variable in map(reader.variable, reader.listed("variables"))
    }
    functions = []
    for index in reader.listed("functions"):
        function, rest = reader.function(index)
        settings = reader.settings(rest, stated_codes(by_number()[function.number].name))
        functions.append((function.number, function.implement, function.inputs, function.outputs, settings))
    return variables, sorted(functions), reader.listed("inputs"), reader.listed("outputs")


def test_there_are_five_networks():
    assert NAMES == ["dense", "lenet", "residual", "separable", "shapes"]


@pytest.mark.parametrize("name", NAMES)
def test_headers_are_those_of_nnabla_but_for_the_level(name):
    ours, theirs = (struct.unpack_from("<14i", data) for data in both(name))
    assert ours[:1] + ours[2:] == theirs[:1] + theirs[2:]
    assert ours[1] <= theirs[1]


@pytest.mark.parametrize("name", NAMES)
def test_lists_and_weights_are_those_of_nnabla(name):
    ours, theirs = map(described, both(name))
    assert ours == theirs
    assert any(data is not None and np.frombuffer(data, "<f4").any() for _, _, _, data in ours[0].values())


@pytest.mark.parametrize("name", NAMES)
def test_buffers_are_no_larger_than_those_of_nnabla(name):
    ours, theirs = (Reader(data, name).listed("buffers") for data in both(name))
    assert sum(ours) <= sum(theirs)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_have_the_bytes_of_nnabla(name):
    ours, theirs = both(name)
    assert ours[:4] + ours[8:] == theirs[:4] + theirs[8:]
