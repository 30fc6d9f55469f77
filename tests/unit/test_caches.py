"""Caches: one budget in bytes, trimming, clearing, reports, and image sizes without end."""

import subprocess
import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.call import _CALLS
from nn_core.engine.runtime import caches
from nn_core.engine.runtime.caches import Cache, KeyedCache, balance, register_cache
from nn_core.errors import ArgumentError
from nn_core.settings import cache_mb, set_cache_mb


@pytest.fixture(autouse=True)
def own_caches(monkeypatch):
    monkeypatch.setattr(caches, "_CACHES", dict(caches._CACHES))
    before = cache_mb()
    yield
    set_cache_mb(before)


def test_the_oldest_entries_make_room():
    set_cache_mb(8)
    cache = KeyedCache("test", entry_bytes=2**18, max_entries=1000)  # the half of 8 MB holds 16
    for number in range(100):
        cache.store(number, str(number))
        assert cache.n_bytes() <= 8 * 2**20
    assert 99 in cache
    assert 0 not in cache


def test_the_number_of_entries_is_bounded_too():
    cache = KeyedCache("test", entry_bytes=1, max_entries=10)
    for number in range(25):
        cache.store(number, number)
        assert len(cache) <= 10
    assert list(cache)[-1] == 24


def test_a_cache_that_bounds_itself_gets_the_rest():
    limits = []
    set_cache_mb(10)
    register_cache(Cache("own", lambda: None, lambda: 0, lambda: None, limits.append))
    assert 5 * 2**20 <= limits[-1] <= 10 * 2**20
    kept = KeyedCache("test", entry_bytes=2**20, max_entries=100)
    before = limits[-1]
    for number in range(3):
        kept.store(number, number)
    balance()
    assert limits[-1] <= before - 2 * 2**20


def test_a_smaller_budget_applies_at_once():
    cache = KeyedCache("test", entry_bytes=2**20, max_entries=1000)
    for number in range(64):
        cache.store(number, number)
    assert len(cache) == 64
    set_cache_mb(16)
    assert 0 < len(cache) <= 8


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "64"])
def test_wrong_budgets(wrong):
    with pytest.raises(ArgumentError, match="set_cache_mb: megabytes must be an integer of at least 1, got"):
        set_cache_mb(wrong)


def test_cleared_caches_are_filled_again():
    x = nn.Variable.from_numpy_array(np.array([1.0, -2.0]), need_grad=True)
    x.grad.zero()
    y = F.sum(F.relu(x * 3))
    y.forward()
    y.backward()
    nn.clear_caches()
    assert len(_CALLS) == 0
    assert {report.n_bytes for report in caches.caches()} == {0}
    y.forward()
    y.backward()
    assert (y.d.item(), x.g.tolist()) == (3.0, [6.0, 0.0])
    F.sum(F.relu(x * 5)).forward()
    assert len(_CALLS) > 0


SIZES = """
import numpy as np, nn_core as nn, nn_core.functions as F, nn_core.parametric_functions as PF
from nn_core.engine.runtime import caches
from nn_core.ext_utils import get_extension_context
nn.set_default_context(get_extension_context("cpu"))

def net(x):
    h = F.relu(PF.convolution(x, 128, (3, 3), pad=(1, 1), stride=(2, 2), name="a"))
    h = F.relu(PF.convolution(h, 128, (3, 3), pad=(2, 2), dilation=(2, 2), name="b"))
    return F.mean(PF.convolution(h, 256, (1, 1), name="c"))

def memory():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20

def run(number):
    x = nn.Variable.from_numpy_array(np.zeros((1, 64, 8 + number % 20, 8 + number // 20), np.float32))
    if number % 2:
        y = net(x)
        for _ in range(3):
            y.forward(clear_buffer=True)
    else:
        with nn.auto_forward(), nn.no_grad():
            for _ in range(3):
                net(x)

run(0), run(1)
start = memory()
for number in range(300):
    run(number)
print(sum(report.n_bytes for report in caches.caches()) / 2**20, memory() - start)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_three_hundred_image_sizes_stay_within_the_budget():
    pytest.importorskip("nn_ext_cpu")
    result = subprocess.run(
        [sys.executable, "-c", SIZES],
        env={"NN_CORE_CACHE_MB": "48", "NN_CORE_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    counted, grown = map(float, result.stdout.split())
    assert counted <= 48
    assert grown <= 48 + 32  # what the allocator and oneDNN's own cache keep besides
