"""An int where a tuple with one entry for each axis is meant gives the same as the tuple, in every function and layer."""

import inspect

import numpy as np
import pytest

import nn_core as nn
from nn_core import PF, F
from nn_core.errors import ArgumentError

#: Arguments with one entry for each spatial axis.
PER_AXIS = (
    *("kernel", "pad", "stride", "dilation", "output_padding", "output_size"),
    *("patch", "shift", "patch_step", "shift_step", "padding"),
)
#: Functions with arguments of these names that are something else: a step, a number of bits, or a full list of widths.
OTHERS = {"bit_shift", "istft", "stft"}


def image(channels=4):
    return nn.Variable.from_numpy_array(np.random.default_rng(1).normal(size=(2, channels, 9, 9)))


def weight(*shape):
    return nn.Variable.from_numpy_array(np.random.default_rng(2).normal(size=shape))


def boxes():
    return nn.Variable.from_numpy_array([[0, 1, 1, 7, 7]])


def number(value):
    return nn.Variable.from_numpy_array(np.array([value]))


def levels(*shape):
    return nn.Variable.from_numpy_array(np.random.default_rng(3).integers(-128, 128, shape, np.int8))


CONVOLUTION = {"pad": 1, "stride": 2, "dilation": 2}
POOLING = {"kernel": 3, "stride": 2, "pad": 1}
DECONVOLUTION = {**CONVOLUTION, "output_padding": 1}
#: function: (call with keyword arguments, the arguments as ints).
FUNCTIONS = {
    "convolution": (lambda **k: F.convolution(image(), weight(6, 4, 3, 3), **k), CONVOLUTION),
    "conv_integer": (lambda **k: F.conv_integer(levels(2, 4, 9, 9), levels(6, 4, 3, 3), **k), CONVOLUTION),
    "qlinear_conv": (
        lambda **k: F.qlinear_conv(levels(2, 4, 9, 9), levels(6, 4, 3, 3), number(70.0), levels(1), **k),
        CONVOLUTION,
    ),
    "fused_convolution": (lambda **k: F.fused_convolution(image(), weight(6, 4, 3, 3), **k), CONVOLUTION),
    "deconvolution": (lambda **k: F.deconvolution(image(), weight(4, 6, 3, 3), **k), DECONVOLUTION),
    "depthwise_convolution": (lambda **k: F.depthwise_convolution(image(), weight(4, 3, 3), **k), CONVOLUTION),
    "depthwise_deconvolution": (lambda **k: F.depthwise_deconvolution(image(), weight(4, 3, 3), **k), CONVOLUTION),
    "deformable_convolution": (
        lambda **k: F.deformable_convolution(image(), weight(6, 4, 3, 3), weight(2, 18, 9, 9), weight(2, 9, 9, 9), **k),
        CONVOLUTION,
    ),
    "binary_connect_convolution": (
        lambda **k: F.binary_connect_convolution(image(), weight(6, 4, 3, 3), weight(6, 4, 3, 3), **k),
        CONVOLUTION,
    ),
    "binary_weight_convolution": (
        lambda **k: F.binary_weight_convolution(image(), weight(6, 4, 3, 3), weight(6, 4, 3, 3), weight(6), **k),
        CONVOLUTION,
    ),
    "inq_convolution": (
        lambda **k: F.inq_convolution(image(), weight(6, 4, 3, 3), nn.Variable((6, 4, 3, 3)), **k),
        CONVOLUTION,
    ),
    "average_pooling": (lambda **k: F.average_pooling(image(), **k), POOLING),
    "max_pooling": (lambda **k: F.max_pooling(image(), **k), POOLING),
    "sum_pooling": (lambda **k: F.sum_pooling(image(), **k), POOLING),
    "max_pooling_gather": (lambda **k: F.max_pooling_gather(image(), image(), **k), POOLING),
    "unpooling": (lambda **k: F.unpooling(image(), **k), {"kernel": 2}),
    "interpolate": (lambda **k: F.interpolate(image(), **k), {"output_size": 5}),
    "roi_align": (lambda **k: F.roi_align(image(), boxes(), **k), {"output_size": 2}),
    "image_augmentation": (lambda **k: F.image_augmentation(image(3), shape=(3, 5, 5), seed=1, **k), {"pad": 1}),
    "patch_correlation": (
        lambda **k: F.patch_correlation(weight(2, 9, 9, 4), weight(2, 9, 9, 4), **k),
        {"patch": 3, "shift": 1, "patch_step": 2, "shift_step": 1, "padding": 1},
    ),
}
BACKWARD = {
    "max_pooling_backward": (lambda **k: F.max_pooling_backward(weight(2, 4, 5, 5), image(), **k), POOLING),
    "roi_align_backward": (
        lambda **k: F.roi_align_backward(weight(1, 4, 2, 2), boxes(), input_shape=(2, 4, 9, 9), **k),
        {"output_size": 2},
    ),
    "patch_correlation_backward": (
        lambda **k: F.patch_correlation_backward(weight(2, 3, 3, 5, 2), weight(2, 9, 9, 4), weight(2, 9, 9, 4), **k),
        {"patch": 3, "shift": 1, "patch_step": 2, "shift_step": 1, "padding": 1},
    ),
}
#: Positional arguments of layers after the input, unless these are the number of output channels alone.
OPERANDS = {
    "depthwise_convolution": (),
    "depthwise_deconvolution": (),
    "cpd3_convolution": (4,),
    "svd_convolution": (4,),
    "deformable_convolution": (4,),
}
MORE = {
    "cpd3_convolution": {"r": 3},
    "svd_convolution": {"r": 3},
    "deformable_convolution": {"offset": weight(2, 18, 9, 9), "mask": weight(2, 9, 9, 9)},
}


