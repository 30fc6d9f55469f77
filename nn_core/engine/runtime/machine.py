"""Limits of the processors and the memory that this process may take.

Control groups are what containers, batch systems and systemd set limits with; both versions of Linux's interface are read. The
limits of a group hold for the groups inside it, so all from the process's own to the root of what can be seen count.
"""

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")


def cpu_quota(root: Path = _ROOT) -> float | None:
    """Return how many processors' time the control groups of this process leave it, or None.

    Args:
        root: Folder that holds `proc` and `sys`.
    """
    quotas = [_quota(text) for text in _readings(root, "cpu", ["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"])]
    return min((quota for quota in quotas if quota is not None), default=None)


def memory_limit(root: Path = _ROOT) -> int | None:
    """Return how many bytes the control groups of this process leave it, or None.

    Args:
        root: Folder that holds `proc` and `sys`.
    """
    limits = [int(text) for text in _readings(root, "memory", ["memory.max"], ["memory.limit_in_bytes"]) if text.isdigit()]
    return min((limit for limit in limits if limit < 2**62), default=None)  # version 1 writes no limit as a large number


def physical_memory() -> int | None:
    """Return how many bytes of memory the machine has, or None where it does not say."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def allowed_processors() -> Sequence[int]:
    """Return the numbers of the processors that this process is bound to; cpusets are part of that."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)


def processor_limits() -> Iterator[tuple[int, str]]:
    """Yield what limits the threads that can compute at the same time, each with its name.

    These are the cores among `allowed_processors`, and what `cpu_quota` leaves, rounded up.
    """
    cores = _cores(allowed_processors())
    yield cores, f"{cores} cores that this process may use"
    quota = cpu_quota()
    if quota is not None:
        yield math.ceil(quota), f"a quota of {quota:g} processors"


def _cores(cpus: Sequence[int], root: Path = _ROOT) -> int:
    """Count the cores among processors; two hyper-threads of a core compute no faster than one."""
    found = set()
    for cpu in cpus:
        topology = root / "sys/devices/system/cpu" / f"cpu{cpu}" / "topology"
        found.add((_text(topology / "physical_package_id"), _text(topology / "core_id")))
    return len(cpus) if any(None in core for core in found) else len(found)


def _quota(text: str) -> float | None:
    """Return the quota that ``<microseconds> <period>`` means; ``max`` and -1 stand for none."""
    time, period = text.split()
    return int(time) / int(period) if time.isdigit() and int(period) > 0 else None


def _readings(root: Path, controller: str, unified: Sequence[str], split: Sequence[str]) -> Iterator[str]:
    """Yield what the files of all groups of this process say, in one line for each group."""
    for line in (_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            mounts, names = ["", "unified"], unified
        elif controller in controllers.split(","):
            mounts, names = [controllers, controller], split
        else:
            continue
        for mount in mounts:
            folder = root / "sys/fs/cgroup" / mount
            inner = folder / group.lstrip("/")
            for place in (inner, *inner.parents):
                texts = [_text(place / name) for name in names]
                if None not in texts:
                    yield " ".join(text for text in texts if text is not None)
                if place == folder:
                    break


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None
