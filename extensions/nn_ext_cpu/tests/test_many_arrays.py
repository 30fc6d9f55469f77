"""Functions of very many inputs, and chains of very many functions: programs and fused passes have a limit on arrays."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


@pytest.fixture(autouse=True)
def on_the_cpu():
    with nn.context_scope(nn.Context(["cpu"])):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("count", [31, 32, 63, 64, 200])
def test_a_sum_of_many_inputs(count, rng):
    inputs = [nn.Variable.from_numpy_array(rng.random((3, 5), np.float32), need_grad=True) for _ in range(count)]
    for x in inputs:
        x.grad.zero()
    y = F.add_n(*inputs)
    y.forward()
    y.backward(2.0)
    np.testing.assert_allclose(y.d, sum(x.d for x in inputs), rtol=1e-5)
    assert all(np.array_equal(x.g, np.full((3, 5), 2.0)) for x in inputs)


@pytest.mark.parametrize("clear", [{}, {"clear_no_need_grad": True}, {"clear_buffer": True}], ids=["keep", "lean", "clear"])
def test_a_long_chain_is_joined_in_pieces_that_give_what_the_first_run_gave(clear, rng):
    x, other = (nn.Variable.from_numpy_array(rng.random((4, 7), np.float32), need_grad=True) for _ in range(2))
    h = [x]
    for k in range(300):
        h.append(F.tanh(h[-1]) if k % 3 else h[-1] + h[-k % 5 - 1] * other)
    y = F.sum(h[-1])
    results = []
    for _ in range(3):  # unbound, bound, bound
        x.grad.zero()
        other.grad.zero()
        y.forward(**clear)
        results.append([y.d.copy()])
        if "clear_buffer" not in clear:
            y.backward(clear_buffer=True)
            results[-1] += [x.g.copy(), other.g.copy()]
    for later in results[1:]:
        for array, first in zip(later, results[0], strict=True):
            np.testing.assert_allclose(array, first, rtol=1e-6)
