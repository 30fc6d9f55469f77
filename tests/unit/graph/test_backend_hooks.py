"""Optional methods of backends for dynamic graphs: what they are given, and where what they return is used."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.graph.call import forget


@pytest.fixture
def kind(monkeypatch):
    """The class of the reference backend; what is prepared with its changes is forgotten."""
    backend = type(get_backend("reference"))
    forget()
    yield backend
    monkeypatch.undo()
    forget()


def step():
    x = nn.Variable.from_numpy_array(np.arange(12.0).reshape(3, 4))
    loss = F.sum(F.tanh(PF.affine(x, 2)))
    loss.forward(clear_no_need_grad=True)
    return loss


def test_a_repeater_runs_functions_that_are_computed_as_they_are_called(kind, monkeypatch):
    runners = []

    def repeater(self, runner):
        def repeated(*arrays):
            runners.append(runner)
            return runner(*arrays)

        return repeated

    monkeypatch.setattr(kind, "repeater", repeater, raising=False)
    with nn.context_scope(nn.Context(["reference:float"])):
        step()
        assert runners == []  # a plan binds the runner itself
        with nn.auto_forward():
            for _ in range(2):
                x = nn.Variable.from_numpy_array(np.arange(12.0).reshape(3, 4))
                np.testing.assert_allclose(F.tanh(x).d, np.tanh(x.d), rtol=1e-6)
            F.sum(F.batch_normalization(x, *(nn.Variable((1, 4)) for _ in range(4)), batch_stat=False))
    assert len(runners) == 4 and runners[0] is runners[1]


def test_a_program_gets_the_parts_and_the_arrays_of_each_graph(kind, monkeypatch):
    seen = []

    def program(self, parts):
        seen.append(parts)

        def run(*given):
            assert len(given) == len({number for *_, places in parts for number in places.values()})
            for runner, arrays, places in parts:
                runner(*[given[places[k]] if k in places else array for k, array in enumerate(arrays)])

        return run

    def gradients():
        nn.clear_parameters()
        nn.seed(1)
        found = []
        with nn.auto_forward():
            for k in range(5):
                x = nn.Variable.from_numpy_array(np.arange(12.0).reshape(3, 4) / (k + 1))
                loss = F.sum(F.tanh(PF.affine(x, 2)) ** 2)
                for p in nn.get_parameters().values():
                    p.grad.zero()
                loss.backward(clear_buffer=True)
                found += [p.g.copy() for p in nn.get_parameters().values()]
        return found

    with nn.context_scope(nn.Context(["reference:float"])):
        expected = gradients()
        monkeypatch.setattr(kind, "program", program, raising=False)
        forget()
        given = gradients()
    assert seen
    for a, b in zip(given, expected, strict=True):
        np.testing.assert_array_equal(a, b)
