"""Places and gradients of extrema, of sizes that the samples of the conformance kit do not have, emulated."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

RNG = np.random.default_rng(0)


def numbers(shape, dtype="float32"):
    """Few different values, so that several are equal."""
    return RNG.integers(-9, 9, size=shape).astype(dtype)


def expected_place(x, axes, name):
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(*[x.shape[axis] for axis in kept], -1)
    return (rows.argmax if name == "Max" else rows.argmin)(-1)


@pytest.mark.parametrize("name", ["Max", "Min"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((3, 700), (1,)), ((70, 3), (0,)), ((4, 5, 6), (0, 2)), ((4, 5, 6), (1,)), ((3, 4), (0, 1)), ((41,), (0,))],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_places_and_gradients(device, name, shape, axes, dtype):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = numbers(shape, dtype)
    call = emulated.call_of(name, [x], dtype, axes=axes, with_index=True)
    assert KERNELS[name].refuse(call) is None
    y, index = emulated.forward(device, KERNELS[name], call, [x])
    place = expected_place(x, axes, name)
    np.testing.assert_array_equal(index, place)
    np.testing.assert_array_equal(y, (x.max if name == "Max" else x.min)(axes))
    only = emulated.call_of(name, [x], dtype, axes=axes, only_index=True, keep_dims=True)
    np.testing.assert_array_equal(emulated.forward(device, KERNELS[name], only, [x])[0].reshape(place.shape), place)
    assert KERNELS[name].backward(only, [True]) is None
    plain = emulated.call_of(name, [x], dtype, axes=axes)
    dy = RNG.normal(size=y.shape).astype(dtype)
    (dx,) = emulated.backward(device, KERNELS[name], plain, [x], dy, [y])
    order = [axis for axis in range(x.ndim) if axis not in axes] + list(axes)
    rows = dx.transpose(order).reshape(*y.shape, -1)
    np.testing.assert_array_equal(np.take_along_axis(rows, place[..., None], -1)[..., 0], dy)
    assert np.count_nonzero(rows) == np.count_nonzero(dy)


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_the_first_nan_goes_before_numbers_and_infinities_are_numbers(device, name):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = np.array([[1, np.nan, 9, np.nan], [-np.inf, -np.inf, -np.inf, -np.inf], [np.inf, np.inf, np.inf, np.inf]], "float32")
    call = emulated.call_of(name, [x], axes=(1,), with_index=True)
    y, index = emulated.forward(device, KERNELS[name], call, [x])
    assert index.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(y, [np.nan, -np.inf, np.inf])


@pytest.mark.parametrize("name", ["Max", "Min"])
def test_gradients_go_to_the_first_element_equal_to_the_result_after_the_input_was_replaced(device, name):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = np.array([[1, 7, 7, 9, -9], [1, 2, 3, 4, 5], [np.nan, 7, -np.inf, np.inf, 7], [7, 7, 7, 7, 7]], "float32")
    y = np.array([7, 7, 7, np.nan], "float32")
    call = emulated.call_of(name, [x], axes=(1,))
    (dx,) = emulated.backward(device, KERNELS[name], call, [x], np.array([1, 2, 3, 4], "float32"), [y])
    np.testing.assert_array_equal(dx, [[0, 1, 0, 0, 0], [0] * 5, [0, 3, 0, 0, 0], [0] * 5])


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(numbers((4, 30)), need_grad=True)
    index = F.max(x, axis=1, only_index=True)
    loss = F.sum(F.max(x, axis=1) * F.min(x, axis=1))
    emulated.check_recorded(loss, x)
    emulated.check_recorded(index)
    np.testing.assert_array_equal(index.d, x.d.argmax(1))
