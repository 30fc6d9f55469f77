"""The flag of a module that says whether it trains: layers follow it, and functions that do not are told."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.core.modules import ConvBn, ResUnit


class Dropping(nn.Module):
    def call(self, x):
        return F.dropout(PF.affine(x, 3), 0.5)


class Normalizing(nn.Module):
    def __init__(self):
        self.inner = Dropping()

    def call(self, x):
        return {"y": [PF.batch_normalization(self.inner(x))]}


class Following(nn.Module):
    def call(self, x):
        h = PF.batch_normalization(PF.affine(x, 3), batch_stat=self.training)
        return F.dropout(h, 0.5) if self.training else h


def image():
    return nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(4, 8, 6, 6)).astype(np.float32))


@pytest.mark.parametrize("make", [lambda: ConvBn(4, 3), lambda: ResUnit(8), lambda: nn.Sequential(ConvBn(4), ConvBn(4))])
def test_layers_follow_the_flag(make):
    block = make()
    x = image()
    y = block(x)
    y.forward()
    block.training = False
    z = block(x)
    z.forward()
    assert not np.allclose(y.d, z.d)
    given = [f.args["batch_stat"] for f in functions_of(z) if f.name == "BatchNormalization"]
    assert given and not any(given)
    block.training = True
    assert all(f.args["batch_stat"] for f in functions_of(block(x)) if f.name == "BatchNormalization")


def functions_of(y):
    found = []
    y.visit(found.append)
    return found


def test_an_argument_goes_before_the_flag():
    block = ConvBn(4)
    block.training = False
    (norm,) = [f for f in functions_of(block(image(), training=True)) if f.name == "BatchNormalization"]
    assert norm.args["batch_stat"]


@pytest.mark.parametrize("dynamic", [False, True])
def test_what_does_not_follow_is_told_once(dynamic, caplog):
    net = Normalizing()
    with nn.auto_forward(dynamic):
        x = nn.Variable.from_numpy_array(np.ones((4, 3), np.float32))
        net(x)
        assert not caplog.messages
        net.training = False
        net(x)
        net(x)
    (message,) = caplog.messages
    assert message.startswith("Normalizing: a module with training=False should do nothing that only training does, got ")
    assert "BatchNormalization, Dropout" in message and "F.dropout(x, p) if self.training else x" in message


def test_what_follows_and_what_is_before_the_module_is_not_told(caplog):
    net = Following()
    net.training = False
    net(F.dropout(nn.Variable((4, 3)), 0.5))
    net = Dropping()
    net.training = False
    net.training = True
    net(nn.Variable((4, 3)))
    assert not caplog.messages
