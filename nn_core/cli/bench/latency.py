"""The times of single calls of small networks, alone and beside busy neighbours: ``nn-core bench --latency``."""

import itertools
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

import nn_core.functions as F
from nn_core.engine.runtime.children import python_command
from nn_core.variable import Variable

#: Calls of each network, and of a quick run.
CALLS: Final = 10_000
QUICK_CALLS: Final = 20
NEIGHBOURS: Final = 2
#: A process that keeps a core busy until its standard input ends.
_BUSY: Final = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()
while True:
    pass
"""


def _given(*shape: int) -> Variable:
    return Variable.from_numpy_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32) * 0.1)


def _dense() -> Variable:
    h = _given(1, 64)
    for _ in range(3):
        h = F.relu(F.affine(h, _given(64, 64), _given(64)))
    return F.softmax(F.affine(h, _given(64, 10), _given(10)), axis=1)


def _convolutional() -> Variable:
    h = F.relu(F.convolution(_given(1, 1, 28, 28), _given(16, 1, 5, 5), _given(16)))
    h = F.relu(F.convolution(F.max_pooling(h, (2, 2)), _given(32, 16, 5, 5), _given(32)))
    return F.affine(F.max_pooling(h, (2, 2)), _given(512, 10), _given(10))


def _recurrent() -> Variable:
    y, _, _ = F.lstm(_given(20, 1, 32), _given(1, 1, 1, 64), _given(1, 1, 1, 64), _given(1, 4, 64, 96))
    return F.affine(y, _given(64, 10), _given(10), base_axis=2)


#: Networks of one sample; what they compute does not matter.
NETWORKS: Final[Mapping[str, Callable[[], Variable]]] = {
    "dense, 4 layers of 64": _dense,
    "convolutional, 28 x 28": _convolutional,
    "LSTM of 64, 20 steps": _recurrent,
}


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Keep so many processes busy; they end with the block, and with this process."""
    processes = [subprocess.Popen(python_command(_BUSY), stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()


def microseconds(call: Callable[[], object], calls: int) -> list[float]:
    """Measure each call, after some that do not count."""
    for _ in range(max(calls // 100, 3)):
        call()
    stamps = [time.perf_counter_ns()]
    for _ in range(calls):
        call()
        stamps.append(time.perf_counter_ns())
    return [(end - start) / 1000 for start, end in itertools.pairwise(stamps)]


def percentile(times: Sequence[float], share: int) -> float:
    """Return the time that `share` percent of the calls do not exceed."""
    return sorted(times)[min(len(times) * share // 100, len(times) - 1)]


def run_latency(*, is_quick: bool = False) -> str:
    """Measure the forward pass of each network, and lay out the table.

    Args:
        is_quick: Take few calls.
    """
    calls = QUICK_CALLS if is_quick else CALLS
    lines = [f"{'microseconds a call, batch 1':<30}{'alone p50':>11}{'p99':>9}{f'{NEIGHBOURS} busy p50':>13}{'p99':>9}"]
    for name, build in NETWORKS.items():
        y = build()
        figures = []
        for count in (0, NEIGHBOURS):
            with busy_neighbours(count):
                times = microseconds(lambda y=y: y.forward(clear_buffer=True), calls)  # type: ignore[misc]
            figures += [percentile(times, 50), percentile(times, 99)]
        lines.append(f"{name:<30}{figures[0]:>11.1f}{figures[1]:>9.1f}{figures[2]:>13.1f}{figures[3]:>9.1f}")
    return "\n".join([*lines, f"{calls} calls of each; the neighbours are processes that never wait"])
