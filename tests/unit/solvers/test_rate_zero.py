"""A learning rate of 0, from the constructor, set later, or from a schedule: parameters stand still, and training goes on."""

import pickle

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.ext_utils import list_extensions

BACKENDS = ["reference", *(name for name in ("cpu",) if name in list_extensions())]
KEEPING = ["AMSBound", "AdaBound", "AdamW", "SgdW"]
#: They move on by the momentum that they have when the rate becomes 0.
COASTING = ("Momentum", "Nesterov", "SgdW", "Lars", "RMSpropGraves")


def trained(solver, rates, start=(1.0, -2.0, 3.0)):
    """The parameters after each update at these rates; None: the rate stays."""
    w = nn.Variable.from_numpy_array(np.float32(start), need_grad=True)
    solver.set_parameters({"w": w})
    rng, values = np.random.default_rng(0), []
    for rate in rates:
        if rate is not None:
            solver.set_learning_rate(rate)
        w.g = np.float32(rng.normal(size=3))
        solver.update()
        values.append(w.d.copy())
    return values


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nn.context_scope(nn.Context([f"{request.param}:float"])):
        yield request.param


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_parameters_stand_still_from_the_start(backend, name):
    for values in trained(getattr(S, name)(0.0), [None, None, 0.0]):
        np.testing.assert_array_equal(values, np.float32([1, -2, 3]))


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_parameters_stand_still_later(backend, name):
    values = trained(getattr(S, name)(0.01), [None, 0.0, 0.0, 0.01])
    assert np.isfinite(values).all()
    assert (values[0] != np.float32([1, -2, 3])).all()
    if name not in COASTING:
        np.testing.assert_array_equal(values[1], values[0])
        np.testing.assert_array_equal(values[2], values[0])
    assert (values[3] != values[2]).all()


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_a_warm_up_from_zero_is_one_from_its_first_other_rate(backend, name):
    method = getattr(S, name)
    given = method(0.02)
    given.set_learning_rate(0.0)
    rates = [0.0, 0.0, 0.02, 0.04, 0.01]
    for values, others in zip(trained(method(0.0), rates), trained(given, rates), strict=True):
        np.testing.assert_array_equal(values, others)
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", KEEPING)
def test_the_initial_rate_is_kept_in_every_kind_of_copy(name, tmp_path):
    method = getattr(S, name)
    for rates in ([0.0], [0.0, 0.02]):
        original = method(0.0)
        trained(original, rates)
        state, path = original.get_state(), tmp_path / "states.h5"
        assert state["numbers"][f"initial_{method.hyper_names[0]}"] == rates[-1]
        original.save_states(path)
        by_state, by_file = method(0.5), method(0.5)
        for solver in (by_state, by_file):
            solver.set_parameters(original.get_parameters())
        by_state.set_state(state)
        by_file.load_states(path)
        copies = [by_state, by_file, pickle.loads(pickle.dumps(original))]
        expected = trained(original, [0.04, 0.01])
        for copy in copies:
            np.testing.assert_array_equal(trained(copy, [0.04, 0.01]), expected)


@pytest.mark.parametrize("name", KEEPING)
def test_states_saved_with_an_initial_rate_of_zero_take_the_present_rate(name):
    """Earlier versions kept 0 for ever."""
    method = getattr(S, name)
    solver = method(0.02)
    before = trained(solver, [None])
    state = solver.get_state()
    state["numbers"][f"initial_{method.hyper_names[0]}"] = 0.0
    solver.set_state(state)
    assert np.isfinite([before, trained(solver, [None])]).all()


@pytest.mark.parametrize("name", sorted(S.__all__))
def test_an_infinite_rate_is_refused(name):
    method = getattr(S, name)
    with pytest.raises(ArgumentError, match=rf"{name}: {method.hyper_names[0]} must be finite, got inf"):
        method(float("inf"))
    with pytest.raises(ArgumentError, match=r"set_learning_rate: learning_rate must be finite, got inf"):
        method().set_learning_rate(float("inf"))


@pytest.mark.parametrize("name", ["AdaBound", "AMSBound"])
def test_bounds_that_never_close_in_are_refused(name):
    with pytest.raises(ArgumentError, match=rf"{name}: gamma must be greater than 0, got 0.0"):
        getattr(S, name)(gamma=0.0)
