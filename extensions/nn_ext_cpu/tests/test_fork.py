"""Children of fork() compute as their parent does, whatever its threads were doing at the time."""

import multiprocessing
import os
import signal
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
    pytest.mark.usefixtures("two_threads"),
    # Python warns of every fork of a process with threads, and this is about just those
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

#: A child that hangs is ended after so many seconds.
PATIENCE_S = 60


@pytest.fixture
def step():
    """One training step of a small convolutional net on the CPU backend; gives the loss."""
    rng = np.random.default_rng(3)
    with nn.context_scope(get_extension_context("cpu")), nn.parameter_scope("fork"):
        x = nn.Variable.from_numpy_array(rng.standard_normal((8, 3, 24, 24)))
        t = nn.Variable.from_numpy_array(rng.integers(0, 10, (8, 1)))
        h = F.relu(PF.batch_normalization(PF.convolution(x, 16, (3, 3), pad=(1, 1), name="c1"), name="b1"))
        h = F.relu(PF.convolution(h, 16, (5, 5), name="c2"))
        loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 10, name="f"), t))
        solver = S.Momentum(0.01)
        solver.set_parameters(nn.get_parameters())

    def run():
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        return float(loss.d)

    return run


def in_child(work):
    """The number that ``work()`` gives in a forked child; None when the child hangs or fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE_S)
        try:
            os.write(writer, repr(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return float(text) if text else None


def test_a_child_goes_on_where_the_parent_was(step):
    for _ in range(3):
        step()
    in_the_child = in_child(step)
    assert in_the_child == step()


def test_children_of_children_compute(step):
    step()
    assert in_child(lambda: in_child(step)) == step()


def test_the_parent_computes_in_parallel_after_a_fork(step):
    from nn_ext_cpu import _native

    before = [step(), in_child(step)]
    assert before[1] == step()
    assert _native.num_threads() == 2


def test_a_fork_while_other_threads_compute(step):
    step()
    stop = threading.Event()

    def compute():
        rng = np.random.default_rng(0)
        with nn.context_scope(get_extension_context("cpu")):
            w = nn.Variable.from_numpy_array(rng.standard_normal((8, 4, 3, 3)))
            while not stop.is_set():
                F.convolution(nn.NdArray.from_numpy_array(rng.standard_normal((2, 4, 16, 16))), w.data)

    workers = [threading.Thread(target=compute) for _ in range(2)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(10):
            assert in_child(step) == step()
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def _relu_of_ones(length):
    with nn.context_scope(get_extension_context("cpu")):
        return float(F.sum(F.relu(nn.NdArray.from_numpy_array(np.ones(length, np.float32)))).data)


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
@pytest.mark.slow
def test_pools_of_processes(method):
    assert _relu_of_ones(2**20) == 2**20
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(_relu_of_ones, [2**18] * 8).get(PATIENCE_S) == [2**18] * 8
