"""The engine passes the admission test on two workers."""

import itertools
from functools import cache

import pytest

from nn_core.testing.engines import *  # noqa: F403 # its tests

ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
pytest.importorskip("nn_ext_ray", reason="nn-ext-ray is not installed: make test-ray")

from nn_ext_ray.cluster import Worker  # noqa: E402 # imports Ray
from nn_ext_ray.engine import RayEngine  # noqa: E402
from nn_ext_ray.meeting import Meeting  # noqa: E402
from nn_ext_ray.rank import RayRank  # noqa: E402

SIZE = 2
_numbers = itertools.count()

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@cache
def ranks():
    worker = ray.remote(Worker).options(num_cpus=0)
    return ray.remote(Meeting).options(num_cpus=0).remote(), [worker.remote() for _ in range(SIZE)]


def run_ranks(program):
    meeting, workers = ranks()
    group = f"world {next(_numbers)}"
    places = [RayRank(rank, ["here"] * SIZE, meeting) for rank in range(SIZE)]

    def call(place):  # inside, so that workers get it by value and need not import this file
        return program(RayEngine(place, group))

    return ray.get([worker.run.remote(place, call, (place,)) for worker, place in zip(workers, places, strict=True)])
