"""NNabla's updater for half precision: its steps, and that a bad batch is skipped."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.experimental.mixed_precision_training import DynamicLossScalingUpdater


@pytest.mark.parametrize(("accum", "step"), [(1, 0.1), (2, 0.2)])
def test_steps(accum, step):
    w = nn.Variable.from_numpy_array(np.ones(1), need_grad=True)
    x = nn.Variable((1,))
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    fed = []
    values = [1.0] * accum + [np.inf] * accum + [1.0] * 8

    def feed():
        x.d = values[len(fed)]
        fed.append(x.d[0])

    updater = DynamicLossScalingUpdater(solver, F.sum(x * w), feed, scale=8.0, N=2, accum_grad=accum)
    seen = []
    for _ in range(4):
        updater.update()
        seen.append((float(w.d[0]), updater.scale, updater.skipped))
    expected = [(1 - step, 8, 0), (1 - step, 4, 1), (1 - 2 * step, 4, 1), (1 - 3 * step, 8, 1)]
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    assert len(fed) == 4 * accum  # each batch once
    state = updater.get_state()
    other = DynamicLossScalingUpdater(solver, F.sum(x * w))
    other.set_state(state)
    assert (other.scale, other.skipped) == (8.0, 1)


def test_communicator_and_decay():
    w = nn.Variable.from_numpy_array(np.ones(1), need_grad=True)
    solver = S.Sgd(1.0)
    solver.set_parameters({"w": w})

    class Twice:
        def all_reduce(self, arrays, division, inplace):
            assert (division, inplace) == (False, False)
            for array in arrays:
                array.data *= 2

    loss = F.sum(w * 0.125)
    DynamicLossScalingUpdater(solver, loss, weight_decay=0.5, comm=Twice(), grads=[w.grad]).update()
    np.testing.assert_allclose(w.d, 1 - 2 * 0.125 - 0.5, rtol=1e-6)
