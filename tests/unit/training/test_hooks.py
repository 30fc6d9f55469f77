"""Changes of gradients before the update."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.training import clip_values, gradient_noise, lasso


@pytest.fixture
def solver():
    w = nn.Variable.from_numpy_array(np.array([[-2.0, 0.0, 3.0]]), need_grad=True)
    v = nn.Variable.from_numpy_array(np.zeros(2), need_grad=True)
    w.g, v.g = [[-5.0, 0.25, 5.0]], [1.0, -1.0]
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w, "v": v})
    return solver


def gradients(solver):
    return [variable.g.ravel().tolist() for variable in solver.get_parameters().values()]


def test_clipping_of_values(solver):
    clip_values(-0.5, 2.0)(solver, 0)
    assert gradients(solver) == [[-0.5, 0.25, 2.0], [1.0, -0.5]]


def test_lasso(solver):
    lasso(0.5)(solver, 0)
    assert gradients(solver) == [[-5.5, 0.25, 5.5], [1.0, -1.0]]


def test_noise_depends_on_seed_and_iteration_alone(solver):
    def noise(seed, iteration):
        before = [np.array(g) for g in gradients(solver)]
        gradient_noise(0.04, seed=seed)(solver, iteration)
        drawn = np.concatenate([np.array(g) - b for g, b in zip(gradients(solver), before, strict=True)])
        solver.get_parameters()["w"].g, solver.get_parameters()["v"].g = before[0].reshape(1, 3), before[1]
        return drawn

    np.testing.assert_allclose(noise(1, 7), noise(1, 7), atol=1e-6)
    assert not np.allclose(noise(1, 7), noise(1, 8))
    assert not np.allclose(noise(1, 7), noise(2, 7))


def test_the_variance_of_the_noise():
    w = nn.Variable.from_numpy_array(np.zeros(20000), need_grad=True)
    solver = S.Sgd()
    solver.set_parameters({"w": w})
    for iteration in (0, 99):
        w.g = 0
        gradient_noise(0.04)(solver, iteration)
        assert np.std(w.g) == pytest.approx(0.2 / (1 + iteration) ** 0.275, rel=0.03)


def test_hooks_come_after_clipping_and_decay(make_updater):
    seen = []

    def watch(solver, iteration):
        norm = np.sqrt(sum(float((v.g**2).sum()) for v in solver.get_parameters().values()))
        seen.append((iteration, norm))

    updater = make_updater(clip_norm=0.01, loss_scale=64.0, hooks=[watch, clip_values(0.0, 0.0)])
    before = [variable.d.copy() for variable in nn.get_parameters().values()]
    updater.update()
    updater.update()
    assert [iteration for iteration, _ in seen] == [0, 1]
    assert [norm for _, norm in seen] == pytest.approx([0.01, 0.01], rel=1e-5)
    after = [variable.d for variable in nn.get_parameters().values()]
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_refusals():
    with pytest.raises(ArgumentError, match="low must be at most high, got 1 and 0"):
        clip_values(1, 0)
    with pytest.raises(ArgumentError, match="rate must be at least 0, got -1"):
        lasso(-1)
    with pytest.raises(ArgumentError, match="eta and gamma must be at least 0, got -1 and"):
        gradient_noise(-1)
