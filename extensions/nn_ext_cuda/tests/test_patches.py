"""Patches that are compared, and windows weighed by kernels of each pixel, on the emulated device, beside the reference."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

SETTINGS = [
    {},
    {"shift": (2, 3), "padding": (2, 2, 3, 3)},
    {"patch": (3, 2), "shift": (3, 4), "patch_step": (2, 3), "shift_step": (2, 3), "padding": (1, 2, 0, 3)},
    {"patch": (1, 5), "shift": (9, 0), "shift_step": (4, 1)},
]


def compare(shapes, build):
    """The result and the gradients of a function of some arrays, on both backends, without a fallback."""
    import emulated

    emulated.compare_with_reference(build, shapes, 5e-6)


@pytest.mark.parametrize("settings", SETTINGS)
def test_correlations(cuda, settings):
    compare([(2, 3, 6, 7), (2, 3, 6, 7)], lambda one, other: F.patch_correlation(one, other, **settings))


@pytest.mark.parametrize("which", [0, 1])
def test_gradients_of_gradients(cuda, which):
    def build(dy, one, other):
        return F.patch_correlation_backward(dy, one, other, patch=(2, 2), shift=(1, 2))[which]

    compare([(2, 3, 5, 4, 5), (2, 3, 5, 6), (2, 3, 5, 6)], build)


def test_windows_with_kernels_of_their_own(cuda):
    shapes = [(2, 3, 7, 9), (2, 3, 6, 8), (2, 4, 5, 7)]  # kernels have more places than are used
    compare(shapes, F.adaptive_separable_convolution)


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    one, other = (nn.Variable.from_numpy_array(np.ones((1, 2, 4, 5), "float32"), need_grad=True) for _ in range(2))
    loss = F.sum(F.patch_correlation(one, other, shift=(1, 1)))
    emulated.check_recorded(loss, one)
