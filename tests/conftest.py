"""Shared fixtures: fixed seeds, the reference backend, and no state carried from one test to the next."""

import gc
import os
import zlib

import hypothesis
import numpy as np
import pytest

import nn_core as nn

# Files that tests write themselves are read without a trial in another process; tests/unit/test_files.py tests the trial.
os.environ.setdefault("NN_CORE_TRUST_HDF5", "1")

# The same examples in every run, however busy the machine is.
hypothesis.settings.register_profile(
    "repeatable",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("repeatable")

# What collecting makes is kept: looking for garbage among it again and again is an eighth of the time.
gc.disable()


def pytest_collection_finish() -> None:
    """Keep the many objects of the tests themselves out of garbage collections, which some tests ask for at each step."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def fixed_seed(request: pytest.FixtureRequest) -> None:
    """Seed NumPy's and nn_core's random numbers from the test's id."""
    seed = zlib.crc32(request.node.nodeid.encode())
    np.random.seed(seed)
    nn.seed(seed)


@pytest.fixture(autouse=True)
def reference_context():
    """Run on the reference backend, without parameters of other tests; tests of other backends open a scope of their own."""
    nn.clear_parameters()  # those of extensions leave theirs
    with nn.context_scope(nn.Context(["reference:float"])):
        yield
    nn.clear_parameters()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded from the test's id."""
    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))
