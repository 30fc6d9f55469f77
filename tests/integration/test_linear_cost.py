"""The work that Python does for a graph grows with the number of its functions, and not faster."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import list_extensions
from tests.calls import n_calls

FEW, MANY = 80, 320
#: Calls a function may be more in the larger graph; what is quadratic has several times as many.
ALLOWED = 1.05


@pytest.fixture(params=["reference", "cpu"], autouse=True)
def backend(request):
    """Run on each of the backends that a host can have."""
    if request.param not in list_extensions():
        pytest.skip(f"no package brings the backend {request.param}")
    with nn.context_scope(nn.Context([request.param])):
        yield


def chain(x, count):
    for _ in range(count):
        x = F.tanh(x)
    return x


def sums(x, count):
    total = x
    for _ in range(count // 2):
        total = total + F.tanh(x)
    return total


def layers(x, count):
    for _ in range(count):
        x = F.affine(x, nn.Variable.from_numpy_array(np.eye(4, dtype=np.float32), need_grad=True))
    return x


def shapes(x, count):
    parts = [F.sin(F.broadcast(F.sum(x), (1, 1 + k))) for k in range(count // 4)]
    return F.sum(F.concatenate(*parts, axis=1))


def static_passes(build, count):
    x = nn.Variable((4, 4), need_grad=True)
    y = build(x, count)
    for _ in range(3):
        y.forward(clear_no_need_grad=True)
        x.grad.zero()
        y.backward(clear_buffer=True)
    y.forward()
    y.forward(clear_buffer=True)


def dynamic_passes(build, count):
    x = nn.Variable((4, 4), need_grad=True)
    for _ in range(2):
        with nn.auto_forward():
            y = build(x, count)
        x.grad.zero()
        y.backward(clear_buffer=True)


@pytest.mark.parametrize("build", [chain, sums, layers, shapes])
@pytest.mark.parametrize("passes", [static_passes, dynamic_passes])
def test_work_for_a_function_does_not_grow_with_the_graph(build, passes):
    passes(build, FEW)  # fills the caches
    passes(build, MANY)
    assert n_calls(passes, build, MANY) / MANY < ALLOWED * n_calls(passes, build, FEW) / FEW


def test_growing_work_is_seen():
    def quadratic(count):
        return [any(k < 0 for k in range(count)) for _ in range(count)]

    assert n_calls(quadratic, MANY) / MANY > ALLOWED * n_calls(quadratic, FEW) / FEW
