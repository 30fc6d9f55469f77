"""The cluster that the tests share."""

import os
from collections.abc import Iterator

import pytest

# Before Ray is imported: a cluster of its own, no token in the home folder, no report to Ray's makers, no devices hidden
# from later workers.
os.environ.update(RAY_ADDRESS="local", RAY_AUTH_MODE="disabled")
os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """Two cores of this machine."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
