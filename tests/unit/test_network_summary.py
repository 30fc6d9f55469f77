"""nn.summary counts what a graph holds; print(module) shows the tree."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError


class Block(nn.Module):
    def __init__(self, maps):
        self.maps = maps

    def call(self, x):
        return F.relu(PF.batch_normalization(PF.convolution(x, self.maps, (3, 3), pad=(1, 1))))


class Net(nn.Module):
    def __init__(self):
        self.first = Block(4)
        self.rest = [Block(8), Block(8)]
        self.again = self.first
        self.scale = nn.Variable((1, 1, 1, 1), need_grad=True)

    def call(self, x):
        for block in (self.first, *self.rest):
            x = block(x)
        return PF.affine(F.average_pooling(x, (2, 2)) * self.scale, 10)


FUNCTIONS = [*["Convolution", "BatchNormalization", "ReLU"] * 3, "AveragePooling", "Mul2", "Affine"]


def test_a_module():
    net = Net()
    table = nn.summary(net, (2, 3, 8, 8))
    assert [row.function for row in table.rows] == FUNCTIONS
    parameters = net.get_parameters()
    assert table.n_parameters == sum(parameter.size for parameter in parameters.values()) == 2363
    assert table.n_trained == sum(parameter.size for parameter in parameters.values() if parameter.need_grad) == 2323
    assert sum(row.n_parameters for row in table.rows) == table.n_parameters
    assert [row.n_multiply_adds for row in table.rows if row.function in ("Convolution", "Affine")] == [
        2 * 4 * 64 * 27,
        2 * 8 * 64 * 36,
        2 * 8 * 64 * 72,
        2 * 10 * 128,
    ]
    assert table.n_bytes == 4 * sum(int(np.prod(shape)) for row in table.rows for shape in row.shapes)
    text = str(table)
    assert "Convolution         @rest/@1/conv  (2, 8, 8, 8)         584         73,728   4.0 KiB" in text
    assert text.endswith("2,323 of the parameters are trained")


def test_a_variable_with_parameters_of_a_scope():
    x = nn.Variable((5, 4))
    with nn.parameter_scope("", scope={}):
        y = PF.affine(PF.affine(x, 4, name="shared"), 4, name="shared")
        PF.affine(x, 7, name="elsewhere")
        table = nn.summary(y)
    assert [row.scope for row in table.rows] == ["shared/affine"] * 2
    assert [row.n_parameters for row in table.rows] == [20, 0]
    assert table.n_parameters == table.n_trained == 20
    assert table.n_multiply_adds == 2 * 5 * 4 * 4


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: PF.deconvolution(nn.Variable((1, 4, 5, 5)), 3, (3, 3)), 4 * 25 * 3 * 9),
        (lambda: PF.depthwise_convolution(nn.Variable((1, 4, 5, 5)), (3, 3)), 4 * 9 * 9),
        (lambda: PF.convolution(nn.Variable((1, 4, 5, 5)), 6, (3, 3), group=2), 6 * 9 * 2 * 9),
        (lambda: F.batch_matmul(nn.Variable((3, 5, 2)), nn.Variable((3, 5, 4)), transpose_a=True), 3 * 2 * 4 * 5),
        (lambda: F.batch_matmul(nn.Variable((3, 2, 5)), nn.Variable((3, 4, 5)), transpose_b=True), 3 * 2 * 4 * 5),
        (lambda: PF.affine(nn.Variable((2, 3, 4)), 5, base_axis=2), 2 * 3 * 4 * 5),
        (lambda: F.exp(nn.Variable((3,)) + 1), 0),
    ],
    ids=["deconvolution", "depthwise", "grouped", "transpose_a", "transpose_b", "base_axis", "pointwise"],
)
def test_multiply_adds(make, expected):
    with nn.parameter_scope("", scope={}):
        assert nn.summary(make()).n_multiply_adds == expected


def test_functions_with_weights_that_are_not_known_are_marked():
    with nn.parameter_scope("", scope={}):
        h = nn.Variable((1, 1, 2, 4))
        table = nn.summary(list(PF.lstm(nn.Variable((5, 2, 3)), h, h)))
    assert [row.n_multiply_adds for row in table.rows] == [None]
    assert "?" in str(table) and "at least 0" in str(table)


def test_nothing_is_computed():
    with nn.auto_forward():
        net = Net()
        nn.summary(net, nn.Variable((1, 3, 8, 8)))
    assert nn.summary(net, x=(1, 3, 8, 8)).n_parameters == 2363
    assert not net.get_parameters()["@first/bn/mean"].d.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Net(),), "a module must be given with its inputs, got none"),
        ((nn.Variable((2,)), (2, 3)), "inputs must be given for modules only, got some for a variable"),
        ((3,), "target must be a Variable, a list of them or a Module, got int"),
        (([],), "target must be a Variable, a list of them or a Module, got list"),
    ],
    ids=["no inputs", "too many", "int", "empty"],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ArgumentError, match=f"summary: {message}"):
        nn.summary(*arguments)


def test_the_tree_of_a_module():
    net = Net()
    net(nn.Variable((2, 3, 8, 8)))
    net.rest[0].get_parameters()["conv/W"].need_grad = False
    assert str(net).splitlines() == [
        "Net, 2,363 parameters, 2,035 of them trained",
        "  first: Block, 128 parameters, 120 of them trained",
        "  rest.0: Block, 328 parameters, 24 of them trained",
        "  rest.1: Block, 616 parameters, 600 of them trained",
        "  again: Block, the same as first",
    ]
    assert repr(net) == "Net"
    assert str(nn.Sequential()) == "Sequential, 0 parameters"
