"""Copies of modules, and parameters that are not to be changed."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError


class Block(nn.Module):
    def call(self, x):
        return PF.batch_normalization(PF.affine(x, 2))


class Net(nn.Module):
    def __init__(self):
        self.blocks = [Block(), Block()]
        self.scale = nn.Variable.from_numpy_array([2.0], need_grad=True)

    def call(self, x):
        for block in self.blocks:
            x = block(x)
        return x * F.broadcast(F.reshape(self.scale, (1, 1)), x.shape)


@pytest.fixture
def net():
    nn.seed(5)
    net = Net()
    net(nn.Variable((3, 2)))
    return net


def values(net):
    return {name: variable.d.copy() for name, variable in net.get_parameters().items()}


def test_shared_values_have_gradients_of_their_own(net):
    twin = net.copy()
    assert twin.blocks[0] is not net.blocks[0]
    net.blocks[0].get_parameters()["affine/W"].d = 7
    for name, parameter in twin.get_parameters().items():
        own = net.get_parameters()[name]
        assert np.array_equal(parameter.d, own.d)
        own.g, parameter.g = 1, 2
        assert own.g.ravel()[0] == 1
    assert net.blocks[0].parent is net
    assert twin.blocks[0].parent is twin


def test_copied_values_are_apart(net):
    before = values(net)
    twin = net.copy("copy")
    for parameter in twin.get_parameters().values():
        parameter.d = 9
    assert all(np.array_equal(values(net)[name], value) for name, value in before.items())


def test_values_that_are_drawn_anew(net):
    before = values(net)
    twin = net.copy("init")
    assert list(twin.get_parameters()) == ["scale"]
    twin(nn.Variable((3, 2)))
    assert list(twin.get_parameters()) == list(before)
    assert not np.array_equal(values(twin)["@blocks/@0/affine/W"], before["@blocks/@0/affine/W"])
    assert np.array_equal(values(twin)["scale"], before["scale"])


def test_children(net):
    assert net.children() == net.blocks


def test_parameters_that_are_left_alone(net):
    before = values(net)
    trained = list(net.get_parameters(grad_only=True))
    net.blocks[0].disable_update()
    net.blocks[0].disable_update()  # says it again
    assert not net.blocks[0].get_parameters(grad_only=True)
    x = nn.Variable.from_numpy_array(np.arange(6.0).reshape(3, 2))
    loss = F.mean(net(x) ** 2)
    solver = S.Momentum(0.1)
    solver.set_parameters(net.get_parameters(grad_only=True))
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    after = values(net)
    assert np.array_equal(after["@blocks/@0/affine/W"], before["@blocks/@0/affine/W"])
    assert not np.array_equal(after["scale"], before["scale"])
    net.blocks[0].enable_update()
    assert list(net.get_parameters(grad_only=True)) == trained


def test_refusals(net):
    with pytest.raises(ArgumentError, match="mode must be one of share, copy, init, got 'deep'"):
        net.copy("deep")
