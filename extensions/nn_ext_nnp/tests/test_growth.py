"""Operators that grow: what files of NNabla have no place for is refused, and not left out."""

import pytest

from nn_core.ext import function_spec
from nn_core.testing.growth import check_exporter
from nn_ext_nnp.document import Document
from nn_ext_nnp.nnb.c_source import c_source
from nn_ext_nnp.nnb.options import NnbOptions
from nn_ext_nnp.nnb.writing import nnb_bytes
from nn_ext_nnp.saving import create_proto
from nn_ext_nnp.schema import functions

NAMES = sorted(name for name in functions() if function_spec(name) is not None)


def message(outputs, inputs):
    network = {"name": "net", "batch_size": 1, "outputs": outputs, "names": inputs}
    executor = {"name": "run", "network": "net", "data": list(inputs), "output": list(outputs)}
    return create_proto({"networks": [network], "executors": [executor]}, variable_batch_size=False)


def proto(outputs, inputs):
    return message(outputs, inputs).SerializeToString()


def nnb(outputs, inputs):
    return nnb_bytes(Document(message(outputs, inputs), name="net"), NnbOptions())


def source(outputs, inputs):
    return c_source(Document(message(outputs, inputs), name="net"), NnbOptions())


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize(("write", "share"), [(proto, 0.9), (nnb, 0.8), (source, 0.1)])
def test_an_operator_that_has_grown(write, share, part):
    known = [check_exporter(write, function_spec(name)) for name in NAMES[part::4]]
    assert sum(known) > share * len(known)
