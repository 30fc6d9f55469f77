"""Functions that are computed as they are called: images are channels-last between them, and nobody sees it."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context


@pytest.fixture(autouse=True)
def on_cpu():
    """Compute at once, on the backend under test."""
    with nn.context_scope(get_extension_context("cpu")), nn.auto_forward():
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def image(rng):
    """The result of a convolution of 2 x 3 x 6 x 5, and its values."""
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 3, 6, 5)).astype(np.float32))
    w = nn.Variable.from_numpy_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32))
    return F.convolution(x, w, pad=(1, 1))


def memory_of(variable):
    """The array of `variable`, in its own layout."""
    synced = variable.data.synced
    return synced.copies[synced.latest]


def test_images_stay_channels_last_between_functions(image):
    h = F.max_pooling(F.relu(image), (2, 2))
    for variable in (image, h):
        assert memory_of(variable).transpose(0, 2, 3, 1).flags.c_contiguous


def test_reading_gives_c_order(image):
    values = np.array(memory_of(image))
    assert image.d.flags.c_contiguous
    np.testing.assert_array_equal(image.d, values)


def test_writing_to_a_result_in_place_is_seen_by_what_follows(image):
    image.d[0, 1] = 7
    np.testing.assert_array_equal(F.relu(image).d[0, 1], 7)


def test_overwriting_a_result_leaves_no_strided_memory(image):
    image.data.data = np.ones(image.shape, np.float32)
    assert memory_of(image).flags.c_contiguous
    np.testing.assert_array_equal(F.sort(image).d, 1)


def test_functions_that_want_c_order_get_it(image):
    truth = np.array(memory_of(image))
    np.testing.assert_allclose(F.sum(image, axis=(3,)).d, truth.sum(3), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(F.reshape(image, (2, -1)).d, truth.reshape(2, -1))


def test_a_view_of_an_image_reads_its_values(image):
    truth = np.array(memory_of(image))
    np.testing.assert_array_equal(F.identity(F.reshape(image, (*image.shape, 1))).d[..., 0], truth)


def test_a_narrowed_array_is_read_as_it_is_seen(rng):
    values = rng.standard_normal((4, 8, 6, 5)).astype(np.float32)
    x = nn.NdArray.from_numpy_array(values).narrow(2, 1, 4)
    np.testing.assert_array_equal(F.relu(x).data, np.maximum(values[:, :, 1:5], 0))
    np.testing.assert_array_equal(F.max_pooling(x, (4, 5)).data[..., 0, 0], values[:, :, 1:5].max((2, 3)))


def test_half_read_images_train_as_unread_ones(rng):
    """A later step in which somebody reads an intermediate value, and so moves it to C order, has the same gradients."""
    x = nn.Variable.from_numpy_array(rng.standard_normal((2, 3, 6, 5)).astype(np.float32))
    w = nn.Variable.from_numpy_array(rng.standard_normal((8, 3, 3, 3)).astype(np.float32), need_grad=True)
    gradients = []
    for reads in (False, False, True, False):
        h = F.tanh(F.convolution(x, w, pad=(1, 1)))
        if reads:
            assert h.d.flags.c_contiguous
        w.grad.zero()
        F.mean(h**2).backward(clear_buffer=True)
        gradients.append(w.g.copy())
    for gradient in gradients[1:]:
        np.testing.assert_allclose(gradient, gradients[0], rtol=1e-5, atol=1e-7)
