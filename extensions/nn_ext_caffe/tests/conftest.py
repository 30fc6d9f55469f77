"""A scope of parameters for each test, and the reference backend."""

import pytest

import nn_core as nn


@pytest.fixture(autouse=True)
def _own_scope():
    with nn.parameter_scope("", {}), nn.context_scope(nn.Context(["reference:float"])):
        yield
