"""Recurrent networks beside the reference: cells, layers, directions, and both ways to share work between threads."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_ext_cpu import _native, set_num_threads

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]

#: For each function: axes of the weights for gates, axes of the bias for gates, number of states.
CELLS = {"rnn": ((), (), 1), "gru": ((3,), (4,), 1), "lstm": ((4,), (4,), 2)}


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = _native.num_threads()
    set_num_threads(request.param)
    yield request.param
    set_num_threads(before)


def arrays(name: str, sizes: tuple[int, int, int, int], layers: int = 1, directions: int = 1, bias: bool = True) -> list[Any]:
    """x, states, weights and bias for T steps, B samples, I inputs and H states."""
    steps, batch, inputs, hidden = sizes
    gates, bias_gates, n_states = CELLS[name]
    rng = np.random.default_rng(sum(sizes))

    def normal(*shape: int) -> np.ndarray[Any, Any]:
        return (0.5 * rng.standard_normal(shape)).astype(np.float32)

    states = [normal(layers, directions, batch, hidden) for _ in range(n_states)]
    later = normal(layers - 1, directions, *gates, hidden, (directions + 1) * hidden) if layers > 1 else None
    return [
        normal(steps, batch, inputs),
        *states,
        normal(directions, *gates, hidden, inputs + hidden),
        later,
        normal(layers, directions, *bias_gates, hidden) if bias else None,
    ]


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (5, 3, 4, 7), (4, 40, 17, 33)])
@pytest.mark.parametrize("name", CELLS)
def test_cells(assert_alike: Compare, name: str, sizes: tuple[int, int, int, int], threads: int) -> None:
    assert_alike(getattr(F, name), *arrays(name, sizes), tolerance=5e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("name", CELLS)
def test_layers_and_directions(assert_alike: Compare, name: str, bidirectional: bool, bias: bool) -> None:
    given = arrays(name, (4, 3, 5, 6), 3, 2 if bidirectional else 1, bias)
    call = getattr(F, name)
    assert_alike(lambda *a: call(*a, num_layers=3, bidirectional=bidirectional), *given, tolerance=1e-4)


def test_relu_instead_of_tanh(assert_alike: Compare) -> None:
    assert_alike(lambda *a: F.rnn(*a, nonlinearity="relu"), *arrays("rnn", (4, 3, 5, 6)))


@pytest.mark.parametrize("name", CELLS)
def test_dropout_between_layers_draws_the_bits_of_the_reference(assert_alike: Compare, name: str) -> None:
    given = arrays(name, (3, 5, 4, 7), 3, 2)
    call = getattr(F, name)
    assert_alike(lambda *a: call(*a, num_layers=3, bidirectional=True, dropout=0.4), *given, tolerance=1e-4)


def test_no_dropout_without_training(assert_alike: Compare) -> None:
    given = arrays("lstm", (3, 5, 4, 7), 2)
    assert_alike(lambda *a: F.lstm(*a, num_layers=2, dropout=0.9, training=False), *given)


def test_gradients_that_nobody_wants_are_left_out() -> None:
    values = arrays("lstm", (3, 5, 4, 7))
    found = []
    for wanted in ([True] * 6, [False, False, False, True, False, False]):
        inputs = [None if a is None else nn.Variable(a.shape, need_grad=w) for a, w in zip(values, wanted, strict=True)]
        for x, a in zip(inputs, values, strict=True):
            if x is not None:
                x.d = a
                x.grad.zero()
        y = F.lstm(*inputs)[0]
        y.forward()
        y.backward()
        found.append(inputs[3].g.copy())
    np.testing.assert_array_equal(found[0], found[1])


def test_sequences_without_samples_are_refused() -> None:
    values = arrays("gru", (3, 0, 4, 7))
    inputs = [None if a is None else nn.Variable(a.shape) for a in values]
    with nn.context_scope(nn.Context(["cpu:float", "reference:float"])):
        y = F.gru(*inputs)[0]
        assert "takes x of at least one element" in str(nn.explain(y))
