"""Layers as objects have the parameters of the parametric functions and compute the same."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError
from nn_core.experimental.parametric_function_class.affine import Affine, Linear
from nn_core.experimental.parametric_function_class.batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from nn_core.experimental.parametric_function_class.convolution import Conv1d, Conv2d, Conv3d, ConvNd, Convolution
from nn_core.experimental.parametric_function_class.deconvolution import Deconv1d, Deconv2d
from nn_core.experimental.parametric_function_class.embed import Embed
from nn_core.experimental.parametric_function_class.module import Module


class Net(Module):
    def __init__(self):
        self.conv = Conv2d(3, 4, (3, 3))
        self.bn = BatchNorm2d(4)
        self.fc = Affine(4 * 6 * 6, 5)

    def __call__(self, x, test=False):
        return self.fc(self.bn(self.conv(x), test))


def values(variable):
    variable.forward()
    return variable.d.copy()


LAYERS = [
    (lambda: Affine(6, 2), lambda x: PF.affine(x, 2), (4, 6)),
    (lambda: Linear(6, (2, 3), with_bias=False), lambda x: PF.affine(x, (2, 3), with_bias=False), (4, 2, 3)),
    (lambda: Conv1d(4, 6, 3, group=2), lambda x: PF.convolution(x, 6, (3,), group=2), (2, 4, 9)),
    (
        lambda: Conv2d(4, 2, (3, 2), (1, 0), (2, 1), (2, 2)),
        lambda x: PF.convolution(x, 2, (3, 2), (1, 0), (2, 1), (2, 2)),
        (2, 4, 9, 8),
    ),
    (lambda: Conv3d(1, 2, (2, 2, 2)), lambda x: PF.convolution(x, 2, (2, 2, 2)), (1, 1, 3, 3, 3)),
    (lambda: ConvNd(3, 2, (2,), base_axis=2), lambda x: PF.convolution(x, 2, (2,), base_axis=2), (2, 2, 3, 4)),
    (
        lambda: Deconv1d(4, 6, (3,), (1,), (2,), group=2),
        lambda x: PF.deconvolution(x, 6, (3,), (1,), (2,), group=2),
        (2, 4, 5),
    ),
    (lambda: Deconv2d(2, 3, (3, 3)), lambda x: PF.deconvolution(x, 3, (3, 3)), (1, 2, 4, 4)),
    (lambda: BatchNorm1d(4), PF.batch_normalization, (3, 4, 5)),
    (lambda: BatchNorm3d(2, axes=[4]), lambda x: PF.batch_normalization(x, [4]), (2, 3, 3, 3, 2)),
]


@pytest.mark.parametrize(("make", "function", "shape"), LAYERS)
def test_a_layer_computes_what_the_parametric_function_computes(make, function, shape):
    nn.seed(3)
    layer = make()
    nn.seed(3)
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    with nn.parameter_scope("", scope={}):
        y = function(x)
        expected = {name.partition("/")[2]: v.shape for name, v in nn.get_parameters(grad_only=False).items()}
    assert np.array_equal(values(layer(x)), values(y))
    assert {name: v.shape for name, v in layer.get_parameters(grad_only=False).items()} == expected


def test_an_embedding_gives_rows_of_its_table():
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    layer = Embed(3, 2, w_init=table)
    assert np.array_equal(values(layer(nn.Variable.from_numpy_array(np.array([2, 0])))), table[[2, 0]])


def test_parameters_and_modules_are_listed_by_path():
    net = Net()
    assert list(net.get_parameters()) == ["conv/W", "conv/b", "bn/beta", "bn/gamma", "fc/W", "fc/b"]
    assert list(net.get_parameters(False)) == [
        "conv/W", "conv/b", "bn/beta", "bn/gamma", "bn/mean", "bn/var", "fc/W", "fc/b"
    ]  # fmt: skip
    assert [name for name, _ in net.get_modules()] == ["", "conv", "bn", "fc"]
    assert list(net.fc.get_parameters()) == ["W", "b"]


def test_a_module_in_a_circle_is_listed_once():
    net = Net()
    net.fc.parent = net
    assert [name for name, _ in net.get_modules(prefix="net")] == ["net", "net/conv", "net/bn", "net/fc"]


def test_test_time_uses_the_moving_statistics():
    layer = BatchNorm2d(2)
    x = nn.Variable.from_numpy_array(np.full((2, 2, 2, 2), 3, np.float32))
    assert np.allclose(values(layer(x, test=True)), 3 / np.sqrt(1 + 1e-5))
    assert np.allclose(values(layer(x)), 0)
    assert np.allclose(layer.mean.d, 0.3)


def test_statistics_are_returned_when_asked():
    y, mean, _ = BatchNorm2d(2, output_stat=True)(nn.Variable((2, 2, 2, 2)))
    assert (y.shape, mean.size) == ((2, 2, 2, 2), 2)


def test_fixed_parameters_and_frozen_ones_are_not_trained():
    assert list(Affine(3, 2, fix_parameters=True).get_parameters()) == []
    layer = Affine(3, 2)
    layer.W.need_grad = False
    layer(nn.Variable((1, 3)))
    assert list(layer.get_parameters()) == ["b"]


def test_a_saved_network_computes_the_same_after_loading(tmp_path):
    first, second = Net(), Net()
    first.save_parameters(tmp_path / "net.h5")
    second.load_parameters(tmp_path / "net.h5")
    x = nn.Variable.from_numpy_array(np.ones((2, 3, 8, 8), np.float32))
    assert np.array_equal(values(first(x, test=True)), values(second(x, test=True)))


def test_a_file_of_another_network_is_refused(tmp_path):
    Net().save_parameters(tmp_path / "net.npz")
    with pytest.raises(ArgumentError, match="fc/W"):
        Affine(3, 2).load_parameters(tmp_path / "net.npz")


def test_layers_train_in_dynamic_graphs():
    layer = Conv2d(1, 1, (1, 1), w_init=np.ones((1, 1, 1, 1), np.float32))
    with nn.auto_forward():
        F.sum(layer(nn.Variable.from_numpy_array(np.full((1, 1, 2, 2), 3, np.float32)))).backward()
    assert layer.W.g.tolist() == [[[[12.0]]]]


def test_aliases_are_one_class():
    assert Conv1d is Conv2d is Conv3d is ConvNd is Convolution
    assert Affine is Linear


def test_normalization_needs_one_axis():
    with pytest.raises(ArgumentError, match="axes must be one axis of 4, got \\[1, 2\\]"):
        BatchNorm2d(3, axes=[1, 2])
