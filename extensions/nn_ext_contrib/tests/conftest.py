"""A scope of parameters for each test."""

import pytest

import nn_core as nn


@pytest.fixture(autouse=True)
def _own_scope():
    with nn.parameter_scope("", {}):
        yield
