"""Operators that grow: what files of NNabla have no place for is refused, and not left out."""

import pytest

from nn_core.ext import function_spec
from nn_core.testing.growth import check_exporter
from nn_ext_nnp.saving import create_proto
from nn_ext_nnp.schema import functions

NAMES = sorted(name for name in functions() if function_spec(name) is not None)


def proto(outputs, inputs):
    network = {"name": "net", "batch_size": 1, "outputs": outputs, "names": inputs}
    return create_proto({"networks": [network]}, variable_batch_size=False).SerializeToString()


@pytest.mark.parametrize("part", range(4))
def test_an_operator_that_has_grown(part):
    known = [check_exporter(proto, function_spec(name)) for name in NAMES[part::4]]
    assert sum(known) > 0.9 * len(known)
