"""Operators that grow: what this package does not know of them is refused, and not left out."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.graph.apply import apply
from nn_core.ext import ArgumentError, function_spec
from nn_core.testing.growth import ARGUMENT, check_exporter, grown
from nn_ext_c import export_source, quantize
from nn_ext_c.emitting.topics import emitters

AFFINE, RELU = function_spec("Affine"), function_spec("ReLU")
EMITTED = sorted(emitters())


def source(outputs, inputs):
    return str(export_source(outputs, inputs))


@pytest.mark.parametrize("part", range(4))
def test_an_operator_that_has_grown(part):
    known = [check_exporter(source, function_spec(name)) for name in EMITTED[part::4]]
    assert sum(known) > 0.9 * len(known)


@pytest.mark.parametrize("name", ["Affine", "ReLU"])
def test_an_operator_that_has_grown_in_integers(name):
    w = nn.Variable.from_numpy_array(np.ones((3, 2), np.float32))

    def network(**settings):
        x = nn.Variable((1, 3))
        y = apply(AFFINE, (x, w, *[None] * (len(AFFINE.inputs) - 2)), settings if name == "Affine" else {})
        y = apply(RELU, (y, *[None] * (len(RELU.inputs) - 1)), settings if name == "ReLU" else {})
        return quantize(y, [x], calibration=np.ones((4, 3), np.float32))

    with grown(function_spec(name)):
        assert network().outputs
        with pytest.raises(ArgumentError, match=f"{name}: reads the {name} of version 0.1, .*{ARGUMENT.name}"):
            network(**{ARGUMENT.name: 1.0})
