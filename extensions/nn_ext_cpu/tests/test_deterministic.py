"""The same bits on one, two and three threads in deterministic mode, and while other threads call the same kernels.

Both for the samples of all operators and for large arrays.
"""

import threading
from collections.abc import Callable

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_core.settings import is_deterministic, set_deterministic
from nn_core.testing.cases import Case, _prepared, cases
from nn_core.testing.expected import floating
from nn_core.testing.kernels import KernelRun

THREADS = (1, 2, 3)


@pytest.fixture
def deterministic():
    threads, before = nn.num_threads(), is_deterministic()
    set_deterministic(True)
    yield
    set_deterministic(before)
    nn.set_num_threads(threads or 1)


def bits_of_kernels(case: Case) -> list[bytes]:
    run = KernelRun(case)
    outputs, updated = run.forward()
    wanted = floating(case.spec, run.truth)
    runner = run.fused(wanted) if any(wanted) else None
    gradients = [] if runner is None else run.fused_backward(runner, outputs, wanted)
    return [array.tobytes() for array in (*outputs, *updated, *gradients) if array is not None]


@pytest.mark.slow
def test_samples_of_all_operators(deterministic):
    found: dict[str, set[tuple[bytes, ...]]] = {}
    for threads in THREADS:
        nn.set_num_threads(threads)
        _prepared.cache_clear()
        for case in cases(["cpu"], fast=False):
            if not case.spec.has("seeded") and not case.spec.has("dynamic_shape"):
                found.setdefault(str(case), set()).add(tuple(bits_of_kernels(case)))
    assert len(found) > 1000
    assert [name for name, bits in found.items() if len(bits) > 1] == []


def arrays(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [nn.Variable.from_numpy_array(rng.normal(size=shape).astype(np.float32), need_grad=True) for shape in shapes]


def images(function, *shapes, **arguments):
    return lambda: (inputs := arrays(*shapes), function(*inputs, **arguments))


CALLS = {
    "convolution": images(F.convolution, (4, 32, 28, 28), (64, 32, 3, 3), (64,), pad=(1, 1)),
    "convolution_1x1": images(F.convolution, (4, 64, 28, 28), (64, 64, 1, 1)),
    "convolution_stride": images(F.convolution, (4, 16, 57, 57), (32, 16, 7, 7), (32,), stride=(2, 2)),
    "convolution_group": images(F.convolution, (4, 64, 28, 28), (64, 8, 3, 3), group=8),
    "depthwise": images(F.depthwise_convolution, (4, 64, 28, 28), (64, 3, 3)),
    "deconvolution": images(F.deconvolution, (4, 32, 14, 14), (32, 16, 4, 4), (16,), stride=(2, 2)),
    "affine": images(F.affine, (96, 700), (700, 500), (500,)),
    "affine_long": images(F.affine, (3, 20_000), (20_000, 7), (7,)),
    "batch_matmul": images(F.batch_matmul, (2, 300, 400), (2, 400, 300)),
    "batch_normalization": lambda: (
        inputs := arrays((8, 32, 28, 28), (1, 32, 1, 1), (1, 32, 1, 1)),
        F.batch_normalization(*inputs, nn.Variable((1, 32, 1, 1)), nn.Variable((1, 32, 1, 1))),
    ),
    "layer_normalization": images(F.layer_normalization, (512, 300), (1, 300), (1, 300)),
    "sum": images(F.sum, (500, 1000)),
    "sum_columns": images(F.sum, (5000, 64), axis=0),
    "mean": images(F.mean, (64, 64, 64), axis=(0, 2)),
    "norm": images(F.norm, (1000, 200)),
    "broadcast": images(F.mul2, (2000, 64), (1, 64)),
    "softmax": images(F.softmax, (500, 300)),
    "attention": images(F.scaled_dot_product_attention, (2, 4, 200, 32), (2, 4, 200, 32), (2, 4, 200, 32)),
    "embed": lambda: (
        inputs := arrays((50, 64)),
        F.embed(nn.Variable.from_numpy_array(np.arange(5000) % 50), inputs[0]),
    ),
    "average_pooling": images(F.average_pooling, (4, 32, 56, 56), kernel=(3, 3), stride=(2, 2)),
    "interpolate": images(F.interpolate, (4, 16, 32, 32), output_size=(57, 57), mode="linear"),
}


def bits(make) -> tuple[bytes, ...]:
    with nn.context_scope(get_extension_context("cpu")):
        inputs, y = make()
        y = y[0] if isinstance(y, tuple) else y
        for x in inputs:
            x.grad.zero()
        y.forward()
        y.backward(np.random.default_rng(1).normal(size=y.shape).astype(np.float32))
        return tuple(array.tobytes() for array in (y.d, *[x.g for x in inputs]))


def results(name: str) -> set[tuple[bytes, ...]]:
    found = set()
    for threads in THREADS:
        nn.set_num_threads(threads)
        found.add(bits(CALLS[name]))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_large_arrays(deterministic, name):
    assert len(results(name)) == 1


def at_once(work: Callable[[], object]) -> list[object]:
    """Call `work` in three threads that start together, and return the results."""
    results: list[object] = []
    barrier = threading.Barrier(3)

    def run() -> None:
        barrier.wait()
        results.append(work())

    threads = [threading.Thread(target=run) for _ in range(barrier.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.parametrize("name", CALLS)
def test_large_arrays_in_several_threads(name, two_threads):
    alone = bits(CALLS[name])
    assert at_once(lambda: bits(CALLS[name])) == [alone] * 3


@pytest.mark.parametrize("fast", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["one sample", "all samples"])
def test_kernels_that_several_threads_share(fast):
    ran = 0
    for case in cases(["cpu"], fast=fast):
        if case.dtype == "float32" and case.native and not case.spec.has("dynamic_shape"):
            ran += 1
            alone = bits_of_kernels(case)
            assert at_once(lambda case=case: bits_of_kernels(case)) == [alone] * 3, str(case)
    assert ran > 150


def test_a_graph_that_was_compiled_before(deterministic):
    set_deterministic(False)
    with nn.context_scope(get_extension_context("cpu")):
        inputs, y = CALLS["convolution"]()
        y.forward()
        y.backward()
        set_deterministic(True)
        found = set()
        for threads in THREADS:
            nn.set_num_threads(threads)
            for x in inputs:
                x.grad.zero()
            y.forward()
            y.backward()
            found.add(inputs[1].g.tobytes())
    assert len(found) == 1


def test_wrong_settings():
    with pytest.raises(nn.errors.ArgumentError, match="set_deterministic: deterministic must be True or False, got 1"):
        set_deterministic(1)
