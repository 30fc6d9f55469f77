"""Limits of processors and memory, read from trees of files like those of Linux."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from nn_core.engine.runtime.machine import cpu_quota, memory_limit
from nn_core.settings import thread_limits

#: Files, the quota of processors, and the limit of memory in bytes.
TREES: tuple[tuple[Mapping[str, str], float | None, int | None], ...] = (
    ({}, None, None),
    ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "max 100000", "sys/fs/cgroup/memory.max": "max"}, None, None),
    ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "50000 100000", "sys/fs/cgroup/memory.max": "1048576"}, 0.5, 2**20),
    (  # the group outside has less
        {
            "proc/self/cgroup": "0::/job/step",
            "sys/fs/cgroup/job/step/cpu.max": "400000 100000",
            "sys/fs/cgroup/job/cpu.max": "150000 100000",
            "sys/fs/cgroup/job/memory.max": "2097152",
        },
        1.5,
        2**21,
    ),
    (  # version 1; a container sees its own group at the root
        {
            "proc/self/cgroup": "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1\n2:cpuset:/docker/1",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824",
        },
        2.0,
        2**30,
    ),
    (  # version 1 without limits
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu:/",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2**63 - 4096),
        },
        None,
        None,
    ),
)


@pytest.mark.parametrize(("files", "quota", "limit"), TREES)
def test_limits_of_control_groups(files: Mapping[str, str], quota: float | None, limit: int | None, tmp_path: Path) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    assert cpu_quota(tmp_path) == quota
    assert memory_limit(tmp_path) == limit


def test_limits_of_this_process_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3,2")
    limits = thread_limits()
    assert limits[-1] == (3, "OMP_NUM_THREADS=3")
    assert all(count >= 1 for count, _ in limits)
    if hasattr(os, "sched_getaffinity"):
        assert limits[0][0] <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1", "NN_CORE_NUM_THREADS": "5"}, 5),
        ({"OMP_NUM_THREADS": "many"}, None),
    ],
)
def test_threads_of_a_process(settings: Mapping[str, str], expected: int | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "NN_CORE_NUM_THREADS"}
    command = [sys.executable, "-c", "import nn_core as nn; print(nn.num_threads())"]
    shown = subprocess.run(command, env={**environment, **settings}, capture_output=True, text=True, check=True).stdout
    least = min(count for count, text in thread_limits() if not text.startswith("OMP"))
    assert int(shown) == (least if expected is None else expected)
