"""The description of arrays to cuDNN: shapes and strides, against strides of NumPy's views."""

import numpy as np
import pytest

from nn_core.ext import ArrayDesc
from nn_ext_cudnn.graph import geometry


def steps(array):
    return tuple(stride // array.itemsize for stride in array.strides)


def channels_last(shape):
    """An array that is channels-last, and its description."""
    array = np.zeros((shape[0], *shape[2:], shape[1]), np.float32)
    array = np.moveaxis(array, -1, 1)
    return array, ArrayDesc(shape, "float32", array.strides)


def test_axes_before_the_base_axis_are_the_batch():
    view = geometry.image(ArrayDesc((2, 3, 4, 5, 6), "float32"), 2, False)
    assert (view.shape, view.strides) == ((6, 4, 5, 6), (120, 30, 6, 1))
    assert not view.is_channels_last


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 6)])
def test_channels_last_in_memory_and_in_the_shape_are_alike(shape):
    array, desc = channels_last(shape)
    view = geometry.image(desc, 1, False)
    assert (view.shape, view.strides) == (shape, steps(array))
    assert view.is_channels_last
    assert geometry.channels_last_strides(shape) == view.strides
    named = ArrayDesc((shape[0], *shape[2:], shape[1]), "float32")
    assert geometry.image(named, 1, True) == view


def test_one_spatial_axis_gets_another_in_front():
    view = geometry.image(ArrayDesc((2, 3, 7), "float16"), 1, False)
    assert (view.shape, view.strides) == ((2, 3, 1, 7), (21, 7, 7, 1))
    _, desc = channels_last((2, 3, 7))
    view = geometry.image(desc, 1, False)
    assert (view.shape, view.strides) == ((2, 3, 1, 7), (21, 1, 21, 3))
    assert geometry.spatial((5,), 0) == (0, 5)
    assert geometry.spatial((5, 6, 7), 0) == (5, 6, 7)


def test_filters_of_depthwise_convolutions_get_an_axis_of_channels():
    like = geometry.image(ArrayDesc((1, 6, 8, 8), "float32"), 1, False)
    view = geometry.filters(ArrayDesc((6, 3, 2), "float32"), False, depthwise=True, like=like)
    assert (view.shape, view.strides) == ((6, 1, 3, 2), (6, 6, 2, 1))


def test_filters_follow_the_images_where_their_memory_reads_both_ways():
    _, desc = channels_last((1, 6, 8, 8))
    like = geometry.image(desc, 1, False)
    pointwise = geometry.filters(ArrayDesc((4, 6, 1, 1), "float32"), False, depthwise=False, like=like)
    assert pointwise.strides == (6, 1, 6, 6)
    depthwise = geometry.filters(ArrayDesc((6, 3, 2), "float32"), False, depthwise=True, like=like)
    assert depthwise.strides == (6, 1, 2, 1)
    others = geometry.filters(ArrayDesc((4, 6, 3, 2), "float32"), False, depthwise=False, like=like)
    assert others.strides == (36, 6, 2, 1)


def test_filters_with_the_channels_last():
    like = geometry.image(ArrayDesc((1, 8, 8, 6), "float32"), 1, True)
    view = geometry.filters(ArrayDesc((4, 3, 2, 6), "float32"), True, depthwise=False, like=like)
    assert (view.shape, view.strides) == ((4, 6, 3, 2), (36, 1, 12, 6))


def test_a_vector_is_an_image_of_one_place():
    view = geometry.vector(ArrayDesc((6,), "float32"), 4)
    assert (view.shape, view.strides) == ((1, 6, 1, 1), (6, 1, 6, 6))
