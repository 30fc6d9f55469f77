"""Networks whose values are all computed again are divided into segments, which takes less memory and gives the same bits."""

import gc

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph import memory
from nn_core.settings import without

#: A value has half a megabyte, so that what is saved counts.
SHAPE = (128, 1024)
N_BLOCKS = 16


def block(h):
    return F.tanh(F.sin(h * 1.5))


def in_a_row(h):
    for _ in range(N_BLOCKS):
        h = block(h)
    return h


def residual(h):
    for _ in range(N_BLOCKS):
        h = h + block(h)
    return h


def with_long_skips(h):
    kept = []
    for _ in range(N_BLOCKS // 2):
        h = block(h)
        kept.append(h)
    for skip in reversed(kept):
        h = block(h) * F.sigmoid(skip)
    return h


def with_views(h):
    for k in range(N_BLOCKS):
        h = F.reshape(block(h), SHAPE[:: 1 if k % 2 else -1])
    return h


NETWORKS = [in_a_row, residual, with_long_skips, with_views]


def trained(build, marked, clear=True):
    """Return the gradient, and the bytes of the plans of both passes."""
    gc.collect()
    before = sum(arena.n_bytes for arena in memory._ARENAS)
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=SHAPE).astype(np.float32), need_grad=True)
    with nn.recompute(marked):
        h = build(x)
    y = F.sum(h * h)
    for _ in range(2):
        x.grad.zero()
        y.forward(clear_no_need_grad=clear)
        y.backward(clear_buffer=clear)
    gc.collect()
    return x.g.copy(), sum(arena.n_bytes for arena in memory._ARENAS) - before


def are_dropped(y):
    """Return whether each of the marked values is dropped by a forward pass."""
    y.forward(clear_no_need_grad=True)
    dropped = []
    y.visit(lambda function: dropped.extend(v.data.clear_called for v in function.outputs if v.recompute))
    return dropped


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("build", NETWORKS)
def test_segments_give_the_same_bits(build, clear):
    expected, _ = trained(build, False)
    found, _ = trained(build, True, clear)
    assert (found == expected).all()


@pytest.mark.parametrize("build", [in_a_row, residual, with_views])
def test_a_whole_network_takes_the_memory_of_its_segments(build):
    _, whole = trained(build, False)
    _, divided = trained(build, True)
    with without("checkpoints"):
        _, undivided = trained(build, True)
    assert undivided > 0.9 * whole  # what the segments are there for
    assert divided < 0.6 * whole


def test_where_nothing_can_be_saved_nothing_is_kept():
    """Each value of the first half is read in the second: any division keeps what it would compute again."""
    with without("checkpoints"):
        _, undivided = trained(with_long_skips, True)
    _, divided = trained(with_long_skips, True)
    assert divided <= undivided


def test_blocks_of_the_program_stay_as_they_are():
    x = nn.Variable.from_numpy_array(np.ones(SHAPE, np.float32), need_grad=True)
    h = x
    for _ in range(4):
        with nn.recompute():
            h = block(h)
        h = F.relu(h)
    assert all(are_dropped(F.sum(h)))


def test_small_networks_drop_all_that_is_marked():
    x = nn.Variable.from_numpy_array(np.ones((4, 4), np.float32), need_grad=True)
    with nn.recompute():
        h = in_a_row(x)
    dropped = are_dropped(F.sum(h))
    assert len(dropped) == 3 * N_BLOCKS and all(dropped)


class _Squared(nn.PythonFunction):
    runs = 0

    def forward_impl(self, inputs, outputs):
        _Squared.runs += 1
        outputs[0].d = inputs[0].d ** 2

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = 2 * inputs[0].d * outputs[0].g + (inputs[0].g if accum[0] else 0)


def test_what_a_python_function_has_computed_is_kept_among_values_that_are_computed_again():
    x = nn.Variable((2, 3), need_grad=True)
    with nn.recompute():
        y = F.exp(_Squared()(F.tanh(x)))
    loss = F.sum(y)
    for length in (2, 4, 1):
        x.reset_shape((length, 3), force=True)
        x.d = np.linspace(-1, 1, 3 * length).reshape(length, 3)
        before = _Squared.runs
        loss.forward(clear_no_need_grad=True)
        x.grad.zero()
        loss.backward(clear_buffer=True)
        h = np.tanh(x.d)
        np.testing.assert_allclose(x.g, np.exp(h * h) * 2 * h * (1 - h * h), rtol=1e-5)
        assert _Squared.runs == before + 1
