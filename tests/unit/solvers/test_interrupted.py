"""An update by a rule in Python that ends with an exception changes nothing."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.solvers as S


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_update_that_is_interrupted_changes_nothing(error, monkeypatch):
    step, calls = S.Momentum.step, []

    def interrupted(xp, w, g, states, hyper):
        step(xp, w, g, states, hyper)
        calls.append(w)
        if len(calls) == 4:  # in the second update, after the first parameter
            raise error

    monkeypatch.setattr(S.Momentum, "step", staticmethod(interrupted))
    parameters = {name: nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True) for name in "ab"}
    solver = S.Momentum(0.1)
    solver.set_parameters(parameters)
    for parameter in parameters.values():
        parameter.g = 1.0
    solver.update()
    before = everything(solver, parameters)
    with pytest.raises(error):
        solver.update()
    assert len(calls) == 4
    assert everything(solver, parameters) == before


def everything(solver, parameters):
    states = solver.get_states()
    return {
        name: (parameter.d.tolist(), states[name].t, {key: state.d.tolist() for key, state in states[name].pstate.items()})
        for name, parameter in parameters.items()
    }
