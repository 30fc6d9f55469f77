"""Graphs of their own in several threads at once: built, run and trained, they give what they give alone."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.graph import call
from nn_core.ext_utils import list_extensions

N_THREADS, STEPS = 3, 25


@pytest.fixture(params=["reference", "cpu"])
def backend(request):
    """Each of the backends that a host can have."""
    if request.param not in list_extensions():
        pytest.skip(f"no package brings the backend {request.param}")
    return request.param


@pytest.fixture(autouse=True)
def eager_switches():
    """Let threads take turns a thousand times as often as usual."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(interval)


def at_once(work, n_threads=N_THREADS):
    """Results of ``work(number)`` in that many threads, which start together; what one raises is raised here."""
    results, errors = [None] * n_threads, []
    barrier = threading.Barrier(n_threads)

    def run(number):
        barrier.wait()
        try:
            results[number] = work(number)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def drawn(rng):
    """An initializer that draws from a generator of its own."""
    return lambda shape: rng.standard_normal(shape).astype(np.float32) * 0.3


def classifier(x, rng, test=False):
    """Convolutions, normalization, pooling and affine layers: (B, 2, 8, 8) -> (B, 3)."""
    h = PF.convolution(x, 8, (3, 3), pad=(1, 1), w_init=drawn(rng), name="conv1")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=not test, name="conv1")), (2, 2))
    h = F.tanh(PF.convolution(h, 8, (3, 3), pad=(1, 1), w_init=drawn(rng), name="conv2") + h)
    return PF.affine(F.average_pooling(h, (2, 2)), 3, w_init=drawn(rng), name="fc")


def images(number):
    """A batch, of a size of its own for each thread but the last, which has that of the first."""
    return np.random.default_rng(number).random((4 + number % (N_THREADS - 1), 2, 8, 8), np.float32)


def inference(number, backend, shared=False):
    """The outputs for changing images, of a graph that is built here."""
    rng = np.random.default_rng(0 if shared else number)
    scope = "shared" if shared else f"net{number}"
    with nn.context_scope(nn.Context([backend])), nn.parameter_scope(scope):
        x = nn.Variable(images(number).shape)
        y = classifier(x, rng, test=True)
    outputs = []
    for step in range(STEPS):
        x.d = images(number) * (1 + step)
        y.forward(clear_buffer=True)
        outputs.append(y.d.copy())
    return np.array(outputs)


def training(number, backend, dynamic):
    """The losses of a training whose graph and parameters are made here."""
    rng = np.random.default_rng(number)
    x, t = nn.Variable(images(number).shape), nn.Variable((len(images(number)), 1))
    x.d, t.d = images(number), rng.integers(3, size=t.shape)
    losses = []
    with (
        nn.context_scope(nn.Context([backend])),
        nn.parameter_scope(f"training{number}", {}),
        nn.auto_forward(dynamic),
    ):
        loss = F.mean(F.softmax_cross_entropy(classifier(x, rng), t))
        solver = S.Adam(0.01)
        solver.set_parameters(nn.get_parameters())
        for _ in range(STEPS):
            if dynamic:
                loss = F.mean(F.softmax_cross_entropy(classifier(x, rng), t))
            else:
                loss.forward(clear_no_need_grad=True)
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
            losses.append(float(loss.d))
    return losses


def test_inference_in_threads_gives_what_it_gives_alone(backend):
    alone = [inference(number, backend) for number in range(N_THREADS)]
    for found, true in zip(at_once(lambda number: inference(number, backend)), alone, strict=True):
        np.testing.assert_array_equal(found, true)


def test_graphs_over_the_same_parameters_run_in_threads(backend):
    alone = [inference(number, backend, shared=True) for number in range(N_THREADS)]
    for found, true in zip(at_once(lambda number: inference(number, backend, shared=True)), alone, strict=True):
        np.testing.assert_array_equal(found, true)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_training_in_threads_gives_what_it_gives_alone(backend, dynamic):
    alone = [training(number, backend, dynamic) for number in range(N_THREADS)]
    assert all(losses[-1] < losses[0] for losses in alone)
    assert at_once(lambda number: training(number, backend, dynamic)) == alone


def test_caches_that_overflow_in_one_thread_leave_the_others_right(backend, monkeypatch):
    monkeypatch.setattr(call._CALLS, "_max_entries", 5)
    alone = [training(number, backend, True) for number in range(N_THREADS)]
    assert at_once(lambda number: training(number, backend, True)) == alone


def test_threads_with_other_contexts_get_the_kernels_of_their_own(backend):
    def work(number):
        context = nn.Context([f"reference:{('double', 'float', 'half')[number]}" if number != 1 else backend])
        with nn.context_scope(context), nn.auto_forward():
            return {F.tanh(nn.Variable((3,))).data.dtype.name for _ in range(300)}

    assert at_once(work) == [{"float64"}, {"float32"}, {"float16"}]


def test_parameters_that_threads_make_at_the_same_moment_are_one():
    def work(_):
        with nn.parameter_scope("together"):
            return [PF.affine(nn.Variable((2, 3)), 4, name=f"layer{k}").parent.inputs[1].data for k in range(50)]

    first, *others = at_once(work)
    for found in others:
        assert all(a is b for a, b in zip(found, first, strict=True))


FIRST_USE = """
import sys, threading
import nn_core as nn
import nn_core.functions as F
sys.setswitchinterval(5e-6)
nn.set_default_context(nn.Context([sys.argv[1]]))
found, barrier = [], threading.Barrier(4)
def work():
    barrier.wait()
    x = nn.Variable((2, 3), need_grad=True)
    x.d = 1
    y = F.sum(F.affine(x, nn.Variable.from_numpy_array([[1.0], [2.0], [3.0]])))
    x.grad.zero()
    y.forward()
    y.backward()
    found.append((float(y.d), x.g.sum().item()))
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(found == [(12.0, 12.0)] * 4)
"""


def test_threads_may_be_the_first_to_use_a_backend(backend):
    command = [sys.executable, "-W", "error", "-c", FIRST_USE, backend]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "True\n"


def test_a_graph_that_another_thread_computes_is_refused():
    inside, go_on = threading.Event(), threading.Event()

    def wait(_):
        inside.set()
        assert go_on.wait(30)

    x = nn.Variable.from_numpy_array(np.ones(3), need_grad=True)
    x.grad.zero()
    y = F.sum(F.tanh(x) * 2)
    y.forward()
    y.backward()
    expected = x.g.copy()
    other = threading.Thread(target=lambda: y.forward(function_pre_hook=wait))
    other.start()
    assert inside.wait(30)
    try:
        with pytest.raises(nn.errors.GraphError, match=r"forward: a graph must be computed by one thread at a time, got"):
            y.forward()
        with pytest.raises(nn.errors.GraphError, match=r"(?s)backward: a graph must be .*hint: build a graph in each thread"):
            y.backward()
        z = F.sum(F.tanh(x) * 2)  # another graph of the same leaf
        z.forward()
        assert z.d == np.float32(2) * np.tanh(np.ones(3, np.float32)).sum()
    finally:
        go_on.set()
        other.join()
    x.grad.zero()
    y.forward()
    y.backward()
    assert np.array_equal(x.g, expected)


def test_hooks_may_compute_their_own_graph():
    y = F.sum(nn.Variable.from_numpy_array(np.ones(3)) * 2)
    y.forward()
    calls = []

    def hook(_):
        if not calls:
            calls.append(1)
            y.forward()

    y.forward(function_post_hook=hook)
    assert (y.d, calls) == (6.0, [1])
