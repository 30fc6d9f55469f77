"""Long trainings: after ten thousand steps a process has the memory and the objects that it had after a few.

And long graphs: each function costs what it costs in a short one.
"""

import gc
import os
import time
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from benchmarks.workloads import image_sizes, stochastic_depth, tree_lstm
from nn_core.engine.graph import call, direct, replay, trace
from nn_core.engine.runtime.caches import clear_caches
from nn_core.ext_utils import list_extensions

WARM_UP, STEPS, IRREGULAR_STEPS = 1000, 10_000, 20_000
#: The allocator keeps what it has; a leak of 200 bytes a step is above this.
ALLOWED_BYTES = 2 * 2**20
#: Frames, weak references and the like come and go.
ALLOWED_OBJECTS = 100
STATM = Path("/proc/self/statm")


@pytest.fixture(params=["reference", "cpu"])
def backend(request):
    """Run on each of the backends that a host can have."""
    if request.param not in list_extensions():
        pytest.skip(f"no package brings the backend {request.param}")
    with nn.context_scope(nn.Context([request.param])):
        yield


def network(x):
    """Affine layers, batch normalization and dropout: (B, 4) -> (B, 1)."""
    h = PF.batch_normalization(PF.affine(x, 8, name="hidden"), axes=[1], name="hidden")
    return PF.affine(F.dropout(F.tanh(h), 0.1), 1, name="out")


def static_step(rng):
    """A training step of a graph that is built once."""
    x, t = nn.Variable((8, 4)), nn.Variable((8, 1))
    loss = F.mean(F.squared_error(network(x), t))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = rng.random(x.shape), rng.random(t.shape)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def dynamic_step(rng, sizes=(8,)):
    """A training step that builds its graph, for a batch of one of these sizes."""
    network(nn.Variable((8, 4)))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())

    def step():
        size = int(rng.choice(sizes))
        x, t = (nn.Variable.from_numpy_array(rng.random((size, length))) for length in (4, 1))
        with nn.auto_forward():
            loss = F.mean(F.squared_error(network(x), t))
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def rebuilt_step(rng):
    """A training step that builds a static graph, whose loss it asks for a second derivative."""
    network(nn.Variable((8, 4)))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())

    def step():
        x = nn.Variable.from_numpy_array(rng.random((8, 4)), need_grad=True)
        y = network(x)
        (gradient,) = nn.grad([y], [x])
        loss = F.mean(gradient**2) + F.mean(y)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def resident_bytes():
    """Resident memory of this process."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def state():
    """Resident bytes, and objects that the garbage collector knows."""
    gc.collect()
    return resident_bytes(), len(gc.get_objects())


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="reads the resident memory from /proc")
@pytest.mark.parametrize(
    ("make", "divisor"),
    [
        pytest.param(static_step, 1, id="static"),
        pytest.param(dynamic_step, 1, id="dynamic"),
        pytest.param(lambda rng: dynamic_step(rng, range(1, 65)), 1, id="sizes"),
        pytest.param(rebuilt_step, 10, id="rebuilt"),
    ],
)
def test_memory_and_objects_do_not_grow(make, divisor, backend, rng):
    step = make(rng)
    for _ in range(WARM_UP):
        step()
    n_bytes, n_objects = state()
    for _ in range(STEPS // divisor):
        step()
    more_bytes, more_objects = state()
    assert more_objects - n_objects < ALLOWED_OBJECTS
    assert more_bytes - n_bytes < ALLOWED_BYTES


#: Of caches, so that they are full long before the first look.
LIMITS = ((trace, "MAX_NODES"), (direct, "MAX_SEEN"), (replay, "MAX_TEMPLATES"))


@pytest.mark.slow
@pytest.mark.skipif(not STATM.exists(), reason="reads the resident memory from /proc")
@pytest.mark.parametrize(
    ("workload", "sizes"),
    [
        pytest.param(stochastic_depth, {"WIDTH": 4, "BATCH": 4}, id="layers"),
        pytest.param(tree_lstm, {"WIDTH": 4, "WORDS": 20, "SIZES": range(2, 9)}, id="trees"),
        pytest.param(image_sizes, {"BATCH": 1, "CHANNELS": (2,), "LENGTHS": range(4, 200)}, id="images"),
    ],
)
def test_memory_is_bounded_where_nearly_every_graph_is_new(workload, sizes, backend, monkeypatch):
    for name, size in sizes.items():
        monkeypatch.setattr(workload, name, size)
    for module, name in LIMITS:
        monkeypatch.setattr(module, name, 64)
    monkeypatch.setattr(call._CALLS, "_max_entries", 64)
    step = workload.nn_core()
    for _ in range(WARM_UP):
        step()
    clear_caches()
    n_bytes, n_objects = state()
    for _ in range(IRREGULAR_STEPS):
        step()
    assert len(call._CALLS) <= 65
    assert len(replay._TEMPLATES) <= 64
    assert len(direct._SEEN) <= 64
    assert trace._TREES[0].n_nodes <= 64 + trace.MAX_LENGTH
    clear_caches()
    more_bytes, more_objects = state()
    assert more_objects - n_objects < ALLOWED_OBJECTS
    assert more_bytes - n_bytes < ALLOWED_BYTES


def test_shapes_that_never_come_back_leave_the_caches_within_their_bounds(rng, monkeypatch):
    limit = 40
    clear_caches()
    monkeypatch.setattr(call._CALLS, "_max_entries", limit)
    monkeypatch.setattr(replay, "MAX_TEMPLATES", 8)
    step = dynamic_step(rng, range(1, 200))
    for _ in range(100):
        step()
    assert len(call._CALLS) <= limit + 1  # the oldest are dropped by the entry after the last
    assert len(replay._TEMPLATES) <= 8


def test_gradients_of_large_graphs_of_many_shapes_share_a_budget(rng, monkeypatch):
    monkeypatch.setattr(replay, "MAX_BYTES", 1)
    step = dynamic_step(rng, range(1, 10))  # each comes back, and is compiled then
    for _ in range(60):
        step()
    assert len(replay._TEMPLATES) == replay.MIN_TEMPLATES


def test_a_leak_is_seen():
    before = state()
    kept = [nn.Variable.from_numpy_array(np.ones(2)) for _ in range(2000)]
    kept.append(nn.Variable.from_numpy_array(np.ones(2**24, np.float32)))  # too large for memory that was free before
    after = state()
    assert len(kept) == 2001
    assert after[1] - before[1] > ALLOWED_OBJECTS
    assert after[0] - before[0] > ALLOWED_BYTES


def seconds_per_function(length, dynamic):
    """Processor time of building, running and differentiating a chain, for each function."""
    x = nn.Variable.from_numpy_array(np.ones(4), need_grad=True)
    x.grad.zero()
    gc.collect()
    start = time.process_time()
    with nn.auto_forward(dynamic):
        y = x
        for _ in range(length):
            y = F.tanh(y)
    if not dynamic:
        y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    return (time.process_time() - start) / length


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_the_time_of_a_chain_of_32000_functions_is_linear(backend, dynamic):
    seconds_per_function(100, dynamic)
    short = min(seconds_per_function(2000, dynamic) for _ in range(3))
    assert seconds_per_function(32_000, dynamic) < 4 * short  # it was 2 at most; a quadratic part would make it 16
