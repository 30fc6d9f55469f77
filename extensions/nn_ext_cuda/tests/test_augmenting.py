"""Samples altered at random on the emulated device, beside the reference: the same numbers, pass by pass."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

RNG = np.random.default_rng(0)
SETTINGS = {
    "crop": ("random_crop", (5, 3, 9, 11), {"shape": (3, 4, 6)}),
    "crop_of_one_axis": ("random_crop", (2, 3, 40), {"shape": (7,), "base_axis": 2}),
    "flip": ("random_flip", (6, 2, 5, 4), {"axes": (2, 3)}),
    "flip_of_no_axis": ("random_flip", (2, 2, 3), {"axes": ()}),
    "shift_nearest": ("random_shift", (4, 2, 5, 6), {"shifts": (2, 9)}),
    "shift_reflect": ("random_shift", (4, 2, 5, 6), {"shifts": (12, 3), "border_mode": "reflect"}),
    "shift_constant": ("random_shift", (4, 2, 5, 6), {"shifts": (2, 7), "border_mode": "constant", "constant_value": 0.5}),
    "erase": ("random_erase", (4, 3, 10, 12), {"n": 3, "replacements": (-1.0, 2.0), "prob": 0.7}),
    "erase_each": ("random_erase", (3, 2, 9, 8), {"n": 2, "share": False, "prob": 0.6, "area_ratios": (0.1, 0.9)}),
    "erase_last": ("random_erase", (4, 10, 12, 3), {"channel_last": True, "share": False, "prob": 1.0}),
    "erase_nothing": ("random_erase", (2, 3, 4, 5), {"prob": 0.0}),
    "images": ("image_augmentation", (3, 2, 8, 10), {"shape": (2, 6, 7), "pad": (1, 2), "flip_lr": True, "flip_ud": True}),
    "images_warped": (
        "image_augmentation",
        (4, 3, 9, 9),
        {"min_scale": 0.7, "max_scale": 1.6, "angle": 0.4, "aspect_ratio": 1.3, "distortion": 0.2},
    ),
    "images_toned": (
        "image_augmentation",
        (3, 3, 6, 5),
        {"brightness": 0.3, "contrast": 1.4, "contrast_center": 0.5, "contrast_each": True, "noise": 0.1},
    ),
    "images_toned_alike": ("image_augmentation", (2, 3, 4, 4), {"brightness": 0.3, "brightness_each": True, "contrast": 2.0}),
    "beta": ("rand_beta", None, {"alpha": 0.4, "beta": 2.5, "shape": (301,)}),
    "gamma": ("rand_gamma", None, {"k": 0.3, "theta": 2.0, "shape": (7, 43)}),
    "gamma_of_large_shape": ("rand_gamma", None, {"k": 12.0, "theta": 0.5, "shape": (99,)}),
    "binomial": ("rand_binomial", None, {"n": 20, "p": 0.3, "shape": (201,)}),
    "binomial_always": ("rand_binomial", None, {"n": 5, "p": 1.0, "shape": (9,)}),
    "binomial_never": ("rand_binomial", None, {"n": 5, "p": 0.0, "shape": (9,)}),
}


def passes(context, name, shape, settings):
    """Results and gradients of four passes of a graph, the last of which are recorded on a device."""
    nn.seed(77)
    found = []
    with nn.context_scope(context):
        given = np.random.default_rng(1).normal(size=shape or ()).astype("float32")
        x = nn.Variable.from_numpy_array(given, need_grad=True)
        y = getattr(F, name)(*([x] if shape else []), **settings)
        for _ in range(4):
            y.forward()
            found.append(y.d.copy())
            if shape and name != "image_augmentation":
                x.grad.zero()
                y.backward(np.random.default_rng(2).normal(size=y.shape).astype("float32"))
                found.append(x.g.copy())
    return found


@pytest.mark.parametrize("case", SETTINGS)
def test_numbers_are_those_of_the_reference(cuda, case):
    found = passes(nn.get_current_context(), *SETTINGS[case])
    assert not nn.fallback_report()
    expected = passes(nn.Context(["reference:float"]), *SETTINGS[case])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    if case not in ("flip_of_no_axis", "erase_nothing", "binomial_always", "binomial_never"):
        assert not np.array_equal(found[0], found[-1] if len(found) == 4 else found[-2])


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(RNG.normal(size=(4, 3, 8, 8)).astype("float32"), need_grad=True)
    y = F.random_erase(F.random_shift(F.random_flip(F.image_augmentation(x), axes=(3,)), (1, 1)), prob=0.5)
    loss = F.sum(F.random_crop(y + x, (3, 6, 6)) * F.rand_beta(2.0, 2.0, (4, 1, 1, 1)))
    emulated.check_recorded(loss, x)


@pytest.mark.parametrize("name", ["gather_axes", "scatter_axes"])
def test_positions_beyond_an_axis_are_told(cuda, name):
    from nn_core.errors import ArgumentError

    source = nn.Variable.from_numpy_array(np.array([[0, 1, 0, 4]]))
    x = nn.Variable.from_numpy_array(np.ones((1, 2, 2), "float32"))
    y = getattr(F, name)(x, source, base_axis=1, shape=(2, 2))
    with pytest.raises(ArgumentError, match=rf"{name}: source must be in .*2.*, got 4"):
        y.forward()
        y.d.copy()


def test_what_is_left_to_the_reference(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = np.zeros((4, 3, 5), "float32")
    call = emulated.call_of("RandomFlip", [x], axes=(0, 2))
    assert "from base_axis on alone" in KERNELS["RandomFlip"].refuse(call).reason
    call = emulated.call_of("RandBinomial", [], n=5000, p=0.5, shape=(3,))
    assert "takes n up to 4096, got 5000" in KERNELS["RandBinomial"].refuse(call).reason
