"""Modules own their parameters, and those of the modules inside them."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError


class Block(nn.Module):
    def __init__(self, maps):
        self.maps = maps

    def call(self, x):
        return F.relu(PF.convolution(x, self.maps, (3, 3), pad=(1, 1)))


class Net(nn.Module):
    def __init__(self):
        self.first = Block(4)
        self.second = Block(5)

    def call(self, x):
        return PF.affine(self.second(self.first(x)), 2)


NAMES = ["@first/conv/W", "@first/conv/b", "@second/conv/W", "@second/conv/b", "affine/W", "affine/b"]


def test_parameters_belong_to_the_module():
    net, x = Net(), nn.Variable((1, 1, 4, 4))
    with nn.parameter_scope("elsewhere"):
        net(x)
    assert list(net.get_parameters()) == NAMES
    assert list(net.get_parameters(recursive=False)) == NAMES[4:]
    assert not nn.get_parameters()
    net(x)
    assert list(net.get_parameters()) == NAMES


def test_names_and_parents():
    net = Net()
    assert net.is_root() and not net.first.is_root()
    assert net.first.parent is net and net.first.name == "first"
    assert net.first.get_scope_name() == net.first.get_path_name() == "@first"
    assert list(net.submodules) == ["first", "second"]


def test_training_is_set_for_all():
    net = Net()
    assert net.training and net.second.training
    net.training = False
    assert not net.second.training


def test_two_networks_do_not_share():
    a, b, x = Net(), Net(), nn.Variable((1, 1, 4, 4))
    a(x)
    b(x)
    assert not set(a.get_parameters().values()) & set(b.get_parameters().values())


def test_a_shared_module_counts_once():
    class Twice(nn.Module):
        def __init__(self):
            self.left = Block(1)
            self.right = self.left

        def call(self, x):
            return self.right(self.left(x))

    twice = Twice()
    twice(nn.Variable((1, 1, 4, 4)))
    assert len(twice.get_parameters()) == 2


def test_saving_and_loading(tmp_path):
    net, other, x = Net(), Net(), nn.Variable((1, 1, 4, 4))
    net(x)
    net.save_parameters(str(tmp_path / "net.h5"))
    other.load_parameters(str(tmp_path / "net.h5"))
    y, z = net(x), other(x)
    x.d = np.random.randn(*x.shape)
    nn.forward_all([y, z])
    assert np.array_equal(y.d, z.d)


def test_loading_into_another_network_is_refused(tmp_path):
    net, x = Net(), nn.Variable((1, 1, 4, 4))
    net(x)
    net.save_parameters(str(tmp_path / "net.h5"))
    with pytest.raises(ArgumentError, match="must be a parameter '@first"):
        Block(3).load_parameters(str(tmp_path / "net.h5"))


def test_parameters_of_another_shape_are_refused():
    net = Net()
    net(nn.Variable((1, 1, 4, 4)))
    with pytest.raises(ShapeError, match=r"affine/b must have the shape \(2,\), got \(3,\)"):
        net.set_parameter("affine/b", nn.Variable((3,)))


def test_zero_grad():
    net = Net()
    net(nn.Variable((1, 1, 4, 4)))
    for parameter in net.get_parameters().values():
        parameter.g = 1
    net.zero_grad()
    assert all(not parameter.g.any() for parameter in net.get_parameters().values())


def test_sequential():
    chain = nn.Sequential(Block(2), ("last", Block(3)))
    assert chain(nn.Variable((1, 1, 4, 4))).shape == (1, 3, 4, 4)
    assert list(chain.get_parameters()) == ["@block_0/conv/W", "@block_0/conv/b", "@last/conv/W", "@last/conv/b"]
    assert len(chain) == 2 and chain[1].name == "last"
    with pytest.raises(ArgumentError, match="every layer must be a Module or a function, got 3"):
        nn.Sequential(3)


def test_recompute_as_a_decorator():
    @nn.recompute_fn()
    def block(x):
        return F.relu(x)

    assert block(nn.Variable((2,))).recompute


def test_sequential_lists_the_modules_of_chains_within():
    first, second, third = Block(2), Block(3), Block(4)
    net = nn.Sequential(first, nn.Sequential(second, nn.Sequential(third)), nn.Sequential())
    assert net.flatten() == [first, second, third]
    assert nn.Sequential().flatten() == []