def layer(name):
    """The call of a layer, and its arguments as ints."""

    def call(**arguments):
        nn.seed(3)
        with nn.parameter_scope("layer", {}):
            return getattr(PF, name)(image(), *OPERANDS.get(name, (4,)), **MORE.get(name, {}), **arguments)

    kernel = {"kernel": 3, **CONVOLUTION}
    return call, {**kernel, "output_padding": 1} if name == "deconvolution" else kernel


def has_such_arguments(module, name):
    function = getattr(module, name)
    if isinstance(function, type):
        return False
    return not set(PER_AXIS).isdisjoint(inspect.signature(function).parameters)


LAYERS = [name for name in dir(PF) if has_such_arguments(PF, name)]
CASES = {**FUNCTIONS, **BACKWARD, **{f"PF.{name}": layer(name) for name in LAYERS}}


def as_tuple(name, number):
    return (number,) * (4 if name == "padding" else 2)


@pytest.mark.parametrize(("case", "argument"), [(case, name) for case, (_, ints) in CASES.items() for name in ints])
def test_an_int_means_the_same_for_each_axis(case, argument):
    call, ints = CASES[case]
    tuples = {name: as_tuple(name, number) for name, number in ints.items()}
    with nn.auto_forward():
        expected = call(**tuples)
        result = call(**{**tuples, argument: ints[argument]})
    first = [values[0] if isinstance(values, tuple) else values for values in (result, expected)]
    assert first[0].shape == first[1].shape
    np.testing.assert_array_equal(first[0].numpy(), first[1].numpy())


def test_all_functions_with_such_arguments_are_in_the_table():
    assert {name for name in F.__all__ if has_such_arguments(F, name)} - OTHERS == {*FUNCTIONS, *BACKWARD}
    assert len(LAYERS) >= 14
    for case, (_, ints) in CASES.items():
        function = getattr(PF if case.startswith("PF.") else F, case.removeprefix("PF."))
        assert set(ints) == set(PER_AXIS) & set(inspect.signature(function).parameters), case


def test_axes_and_shapes_are_ints_as_well():
    x = image()
    for call, shape in (
        (lambda: F.sum(x, axis=1), (2, 9, 9)),
        (lambda: F.flip(x, 1), (2, 4, 9, 9)),
        (lambda: PF.batch_normalization(x, axes=1), (2, 4, 9, 9)),
        (lambda: F.tensor_normalization(x, 1), (2, 4, 9, 9)),
        (lambda: F.constant(1.0, 5), (5,)),
        (lambda: F.randn(shape=5), (5,)),
        (lambda: F.reshape(x, -1), (648,)),
        (lambda: F.tile(weight(3), 2), (6,)),
        (lambda: F.random_crop(x, 5), (2, 4, 5, 5)),
        (lambda: F.random_crop(weight(2, 9), 5), (2, 5)),
        (lambda: F.random_crop(weight(2, 3, 9, 9, 9), 5), (2, 3, 5, 5, 5)),
        (lambda: F.image_augmentation(image(3), 5), (2, 3, 5, 5)),
        (lambda: nn.Variable(3), (3,)),
        (lambda: nn.NdArray(3), (3,)),
    ):
        with nn.parameter_scope("layer", {}):
            assert call().shape == shape


def test_three_spatial_axes():
    x = nn.Variable((2, 4, 9, 9, 9))
    with nn.parameter_scope("layer", {}):
        assert PF.convolution(x, 6, 3, stride=2, pad=1).shape == (2, 6, 5, 5, 5)
    assert F.max_pooling(x, 3).shape == F.average_pooling(x, (3, 3, 3)).shape == (2, 4, 3, 3, 3)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda x: F.shift(x, 1), r"hint: \(1,\) moves along the last axis, \(1, 1\) along the last two"),
        (lambda x: F.random_shift(x, 2), r"hint: \(2,\) moves along the last axis, \(2, 2\) along the last two"),
        (lambda x: F.pad(x, 1), r"hint: \(1, 1\) pads the last axis before and after, \(1, 1, 1, 1\) the last two"),
        (lambda x: F.slice(x, 1), r"hint: \(1,\) is for the last axis"),
        (lambda x: F.slice(x, stop=3), r"hint: \(3,\) is for the last axis"),
    ],
)
def test_an_int_of_several_meanings_is_refused(call, hint):
    with pytest.raises(ArgumentError, match=rf"must be a sequence of integers.*\n  {hint}"):
        call(image())
