"""Programs that compute what they say and most likely mean something else are told once, by name."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.graph import infer
from nn_core.engine.graph.call import forget


@pytest.fixture(autouse=True)
def _anew():
    infer._TOLD.clear()
    forget()
    with nn.parameter_scope("", {}):
        yield


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_loss_of_all_pairs_is_told_once(dynamic, caplog):
    with nn.auto_forward(dynamic):
        for _ in range(2):
            y, t = (nn.Variable.from_numpy_array(np.ones(shape, np.float32)) for shape in ((8, 1), (8,)))
            assert F.squared_error(y, t).shape == (8, 8)
    (message,) = caplog.messages
    assert message.startswith("squared_error: a loss compares numbers at the same places, got the shapes (8, 1) and (8,)")
    F.huber_loss(nn.Variable((8, 1)), nn.Variable((8,)))
    assert caplog.messages[1].startswith("huber_loss: ")


@pytest.mark.parametrize("shapes", [((8, 1), (8, 1)), ((8, 3), (1, 3)), ((8, 3), ()), ((1,), (8, 1))])
def test_other_losses_are_not_told(shapes, caplog):
    F.squared_error(*map(nn.Variable, shapes))
    assert not caplog.messages


def test_minimizing_a_vector_is_told_once(caplog):
    w = nn.Variable.from_numpy_array(np.ones(3, np.float32), need_grad=True)
    solver = S.Sgd(0.1)
    solver.set_parameters({"w": w})
    loss = w * w
    for _ in range(2):
        solver.minimize(loss)
    (message,) = caplog.messages
    assert message.startswith("Sgd.minimize: loss must have one element, got shape (3,), of which the sum is minimized")
    S.Sgd(0.1).minimize(F.sum(w * 1))
    assert [text for text in caplog.messages if "minimize" in text] == [message]


def test_layers_without_a_name_that_share_parameters_are_told_once(caplog):
    x = nn.Variable((2, 4))
    h = x
    for _ in range(3):
        h = F.tanh(PF.affine(h, 4))
    y = F.sum(h)
    y.forward()
    y.forward(clear_buffer=True)
    PF.affine(h, 4).forward()
    messages = [text for text in caplog.messages if "share their parameters" in text]
    assert [text.partition(",")[0] for text in messages] == ["affine: layers without a name share their parameters"] * 2
    assert "got 3 in one graph that read affine/W" in messages[0] and "affine/b" in messages[1]


def test_a_layer_that_is_called_on_its_own_result_is_meant(caplog):
    class Net(nn.Module):
        def __init__(self):
            self.layer = nn.layers.Linear(4)

        def call(self, x):
            return self.layer(F.tanh(self.layer(x)))

    Net()(nn.Variable((2, 4))).forward()
    assert not caplog.messages


@pytest.mark.parametrize("clear_buffer", [False, True])
def test_layers_of_a_dynamic_graph_are_told_as_it_is_trained(clear_buffer, caplog):
    for _ in range(3):
        with nn.auto_forward():
            y = F.mean(PF.affine(F.relu(PF.affine(nn.Variable((2, 4)), 4)), 4))
        y.backward(clear_buffer=clear_buffer)
    messages = [text for text in caplog.messages if "share their parameters" in text]
    assert ["affine/W" in text for text in messages] == [True, False]


def test_a_gradient_that_reads_a_layer_again_is_no_second_layer(caplog):
    x = nn.Variable((1, 2, 6, 6), need_grad=True)
    (slope,) = nn.grad([F.mean(PF.affine(F.tanh(PF.convolution(x, 3, (3, 3))), 2))], [x])
    F.sum(slope * slope).forward()
    assert not [text for text in caplog.messages if "share their parameters" in text]


def test_the_layers_of_a_module_are_told_too(caplog):
    class Net(nn.Module):
        def call(self, x):
            return PF.affine(F.relu(PF.affine(x, 4, with_bias=False)), 4, with_bias=False)

    net = Net()
    net(nn.Variable((2, 4))).forward()
    (message,) = caplog.messages
    assert "affine/W" in message


def branches(x):
    return PF.affine(x, 4), PF.affine(x * 2, 4)


def named(x):
    return (PF.affine(PF.affine(x, 4, name="both"), 4, name="both"),)


def scoped(x):
    for _ in range(2):
        with nn.parameter_scope("cell"):
            x = PF.affine(x, 4)
    return (x,)


@pytest.mark.parametrize("build", [branches, named, scoped])
def test_sharing_that_can_be_meant_is_not_told(build, caplog):
    F.sum(F.stack(*build(nn.Variable((2, 4))))).forward()
    assert not caplog.messages
