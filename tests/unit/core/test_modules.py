"""The modules that many networks use."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.core.modules import ConvBn, ResUnit, complete_dims, get_conv_same_pad


def test_sizes_are_completed():
    assert complete_dims(3, 2) == (3, 3)
    assert complete_dims((3, 4), 2) == (3, 4)
    assert get_conv_same_pad((3, 5, 1)) == (1, 2, 0)


def test_a_convolution_with_normalization_keeps_the_size():
    block = ConvBn(4, 3, 2, act=F.relu)
    y = block(nn.Variable.from_numpy_array(np.random.default_rng(0).standard_normal((2, 3, 8, 8))))
    y.forward()
    assert y.shape == (2, 4, 4, 4)
    assert y.d.min() == 0
    assert list(block.get_parameters()) == ["conv/W", "bn/beta", "bn/gamma", "bn/mean", "bn/var"]


@pytest.mark.parametrize(("channels", "stride", "skip_by_conv", "n_parameters"), [(8, 2, True, 20), (4, 1, False, 15)])
def test_a_residual_unit_adds_its_input(channels, stride, skip_by_conv, n_parameters):
    unit = ResUnit(channels, stride, skip_by_conv)
    y = unit(nn.Variable((2, 4, 8, 8)))
    assert y.shape == (2, channels, 8 // stride, 8 // stride)
    names = list(unit.get_parameters())
    assert len(names) == n_parameters
    assert unit.get_parameters()["@conv2/conv/W"].shape == (channels // 4, channels // 4, 3, 3)
    assert ("@skip/conv/W" in names) == skip_by_conv


def test_test_time_normalizes_by_the_moving_statistics():
    block = ConvBn(2)
    x = nn.Variable.from_numpy_array(np.random.default_rng(1).standard_normal((4, 2, 3, 3)))
    y = block(x, training=False)
    y.forward()
    w = block.get_parameters()["conv/W"].d[:, :, 0, 0]
    assert np.allclose(y.d, np.einsum("kc,nchw->nkhw", w, x.d) / np.sqrt(1 + 1e-5), atol=1e-5)
