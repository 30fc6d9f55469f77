"""Images in memory channels-last, and graphs that look at that memory in other ways."""

from collections.abc import Callable

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext_utils import get_extension_context


@pytest.mark.parametrize("shape", [(1, 16, 2, 2), (2, 2, 4, 4), (1, 1, 4, 4, 4), (4, 16)])
def test_an_unlinked_view_beside_its_source_is_read_in_c_order(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    with nn.context_scope(get_extension_context("cpu")):
        x = nn.Variable((1, 4, 4, 4))
        zero, one = (nn.Variable.from_numpy_array(np.full((1, 4, 1, 1), value)) for value in (0, 1))
        image = F.batch_normalization(x, zero, one, zero, one, eps=0, batch_stat=False)
        view = F.reshape(image, shape)
        x.d = rng.normal(size=x.shape)
        view.forward()
        unlinked = view.get_unlinked_variable(need_grad=False)
        weight = np.arange(1, shape[1] + 1).reshape(1, shape[1], *[1] * (len(shape) - 2))
        y = F.convolution(unlinked, nn.Variable.from_numpy_array(weight)) if len(shape) == 4 else F.tanh(unlinked)
        y.persistent = True
        for _ in range(2):
            x.d = rng.normal(size=x.shape)
            nn.forward_all([F.relu(image), y])
            seen = x.d.reshape(shape)
            expected = (seen * weight).sum(1, keepdims=True) if len(shape) == 4 else np.tanh(seen)
            np.testing.assert_allclose(y.d, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(-1,), (2, 2), (2, 1, 1, 2)])
def test_a_view_of_an_image_that_the_backward_pass_recomputes_is_read_in_c_order(
    shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    image, weight = (rng.normal(size=size).astype(np.float32) for size in ((1, 2, 1, 2), (2, 2, 3, 3)))

    def gradient(*, recompute: bool) -> np.ndarray:
        x = nn.Variable.from_numpy_array(image, need_grad=True)
        with nn.recompute(recompute):
            h = F.deconvolution(x, nn.Variable.from_numpy_array(weight), pad=(1, 1))
        y = F.reshape(h, shape) ** 2
        x.grad.zero()
        y.forward()
        y.backward(clear_buffer=True)
        return x.g.copy()

    with nn.context_scope(get_extension_context("cpu")):
        np.testing.assert_array_equal(gradient(recompute=True), gradient(recompute=False))


@pytest.mark.parametrize("empty", [(0, 3, 4, 4), (2, 3, 0, 4)])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: PF.batch_normalization(x, name="b"),
        lambda x: PF.batch_normalization(x, batch_stat=False, name="b"),
        lambda x: PF.group_normalization(x, 3, name="g"),
        lambda x: F.relu(PF.batch_normalization(F.swish(x), batch_stat=False, name="b")),
    ],
)
def test_empty_images_have_any_layout(function: Callable[[nn.Variable], nn.Variable], empty: tuple[int, ...]) -> None:
    """A leaf without elements is in C order and channels-last at the same time."""
    x = nn.Variable((2, 3, 4, 4), need_grad=True)
    with nn.context_scope(get_extension_context("cpu")), nn.parameter_scope("empty", {}):
        y = F.sum(function(x))
    for shape in (empty, (2, 3, 4, 4), empty):
        x.reset_shape(shape, True)
        y.forward()
        x.grad.zero()
        y.backward()
        assert x.g.shape == shape
    assert y.d == 0.0
