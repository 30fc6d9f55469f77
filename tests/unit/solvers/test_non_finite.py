"""NaN and infinity in gradients: every solver shows them in the parameter, skips the step when told to, or refuses to clip."""

import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.errors import ArgumentError, GraphError
from nn_core.ext_utils import list_extensions
from nn_core.training import LossScale, Updater

BACKENDS = ["reference", *(name for name in ("cpu",) if name in list_extensions())]
#: Their step depends on norms of the whole parameter, which is lost as a whole.
LAYERWISE = ("Adafactor", "Lamb", "Lars")


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nn.context_scope(nn.Context([f"{request.param}:float"])):
        yield request.param


@pytest.fixture
def pair():
    values = {"a": np.float32([1, -2, 3]), "b": np.float32([[4]])}
    return {name: nn.Variable.from_numpy_array(array, need_grad=True) for name, array in values.items()}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", sorted(S.__all__))
def test_the_parameter_shows_it_and_no_other_one_does(backend, name, bad, pair):
    solver = getattr(S, name)()
    solver.set_parameters(pair)
    for step in range(4):
        for variable in pair.values():
            variable.g = np.full(variable.shape, 0.5, np.float32)
        if step == 1:
            pair["a"].g = np.float32([0.5, bad, 0.5])
        before = {key: variable.d.copy() for key, variable in pair.items()}
        solver.update()
        if step >= 1:
            lost = ~np.isfinite(pair["a"].d)
            assert lost[1]
            assert name in LAYERWISE or lost.tolist() == [False, True, False]
        assert np.isfinite(pair["b"].d).all()
        assert (pair["b"].d != before["b"]).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", sorted(S.__all__))
def test_a_skipped_step_changes_nothing_and_is_counted(backend, name, bad, pair):
    solver, scale = getattr(S, name)(), LossScale(4.0)
    solver.set_parameters(pair)
    x = nn.Variable.from_numpy_array(np.float32([1, 1, 1]))
    loss = F.sum(pair["a"] * x) + F.sum(pair["b"])
    solver.minimize(loss, loss_scale=scale)
    values, states = {k: v.d.copy() for k, v in pair.items()}, solver.get_states()
    kept = {k: {n: s.d.copy() for n, s in state.pstate.items()} for k, state in states.items()}
    x.d = np.float32([1, bad, 1])
    solver.minimize(loss, loss_scale=scale)
    assert scale.skipped == 1
    for key, variable in pair.items():
        np.testing.assert_array_equal(variable.d, values[key])
        assert solver.get_states()[key].t == 1
        for state, array in solver.get_states()[key].pstate.items():
            np.testing.assert_array_equal(array.d, kept[key][state])
    x.d = np.float32([1, 1, 1])
    solver.minimize(loss, loss_scale=scale)
    assert all((variable.d != values[key]).all() for key, variable in pair.items())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("method", ["clip_grad_by_norm", "clip_grad_by_global_norm"])
def test_clipping_refuses_it_when_told_to(backend, method, bad, pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    pair["a"].g, pair["b"].g = np.float32([3, bad, 4]), 2.0
    message = f"{method}: all gradients must be finite, got NaN or infinity in those of a\n"
    with pytest.raises(GraphError, match=re.escape(message)):
        getattr(solver, method)(1.0, error_if_nonfinite=True)
    np.testing.assert_array_equal(pair["a"].g, np.float32([3, bad, 4]))
    assert pair["b"].g.item() == 2.0
    pair["a"].g = np.float32([3, 0, 4])
    getattr(solver, method)(1.0, error_if_nonfinite=True)
    assert np.linalg.norm(pair["a"].g) <= 1.0 + 1e-6
    with pytest.raises(ArgumentError, match=rf"{method}: error_if_nonfinite: must be True or False, or 1 or 0, got 'yes'"):
        getattr(solver, method)(1.0, error_if_nonfinite="yes")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("method", ["clip_grad_by_norm", "clip_grad_by_global_norm"])
def test_clipping_never_hides_it(backend, method, bad, pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    pair["a"].g, pair["b"].g = np.float32([3, bad, 4]), 2.0
    getattr(solver, method)(1.0)
    assert not np.isfinite(pair["a"].g[1])


@pytest.mark.parametrize("method", ["clip_grad_by_norm", "clip_grad_by_global_norm"])
def test_large_gradients_are_clipped_though_their_squares_overflow(backend, method, pair):
    solver = S.Sgd()
    solver.set_parameters(pair)
    pair["a"].g, pair["b"].g = np.float32([3e30, 0, 4e30]), 0.0
    getattr(solver, method)(1.0)
    np.testing.assert_allclose(pair["a"].g, [0.6, 0, 0.8], rtol=1e-6)


class Batches:
    def next(self):
        return (np.float32([np.inf]),)


def test_the_updater_refuses_it_before_the_update():
    w = nn.Variable.from_numpy_array(np.float32([1.0]), need_grad=True)
    solver, x = S.Sgd(0.5), nn.Variable((1,))
    solver.set_parameters({"w": w})
    settings = {"model": {"w": w}, "error_if_nonfinite": True}
    updater = Updater(Batches(), [x], F.sum(w * x), solver, clip_norm=1.0, **settings)
    with pytest.raises(GraphError, match="Updater: the norm of all gradients must be finite, got inf"):
        updater.update()
    assert w.d.tolist() == [1.0]
    with pytest.raises(ArgumentError, match="Updater: error_if_nonfinite must be set with clip_norm"):
        Updater(Batches(), [x], F.sum(w * x), solver, **settings)
