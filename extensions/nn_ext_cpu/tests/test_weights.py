"""Packed weights are used as long as nobody can have written to the weights, and not a run longer."""

from collections.abc import Callable

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

RUNS = 6


class Layer:
    """A convolution in a static graph, beside what it must give."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = nn.Variable.from_numpy_array(rng.standard_normal((1, 16, 8, 8)).astype(np.float32))
        self.w = nn.Variable.from_numpy_array(rng.standard_normal((16, 16, 3, 3)).astype(np.float32), need_grad=True)
        self.y = F.convolution(F.relu(self.x), self.w, pad=(1, 1))

    def check(self) -> None:
        """Run some times, so that weights are packed and trusted, and compare."""
        with nn.context_scope(nn.Context(["reference:double"])):
            truth = F.convolution(F.relu(self.x.data), nn.NdArray.from_numpy_array(self.w.data.get_data("r"))).data
        inner = (slice(None), slice(None), slice(1, -1), slice(1, -1))
        for _ in range(RUNS):
            self.y.forward(clear_buffer=True)
            np.testing.assert_allclose(self.y.data.get_data("r")[inner], truth, rtol=1e-4, atol=1e-4)


@pytest.fixture
def layer():
    with nn.context_scope(get_extension_context("cpu")):
        made = Layer()
        made.check()
        yield made


def through_a_view(layer: Layer) -> None:
    layer.w.d[3] *= 2


def by_assignment(layer: Layer) -> None:
    layer.w.d = layer.w.d + 1


def by_filling(layer: Layer) -> None:
    layer.w.data.fill(0.5)


def by_a_solver(layer: Layer) -> None:
    solver = S.Sgd(lr=0.1)
    solver.set_parameters({"w": layer.w})
    layer.w.g = 1
    solver.update()


def from_another_array(layer: Layer) -> None:
    other = nn.NdArray(layer.w.shape)
    other.fill(0.25)
    layer.w.data.copy_from(other)


def with_another_array(layer: Layer) -> None:
    layer.w.data = nn.NdArray.from_numpy_array(np.full(layer.w.shape, 0.75, np.float32))


def in_another_dtype(layer: Layer) -> None:
    layer.w.data.cast(np.float64)[...] = 0.5


CHANGES = [through_a_view, by_assignment, by_filling, by_a_solver, from_another_array, with_another_array, in_another_dtype]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changes_are_seen(layer: Layer, change: Callable[[Layer], None]) -> None:
    for _ in range(2):
        change(layer)
        layer.check()


@pytest.mark.parametrize("slicing", [False, True])
def test_a_view_that_is_kept_may_write_at_any_time(layer: Layer, slicing: bool) -> None:
    view = layer.w.d[2:5] if slicing else layer.w.d
    for factor in (2, 0.25, 3):
        view *= factor
        layer.check()


def test_memory_that_others_know_may_change_at_any_time(layer: Layer) -> None:
    values = np.ones(layer.w.shape, np.float32)
    layer.w.data = nn.NdArray.from_dlpack(values)
    for value in (2, 0.25, 3):
        values[...] = value
        layer.check()


def test_weights_are_packed_once_while_nobody_writes(layer: Layer) -> None:
    """The purpose of the fast path: weights whose change nobody could see are not even read."""
    memory = layer.w.data.synced.copies[layer.w.data.synced.latest]
    before = layer.y.d.copy()
    memory[...] = 0  # without anyone's knowledge
    layer.y.forward(clear_buffer=True)
    np.testing.assert_array_equal(layer.y.d, before)
