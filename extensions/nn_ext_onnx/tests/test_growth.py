"""Operators that grow: what this package does not know of them is refused, and not left out."""

import pytest

from nn_core.ext import function_spec
from nn_core.testing.growth import check_exporter
from nn_ext_onnx import export_model
from nn_ext_onnx.exporting.topics import converters

CONVERTED = sorted(converters())


def model(outputs, inputs):
    return export_model(outputs, inputs, opset=21).SerializeToString()


@pytest.mark.parametrize("part", range(4))
def test_an_operator_that_has_grown(part):
    known = [check_exporter(model, function_spec(name)) for name in CONVERTED[part::4]]
    assert sum(known) > 0.9 * len(known)
