"""Freezing that lasts: layers that are called again do not undo it."""

import gc

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.parametric_functions.freezing import FROZEN


def network(x):
    h = PF.batch_normalization(F.tanh(PF.affine(x, 4, name="first")), name="first")
    return PF.affine(h, 1, name="last")


def loss_of(network):
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    return F.mean(network(x) ** 2)


def values(parameters):
    return {name: parameter.d.copy() for name, parameter in parameters.items()}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("rebuilt", [False, True])
def test_frozen_parameters_stay_as_they_are(dynamic, rebuilt):
    network(nn.Variable((8, 3)))
    with nn.parameter_scope("first"):
        nn.freeze_parameters()
    frozen = {name: p for name, p in nn.get_parameters(grad_only=False).items() if name.startswith("first/affine")}
    before = values(nn.get_parameters(grad_only=False))
    solver = S.Adam(0.1)
    with nn.auto_forward(dynamic):
        loss = None
        for _ in range(6):
            if loss is None or rebuilt or dynamic:
                loss = loss_of(network)
                # as programs do that build anew: whatever needs a gradient by now is trained
                solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
            loss.forward()
            solver.zero_grad()
            loss.backward(clear_buffer=True)
            solver.update()
    assert set(solver.get_parameters()) == {"last/affine/W", "last/affine/b"}
    after = nn.get_parameters(grad_only=False)
    assert all(np.array_equal(after[name].d, before[name]) for name in frozen)
    assert not np.array_equal(after["last/affine/W"].d, before["last/affine/W"])
    assert not any(parameter.need_grad for parameter in frozen.values())


def test_unfreezing_gives_back_what_was_trained():
    network(nn.Variable((8, 3)))
    trained = list(nn.get_parameters())
    nn.get_parameters()["last/affine/b"].need_grad = False
    nn.freeze_parameters()
    nn.freeze_parameters()
    network(nn.Variable((8, 3)))
    assert not nn.get_parameters()
    nn.unfreeze_parameters()
    assert list(nn.get_parameters()) == [name for name in trained if name != "last/affine/b"]
    network(nn.Variable((8, 3)))  # and layers decide again
    assert list(nn.get_parameters()) == trained


def test_some_parameters_are_frozen_by_name():
    network(nn.Variable((8, 3)))
    nn.freeze_parameters({name: p for name, p in nn.get_parameters().items() if name.endswith("W")})
    network(nn.Variable((8, 3)))
    assert not [name for name in nn.get_parameters() if name.endswith("W")]
    nn.unfreeze_parameters({"no": nn.Variable((2,), need_grad=False)})
    with pytest.raises((ArgumentError, TypeError)):
        nn.freeze_parameters(3)


class Net(nn.Module):
    def call(self, x):
        return network(x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_module_that_is_not_to_be_updated_stays_so_when_it_is_called(dynamic):
    net = Net()
    with nn.auto_forward(dynamic):
        net(nn.Variable.from_numpy_array(np.ones((8, 3), np.float32)))
        trained = list(net.get_parameters(grad_only=True))
        net.disable_update()
        loss = loss_of(net)
        assert not net.get_parameters(grad_only=True) and not loss.need_grad
        net.enable_update()
        assert list(net.get_parameters(grad_only=True)) == trained
        assert loss_of(net).need_grad


def test_loading_keeps_frozen_parameters_frozen(tmp_path):
    network(nn.Variable((8, 3)))
    nn.save_parameters(tmp_path / "net.npz")
    nn.freeze_parameters()
    nn.load_parameters(tmp_path / "net.npz")
    assert not nn.get_parameters()


def test_nothing_is_kept_of_parameters_that_are_gone():
    network(nn.Variable((8, 3)))
    nn.freeze_parameters()
    count = len(FROZEN)
    nn.clear_parameters()
    gc.collect()
    assert len(FROZEN) < count
