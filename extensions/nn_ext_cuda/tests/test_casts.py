"""Casts of plans in common launches, on an emulated device."""

import itertools

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.ext import ArrayDesc, dtype_of
from nn_core.settings import without

FLOATING = ("float32", "float16", "bfloat16", "float64")


@pytest.fixture
def half(cuda):
    """The CUDA backend in bfloat16."""
    from nn_ext_cuda import plugin

    with nn.context_scope(nn.Context(["cuda:bfloat16"], plugin.ARRAY_CLASSES[0])):
        yield cuda


@pytest.fixture
def gatherings(half, monkeypatch):
    """For each pass that was bound, how many arrays each of its casts has."""
    from nn_ext_cuda import backend
    from nn_ext_cuda.codegen import casts

    found = []

    def noting(steps):
        result = casts.gathered(steps)
        found.append([len(step.arrays) // 2 for step in result if isinstance(step, casts.CastStep)])
        return result

    monkeypatch.setattr(backend, "gathered", noting)
    return found


@pytest.fixture
def runs(half, monkeypatch):
    """Return how many arrays were cast, for each launch of a cast, by itself or in a graph."""
    import fake_cupy

    from nn_ext_cuda.codegen.casts import CastStep

    found = []
    run = CastStep.run

    def noting(step):
        fake_cupy.Graph.note(lambda: found.append(len(step.arrays) // 2))
        run(step)

    monkeypatch.setattr(CastStep, "run", noting)
    monkeypatch.setattr(CastStep, "__call__", noting)
    return found


def layers():
    """A network of three affine layers, and its loss."""
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(4, 6)).astype("float32"))
    h = x
    for number in range(3):
        h = F.tanh(PF.affine(h, 6, name=f"layer{number}"))
    return x, F.mean(h**2)


def trained(n_steps=4, write=None):
    """Parameters after some steps; `write` is called before each."""
    nn.clear_parameters()
    nn.seed(3)
    x, loss = layers()
    solver = S.Sgd(0.5)
    solver.set_parameters(nn.get_parameters())
    for number in range(n_steps):
        if write is not None:
            write(number, x)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    return [np.asarray(loss.d), *[p.d.copy() for p in nn.get_parameters().values()]]


def test_parameters_are_cast_in_one_launch_and_gradients_in_few(gatherings):
    trained()
    forward, backward = gatherings
    assert forward == [6]
    assert sum(backward) == 6
    assert len(backward) < 6


def test_results_are_those_of_casts_one_by_one(half):
    together = trained()
    with without("fuse"):
        apart = trained()
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one, other)


def overwrite(number, x):
    parameters = nn.get_parameters()
    if number == 1:
        parameters["layer1/affine/W"].d = np.eye(6)
    elif number == 2:
        parameters["layer0/affine/b"].data.fill(0.25)
    elif number == 3:
        x.d = np.ones((4, 6))


def test_parameters_that_were_written_to_are_cast_again(half):
    together = trained(write=overwrite)
    with without("fuse"):
        apart = trained(write=overwrite)
    for one, other in zip(together, apart, strict=True):
        np.testing.assert_array_equal(one, other)


def test_inference_casts_parameters_once_until_one_has_changed(runs):
    _, loss = layers()
    solver = S.Sgd(0.5)
    solver.set_parameters(nn.get_parameters())
    for parameter in nn.get_parameters().values():
        parameter.grad.fill(0.1)
    for _ in range(2):  # in the first pass after it, parameters are cast one by one
        solver.update()
        for _ in range(3):
            loss.forward(clear_buffer=True)
    runs.clear()
    for _ in range(3):
        loss.forward(clear_buffer=True)
    assert not runs
    solver.update()
    for _ in range(3):
        loss.forward(clear_buffer=True)
    assert runs == [6]


def test_large_arrays_are_cast_by_themselves(gatherings, monkeypatch):
    from nn_ext_cuda.codegen import casts

    monkeypatch.setattr(casts, "_MAX_ELEMENTS", 10)
    trained()
    assert gatherings[0] == [3, 1, 1, 1]
    assert sum(gatherings[1]) == 6


def test_full_waiting_rooms_are_emptied(half, monkeypatch):
    from nn_ext_cuda.codegen import casts

    with monkeypatch.context() as patch:
        patch.setattr(casts, "_MAX_WAITING", 1)
        expected = trained()
    for one, other in zip(expected, trained(), strict=True):
        np.testing.assert_array_equal(one, other)


class Touching:
    """A step on some arrays, or on unknown ones."""

    def __init__(self, *arrays):
        self.arrays = arrays or None


def test_casts_wait_for_no_step_that_touches_their_memory(device):
    from nn_ext_cuda.codegen.casts import Cast, gathered

    memory = device.asarray(np.zeros(64, "float32"))
    halves = device.asarray(np.zeros(64, "float16"))
    cast = Cast(("float16", "float32"), 8)
    first, second = (cast.bind(halves[k : k + 8], memory[k : k + 8]) for k in (0, 8))
    apart = Touching(memory[32:40], halves[40:48])
    for step, number in [
        (apart, 1),
        (Touching(memory[15:20]), 0),
        (Touching(halves[7:9]), 0),
        (Touching(memory[40:60:2], memory[23:4:-8]), 0),
        (Touching(), 0),
    ]:
        found = gathered([first, second, step])
        assert found.index(step) == (0 if number else 1), step.arrays
        assert len(found) == 2


@pytest.mark.parametrize(("source", "target"), [*itertools.product(FLOATING, FLOATING)])
def test_values_are_cast_as_numpy_casts_them(device, source, target):
    from nn_ext_cuda.codegen.casts import CastStep, caster, gathered

    runner = caster(ArrayDesc((300,), source), ArrayDesc((300,), target))
    if source == target or ("float64" in (source, target) and "float32" not in (source, target)):
        assert runner is None
        return
    rng = np.random.default_rng(1)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-8, 65504, 1e38])
    with np.errstate(over="ignore"):
        values = [np.concatenate([special, rng.normal(size=n) * 100]).astype(dtype_of(source)) for n in (292, 292)]
        expected = [array.astype(dtype_of(target)) for array in values]
    pairs = [(device.asarray(array), device.asarray(np.zeros(300, dtype_of(target)))) for array in values]
    steps = [runner.bind(*pair) for pair in pairs]
    (together,) = gathered(steps)
    assert isinstance(together, CastStep)
    for run in (steps[0], together):
        for _, result in pairs:
            result.view(np.ndarray)[...] = 7
        run()
        for (_, result), own in list(zip(pairs, expected, strict=True))[: len(run.arrays) // 2]:
            np.testing.assert_array_equal(result.get().astype("float64"), own.astype("float64"))


def test_other_arrays_are_left_to_cupy(device):
    from nn_ext_cuda.codegen.casts import caster

    for source, target in [
        (ArrayDesc((2, 3), "int64"), ArrayDesc((2, 3), "float32")),
        (ArrayDesc((0,), "float32"), ArrayDesc((0,), "float16")),
        (ArrayDesc((2, 3), "float32", (4, 8)), ArrayDesc((2, 3), "float16")),
    ]:
        assert caster(source, target) is None
