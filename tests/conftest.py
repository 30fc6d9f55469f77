"""What all tests share: fixed seeds, the reference backend, and no state carried from one test to the next."""

import zlib

import numpy as np
import pytest

import nn_core as nn


@pytest.fixture(autouse=True)
def fixed_seed(request: pytest.FixtureRequest) -> None:
    """Seed NumPy's and nn_core's random numbers from the test's id."""
    seed = zlib.crc32(request.node.nodeid.encode())
    np.random.seed(seed)
    nn.seed(seed)


@pytest.fixture(autouse=True)
def reference_context():
    """Run on the reference backend; tests of other backends open a scope of their own."""
    with nn.context_scope(nn.Context(["reference:float"])):
        yield
    nn.clear_parameters()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded from the test's id."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
