"""Unscaling, clipping and the check for infinity and NaN on an emulated device, and updates that depend on them."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import LossScale

SIZES = (1, 7, 1024, 3000)


def bound(device, value=None, hyper=(0.5, 3.0)):
    """Gradients on the host and on the device, and the step that rescales them."""
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    rng = np.random.default_rng(0)
    grads = [rng.normal(size=size).astype("float32") for size in SIZES]
    if value is not None:
        grads[2][1000] = value
    there = [device.asarray(grad) for grad in grads]
    step = UPDATES["Rescale"].prepare(SIZES, "float32").bind([], there, [], np.array(hyper))
    return grads, there, step


@pytest.mark.parametrize(("hyper", "clips"), [((0.5, 3.0), True), ((-0.01, 3.0), False), ((1.0, np.inf), False)])
def test_gradients_are_scaled_and_clipped_by_their_common_norm(device, hyper, clips):
    grads, there, step = bound(device, hyper=hyper)
    step()
    norm = abs(hyper[0]) * np.sqrt(sum((grad.astype("float64") ** 2).sum() for grad in grads))
    assert step.verdict.read() == pytest.approx(norm, rel=1e-12)
    factor = hyper[0] * (hyper[1] / norm if clips else 1)
    for grad, found in zip(grads, there, strict=True):
        np.testing.assert_allclose(found.get(), grad * np.float32(factor), rtol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_left_as_it_is(device, value):
    grads, there, step = bound(device, value)
    step()
    assert not np.isfinite(step.verdict.read())
    for grad, found in zip(grads, there, strict=True):
        np.testing.assert_array_equal(found.get(), grad)


def test_squares_of_large_gradients_do_not_overflow(device):
    _, _, step = bound(device, 3e38)
    step()
    assert step.verdict.read() == pytest.approx(1.5e38, rel=1e-6)


@pytest.mark.parametrize("name", ["Adam", "Lamb", "AdaBelief"])
@pytest.mark.parametrize("holds", [False, True])
def test_an_update_is_left_out_while_the_norm_is_not_finite(cuda, name, holds):
    from nn_ext_cuda.kernels.solvers.updates import UPDATES
    from nn_ext_cuda.launch import deferred

    solver = getattr(S, name)()
    numbers = np.array([*solver._numbers, 1.0])
    arrays = [[cuda.asarray(np.full(5, 0.5 + k, "float32"))] for k in range(2 + len(solver.state_names))]
    guard = cuda.zeros((1,), "float64")
    step = UPDATES[name].prepare((5,), "float32").bind(arrays[0], arrays[1], arrays[2:], numbers, guard=guard)
    before = arrays[0][0].get()

    def run():
        step()
        deferred.flush()

    for value in (np.nan, np.inf, 1.0):
        guard[...] = value
        if holds:
            with deferred.launch_together():
                run()
        else:
            run()
        assert (arrays[0][0].get() == before).all() == (not np.isfinite(value))


def train(context, together, steps=8, optimizer=S.Adam):
    """Parameters, numbers of updates and skipped steps of a training in which gradients overflow at the first steps."""
    nn.clear_parameters()
    nn.seed(5)
    rng = np.random.default_rng(0)
    with nn.context_scope(context):
        x, t = nn.Variable((16, 4)), nn.Variable((16, 1))
        loss = F.mean(F.softmax_cross_entropy(PF.affine(F.relu(PF.affine(x, 8, name="a")), 3, name="b"), t))
        solver = optimizer()
        solver.set_parameters(nn.get_parameters())
        scale = LossScale(2.0**120, factor=2.0**40, interval=3, most=2.0**120)
        for step in range(steps):
            x.d, t.d = 1e10 ** (step < 2) * rng.normal(size=(16, 4)), rng.integers(0, 3, (16, 1))
            if together:
                with nn.launch_together():
                    solver.minimize(loss, clip_norm=0.3, weight_decay=0.01, loss_scale=scale)
            else:
                solver.minimize(loss, clip_norm=0.3, weight_decay=0.01, loss_scale=scale)
        counts = {state.t for state in solver.get_states().values()}
        return [p.d.copy() for p in nn.get_parameters().values()], counts, (scale.skipped, scale.scale)


@pytest.mark.parametrize("together", [False, True])
def test_training_with_a_loss_scale_is_that_of_the_reference(cuda, together):
    expected, counts, scale = train(nn.Context(["reference:float"]), together)
    assert scale[0] > 0
    found = train(nn.get_current_context(), together)
    assert found[1:] == (counts, scale)
    for one, other in zip(found[0], expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-5)


def test_the_host_waits_once_a_step(cuda, monkeypatch):
    import fake_cupy

    launch, get, events = fake_cupy.Graph.launch, fake_cupy.FakeArray.get, []
    monkeypatch.setattr(fake_cupy.Graph, "launch", lambda self, stream=None: (events.append("graph"), launch(self, stream)))
    monkeypatch.setattr(fake_cupy.FakeArray, "get", lambda self, *args: (events.append("read"), get(self, *args))[1])
    x = nn.Variable.from_numpy_array(np.ones((16, 4), "float32"))
    loss = F.mean(PF.affine(F.tanh(PF.affine(x, 8, name="a")), 3, name="b") ** 2)
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    scale = LossScale(8.0)
    for _ in range(6):
        events.clear()
        with nn.launch_together():
            solver.minimize(loss, clip_norm=1.0, loss_scale=scale)
    assert events == ["graph", "read"]


def test_an_update_by_hand_after_a_skipped_step_is_done(cuda):
    w = nn.Variable.from_numpy_array(np.ones(3, "float32"), need_grad=True)
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})
    w.g = np.array([1, np.inf, 1], "float32")
    assert solver.update_if_finite() == np.inf
    assert w.d.tolist() == [1, 1, 1]
    w.g = np.array([1, np.inf, 1], "float32")
    solver.update()
    assert w.d.tolist() == [0, -np.inf, 0]


def test_a_rule_in_python_waits_for_the_norm(cuda):
    from nn_core.solver import Solver

    class Signs(Solver):
        hyper_names = ("lr",)

        @staticmethod
        def step(xp, w, g, states, hyper):
            w -= hyper[0] * xp.sign(g)

    w = nn.Variable.from_numpy_array(np.ones(2, "float32"), need_grad=True)
    solver = Signs(0.5)
    solver.set_parameters({"w": w})
    for gradient, norm, values in (([3, -4], 5, [0.5, 1.5]), ([np.nan, 1], np.nan, [0.5, 1.5])):
        w.g = np.array(gradient, "float32")
        assert solver.update_if_finite() == pytest.approx(norm, nan_ok=True)
        assert w.d.tolist() == values
