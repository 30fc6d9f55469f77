"""Multi-tensor updates against the solvers' own steps, on an emulated device."""

import numpy as np
import pytest

from nn_ext_cuda.kernels.solvers.multi_tensor import chunk_of, chunks
from nn_ext_cuda.kernels.solvers.rules import LAYERWISE_RULES, RULES
from nn_ext_cuda.kernels.solvers.updates import update_code

SIZES = (1, 7, 1024, 1025, 3000)


def test_every_rule_is_a_solver_or_a_change_of_gradients():
    import nn_core.solvers as S

    for name, rule in (*RULES.items(), *LAYERWISE_RULES.items()):
        solver = getattr(S, name, None)
        assert solver is not None or name in ("WeightDecay", "ScaleGrad")
        if solver is not None:
            assert len(rule.states) == len(solver().state_names)


def test_chunks_cover_all_elements_once():
    owners, starts, firsts = chunks(SIZES, 1024)
    covered = [np.zeros(size, int) for size in SIZES]
    for owner, start in zip(owners, starts, strict=True):
        covered[owner][start : start + 1024] += 1
    assert all((part == 1).all() for part in covered)
    assert firsts.tolist() == [0, 1, 2, 3, 5, 8]


@pytest.mark.parametrize(("n", "chunk"), [(1, 1024), (10**6, 1024), (10**8, 65536), (2 * 10**7, 19456)])
def test_chunks_grow_with_the_model(n, chunk):
    assert chunk_of(n) == chunk


def test_numbers_become_parameters_of_the_kernel():
    assert "const R rate, const R eps, const R beta1" in update_code("Adam", "float32").text


@pytest.mark.parametrize("name", sorted([*RULES, *LAYERWISE_RULES, "ClipGradByNorm"]))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_updates_are_those_of_the_solver(device, name, dtype):
    import nn_core.solvers as S
    from nn_core.solvers import gradients
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    rng = np.random.default_rng(0)
    changes = {rule.name: rule for rule in (gradients.WEIGHT_DECAY, gradients.SCALE_GRAD, gradients.CLIP_GRAD_BY_NORM)}
    if name in changes:
        step, n_states, hyper = changes[name].step, 0, [0.3]
    else:
        solver = getattr(S, name)()
        step, n_states = solver.step, len(solver.state_names)
        hyper = [*solver._numbers, 3.0]  # the number of the update comes last
    numbers = np.array(hyper, np.float64)
    arrays = [[rng.normal(size=size).astype(dtype) for size in SIZES] for _ in range(2)]
    states = [[rng.uniform(0.5, 0.6, size).astype(dtype) for size in SIZES] for _ in range(n_states)]
    on_device = [[device.asarray(array) for array in group] for group in (*arrays, *states)]
    bound = UPDATES[name].prepare(SIZES, dtype).bind(on_device[0], on_device[1], on_device[2:], numbers)
    for _ in range(2):
        bound()
        for k in range(len(SIZES)):
            step(np, arrays[0][k], arrays[1][k], [state[k] for state in states], numbers.tolist())
    tolerance = 1e-5 if dtype == "float32" else 1e-12
    for group, expected in zip(on_device, (*arrays, *states), strict=True):
        for array, values in zip(group, expected, strict=True):
            np.testing.assert_allclose(array.get(), values, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", sorted([*RULES, *LAYERWISE_RULES]))
def test_gradients_that_are_not_finite_have_the_effect_that_they_have_in_the_solver(device, name, bad):
    import nn_core.solvers as S
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    if not hasattr(S, name):
        pytest.skip("a change of gradients, which solvers do not make")
    solver = getattr(S, name)()
    numbers = np.array([*solver._numbers, 1.0])
    arrays = [np.float32([1, -2, 3]), np.float32([0.5, bad, 0.5])]
    states = [np.zeros(3, np.float32) for _ in solver.state_names]
    w, g, *on_device = [device.asarray(array) for array in (*arrays, *states)]
    UPDATES[name].prepare((3,), "float32").bind([w], [g], [[state] for state in on_device], numbers)()
    with np.errstate(all="ignore"):
        solver.step(np, *arrays, states, numbers.tolist())
    np.testing.assert_allclose(w.get(), arrays[0], rtol=1e-5, atol=1e-6)
    for state, expected in zip(on_device, states, strict=True):
        np.testing.assert_allclose(state.get(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["AMSBound", "AdaBound", "AdamW", "SgdW"])
def test_an_initial_rate_of_zero_leaves_the_parameter_alone(device, name):
    import nn_core.solvers as S
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    solver = getattr(S, name)(0.0)
    w, g = device.asarray(np.float32([1, -2, 3])), device.asarray(np.ones(3, np.float32))
    states = [[device.asarray(np.zeros(3, np.float32))] for _ in solver.state_names]
    UPDATES[name].prepare((3,), "float32").bind([w], [g], states, np.array([*solver._numbers, 1.0]))()
    np.testing.assert_array_equal(w.get(), np.float32([1, -2, 3]))


def test_steps_of_lamb_without_a_length_are_left_out(device):
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    w, g, m, v = (device.asarray(np.full(5, x, "float32")) for x in (2.0, 0.0, 0.0, 0.0))
    UPDATES["Lamb"].prepare((5,), "float32").bind([w], [g], [[m], [v]], np.array([0.1, 0.9, 0.99, 0, 10, 1e-6, 1, 0, 1.0]))()
    np.testing.assert_array_equal(w.get(), np.full(5, 2.0))


@pytest.mark.parametrize(("value", "expected"), [(1.0, False), (np.nan, True), (-np.inf, True)])
def test_a_search_for_nan_and_infinity_waits_once_for_the_device(cuda, monkeypatch, value, expected):
    import fake_cupy

    import nn_core as nn
    import nn_core.solvers as S

    params = {str(k): nn.Variable.from_numpy_array(np.ones(3, "float32"), need_grad=True) for k in range(4)}
    for variable in params.values():
        variable.grad.copy_from(nn.NdArray.from_numpy_array(np.ones(3, "float32")))
    params["2"].g = np.array([0, value, 0], "float32")
    solver = S.Sgd()
    solver.set_parameters(params)
    reads = []
    item = fake_cupy.FakeArray.item
    monkeypatch.setattr(fake_cupy.FakeArray, "item", lambda self: reads.append(self) or item(self))
    assert solver.check_inf_or_nan_grad() is expected
    assert len(reads) == 1


@pytest.mark.parametrize("t", [1.0, 40.0])
@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("fixed_decay", [False, True])
def test_the_settings_of_ada_belief_are_those_of_the_solver(device, t, rectify, amsgrad, fixed_decay):
    import nn_core.solvers as S
    from nn_ext_cuda.kernels.solvers.updates import UPDATES

    switches = {"amsgrad": amsgrad, "fixed_decay": fixed_decay, "rectify": rectify}
    solver = S.AdaBelief(alpha=0.1, beta2=0.95, wd=0.2, eps=1e-3, weight_decouple=True, **switches)
    rng = np.random.default_rng(0)
    w, g, *states = (rng.uniform(0.5, 0.6, 7).astype("float32") for _ in range(2 + len(solver.state_names)))
    numbers = np.array([*solver._numbers, t], np.float64)
    given = [device.asarray(array) for array in (w, g, *states)]
    UPDATES["AdaBelief"].prepare((7,), "float32").bind([given[0]], [given[1]], [[state] for state in given[2:]], numbers)()
    solver.step(np, w, g, states, numbers.tolist())
    for found, expected in zip(given, (w, g, *states), strict=True):
        np.testing.assert_allclose(found.get(), expected, rtol=2e-6)
