"""Solver.minimize: one step as one call."""

import numpy as np
import pytest

import nn_core as nn
from nn_core import PF, F, S
from nn_core.errors import ArgumentError, GraphError
from nn_core.training import LossScale

X = np.random.default_rng(0).standard_normal((8, 3)).astype(np.float32)
T = X.sum(axis=1, keepdims=True)


def weight() -> nn.Variable:
    return nn.Variable.from_numpy_array(np.zeros((3, 1), np.float32), need_grad=True)


def by_hand(steps: int) -> np.ndarray:
    w = weight()
    loss = F.mean(F.squared_error(F.affine(nn.Variable.from_numpy_array(X), w), nn.Variable.from_numpy_array(T)))
    solver = S.Adam(0.1)
    solver.set_parameters({"w": w})
    for _ in range(steps):
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    return w.d.copy()


def test_a_static_loss_takes_the_steps_of_the_four_calls() -> None:
    w = weight()
    loss = F.mean(F.squared_error(F.affine(nn.Variable.from_numpy_array(X), w), nn.Variable.from_numpy_array(T)))
    solver = S.Adam(0.1)
    solver.set_parameters({"w": w})
    values = [solver.minimize(loss).item() for _ in range(5)]
    assert np.array_equal(w.d, by_hand(5))
    assert values == sorted(values, reverse=True)


def test_a_function_is_called_with_the_batch_as_variables() -> None:
    w = weight()
    solver = S.Adam(0.1)
    solver.set_parameters({"w": w})
    for _ in range(5):
        loss = solver.minimize(lambda x, t: F.mean(F.squared_error(F.affine(x, w), t)), X, T.tolist())
    assert loss.shape == ()
    assert np.allclose(w.d, by_hand(5), rtol=1e-5)
    assert not nn.get_auto_forward()


def test_what_is_not_a_loss_is_refused() -> None:
    w = weight()
    loss = F.sum(w * w)
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    with pytest.raises(ArgumentError, match=r"minimize: loss_scale must be an nn_core\.training\.LossScale, got 8"):
        solver.minimize(F.sum(nn.Variable((2,), need_grad=True)), loss_scale=8)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="minimize: loss must be a Variable or a function that returns one, got 3"):
        solver.minimize(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="minimize: loss must return a Variable, got None"):
        solver.minimize(lambda: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(ArgumentError, match="minimize: batch must be empty beside a Variable, got 1 arrays"):
        solver.minimize(loss, X)
    with nn.auto_forward(), pytest.raises(GraphError, match="minimize: loss must be a function inside of auto_forward"):
        solver.minimize(F.sum(w * w))
    assert not w.d.any()


def test_gradients_are_clipped_and_then_decayed() -> None:
    w = nn.Variable.from_numpy_array(np.array([3.0, 4.0], np.float32), need_grad=True)
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})
    solver.minimize(F.sum(w * w), clip_norm=1.0, weight_decay=0.5)  # the gradient 2 w has the norm 10
    assert np.allclose(w.d, np.array([3.0, 4.0]) * (1 - 1 / 5 - 0.5))
    with pytest.raises(ArgumentError, match="minimize: clip_norm must be"):
        solver.minimize(F.sum(w * w), clip_norm=-1.0)


def test_a_loss_scale_does_not_change_steps_and_skips_those_that_overflow() -> None:
    scale = LossScale(scale=1024.0)
    w = weight()
    loss = F.mean(F.squared_error(F.affine(nn.Variable.from_numpy_array(X), w), nn.Variable.from_numpy_array(T)))
    solver = S.Adam(0.1)
    solver.set_parameters({"w": w})
    for _ in range(5):
        solver.minimize(loss, loss_scale=scale)
    assert np.allclose(w.d, by_hand(5), rtol=1e-4)
    before = w.d.copy()
    solver.minimize(loss * 1e38, loss_scale=scale)
    assert np.array_equal(w.d, before)
    assert (scale.scale, scale.skipped) == (512.0, 1)


def test_a_solver_without_parameters_takes_those_of_the_loss(caplog):
    net = nn.Sequential(nn.layers.Affine(3))
    x = nn.Variable.from_numpy_array(np.ones((4, 2), np.float32))
    PF.affine(x, 5, name="other")
    PF.affine(x, 3, name="fixed", fix_parameters=True)
    loss = F.mean((PF.affine(net(x), 1, name="last") + PF.affine(x, 3, name="fixed", fix_parameters=True)) ** 2)
    solver = S.Sgd(0.01)
    values = [solver.minimize(loss).item() for _ in range(3)]
    assert values[2] < values[1] < values[0]
    assert set(solver.get_parameters()) == {"last/affine/W", "last/affine/b", "@affine_0/affine/W", "@affine_0/affine/b"}
    assert not caplog.messages


def test_parameters_that_were_chosen_stay_the_only_ones(caplog):
    x = nn.Variable.from_numpy_array(np.ones((4, 2), np.float32))
    loss = F.mean(PF.affine(PF.affine(x, 3, name="first"), 1, name="last") ** 2)
    solver = S.Sgd(0.1)
    solver.set_parameters("first")
    solver.minimize(loss)
    assert set(solver.get_parameters()) == {"first/affine/W", "first/affine/b"}
    nothing = S.Sgd(0.1)
    nothing.set_parameters({})
    nothing.minimize(loss)
    assert not nothing.get_parameters() and "there must be parameters to change" in caplog.text


@pytest.mark.parametrize("solver", [S.Adam(0.01), S.LBFGS()])
def test_dynamic_losses_give_their_parameters_too(solver):
    x = np.ones((4, 2), np.float32)
    solver.minimize(lambda x: F.mean(PF.affine(x, 1) ** 2), x)
    assert set(solver.get_parameters()) == {"affine/W", "affine/b"}


def test_a_solver_that_takes_parameters_of_another_one_says_so(caplog: pytest.LogCaptureFixture) -> None:
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
    fake = PF.affine(x, 3, name="generator")
    critic = F.mean(PF.affine(fake, 1, name="critic"))
    first, second = S.Adam(), S.Adam()
    first.minimize(critic)
    assert not caplog.messages
    second.minimize(critic)
    (message,) = caplog.messages
    assert message.startswith("Adam.minimize: a solver that was given no parameters") and "critic/affine/W" in message
    caplog.clear()
    del first, second
    S.Sgd().minimize(critic)  # as a cell of a notebook that is run again
    assert not caplog.messages
