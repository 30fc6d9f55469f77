"""Sorts, and values put to positions that repeat, of sizes that need several passes; emulated."""

import numpy as np
import pytest


def ran(device, name, inputs, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, inputs, **args)
    assert KERNELS[name].refuse(call) is None
    return emulated.forward(device, KERNELS[name], call, inputs)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("length", [1, 2, 3, 64, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_rows_are_sorted_with_equal_ones_in_order_and_nan_as_the_largest(device, rng, length, reverse):
    x = rng.integers(0, 9, (2, length, 3)).astype("float32")
    x[rng.random(x.shape) < 0.2] = np.nan
    y, index = ran(device, "Sort", [x], axis=1, reverse=reverse, with_index=True)
    ranks = np.where(np.isnan(x), np.inf, x)
    order = np.argsort(-ranks if reverse else ranks, axis=1, kind="stable")
    np.testing.assert_array_equal(index, order)
    np.testing.assert_array_equal(y, np.take_along_axis(x, order, axis=1))
    (alone,) = ran(device, "Sort", [x], axis=1, reverse=reverse, only_index=True)
    np.testing.assert_array_equal(alone, order)


def test_half_precision_is_sorted_too(device, rng):
    x = rng.normal(size=(5, 33)).astype("float16")
    (y,) = ran(device, "Sort", [x], dtype="float16", axis=1)
    np.testing.assert_array_equal(y, np.sort(x, axis=1))


@pytest.mark.parametrize("largest", [True, False])
def test_the_first_of_each_sample_are_picked_or_kept_in_place(device, rng, largest):
    x = rng.normal(size=(4, 5, 7)).astype("float32")
    flat = x.reshape(4, 35)
    order = np.argsort(-np.abs(flat) if largest else np.abs(flat), axis=1, kind="stable")[:, :6]
    args = {"k": 6, "abs": True, "base_axis": 1, "largest": largest}
    y, index = ran(device, "TopKData", [x], reduce=True, with_index=True, **args)
    np.testing.assert_array_equal(index, order)
    np.testing.assert_array_equal(y, np.take_along_axis(flat, order, axis=1))
    (kept,) = ran(device, "TopKData", [x], reduce=False, **args)
    expected = np.zeros_like(flat)
    np.put_along_axis(expected, order, np.take_along_axis(flat, order, axis=1), axis=1)
    np.testing.assert_array_equal(kept, expected.reshape(x.shape))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_blocks_that_meet_are_added_in_the_order_of_the_indices(device, rng, dtype):
    data = rng.normal(size=(300, 5)).astype(dtype)
    indices = np.stack([rng.integers(-3, 3, 300), rng.integers(0, 2, 300)])
    (y,) = ran(device, "ScatterNd", [data, indices, None], dtype=dtype, shape=(3, 2, 5), add=True)
    expected = np.zeros((3, 2, 5), "float32")
    np.add.at(expected, tuple(indices), data.astype("float32"))
    np.testing.assert_array_equal(y, expected.astype(dtype))


def test_of_blocks_that_meet_the_last_remains_and_the_others_stay(device, rng):
    data, out = rng.normal(size=(50,)).astype("float32"), rng.normal(size=(6, 7)).astype("float32")
    indices = np.stack([rng.integers(0, 3, 50), rng.integers(0, 4, 50)])
    (y,) = ran(device, "ScatterNd", [data, indices, out])
    expected = out.copy()
    expected[tuple(indices)] = data
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_are_added_along_an_axis_in_the_order_of_the_indices(device, rng, axis):
    x0, x1 = rng.normal(size=(4, 5, 6)).astype("float32"), rng.normal(size=(7, 8, 9)).astype("float32")
    shape = [3, 4, 5]
    shape[axis] = 7
    indices = rng.integers(-4, 4, shape)
    (y,) = ran(device, "ScatterAdd", [x0, indices, x1], axis=axis)
    places = list(np.indices(shape))
    places[axis] = indices
    expected = x0.copy()
    np.add.at(expected, tuple(places), x1[tuple(map(slice, shape))])
    np.testing.assert_array_equal(y, expected)


def test_positions_beyond_the_array_are_left_out(device):
    data, indices = np.ones(3, "float32"), np.array([[0, 9, -9]])
    (y,) = ran(device, "ScatterNd", [data, indices, None], shape=(4,), add=True)
    np.testing.assert_array_equal(y, [1, 0, 0, 0])
    (z,) = ran(device, "GatherNd", [np.arange(4, dtype="float32"), indices])
    np.testing.assert_array_equal(z, [0, np.nan, np.nan])


def test_blocks_are_picked_by_position(device, rng):
    x = rng.normal(size=(3, 4, 5)).astype("float32")
    indices = np.stack([rng.integers(-3, 3, (6, 2)), rng.integers(0, 4, (6, 2))])
    (y,) = ran(device, "GatherNd", [x, indices])
    np.testing.assert_array_equal(y, x[tuple(indices)])


def test_a_sort_is_part_of_a_graph(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    x = np.random.default_rng(1).normal(size=(2, 9)).astype("float32")
    call = emulated.call_of("Sort", [x])
    given, result = device.asarray(x), device.asarray(np.zeros_like(x))
    step = KERNELS["Sort"].forward(call).bind(given, result)
    assert step.capturable
    step()
    np.testing.assert_array_equal(result.get(), np.sort(x, axis=-1))


def test_reference_kernels_add_in_the_order_of_the_indices(cuda, rng):
    from nn_core.engine.dispatch.plugin_manager import PLUGINS

    xp = PLUGINS.backend("cuda").namespace()
    values = rng.normal(size=(200, 3)).astype("float32")
    places = rng.integers(-2, 2, 200), rng.integers(0, 2, 200)
    expected = np.zeros((2, 2, 3), "float32")
    np.add.at(expected, places, values)

    def added(add):
        total = cuda.asarray(np.zeros((2, 2, 3), "float32"))
        add.at(total, tuple(map(cuda.asarray, places)), cuda.asarray(values))
        return total.get()

    for _ in range(2):
        np.testing.assert_array_equal(added(xp.add), expected)
    assert (added(cuda.add) != added(cuda.add)).any(), "the library itself adds in any order"
    counts = cuda.asarray(np.zeros(3, "int64"))
    xp.add.at(counts, cuda.asarray(np.array([0, 2, 2])), 1)
    np.testing.assert_array_equal(counts.get(), [1, 0, 2])
    np.testing.assert_array_equal(xp.add(counts, counts).get(), [2, 0, 4])


def test_an_array_that_is_not_contiguous_is_added_to(cuda):
    from nn_core.engine.dispatch.plugin_manager import PLUGINS

    total = cuda.asarray(np.zeros((3, 4), "float32"))
    part = total[:, 1:3]
    places, ones = cuda.asarray(np.array([0, 0, 2])), cuda.asarray(np.ones((3, 2), "float32"))
    PLUGINS.backend("cuda").namespace().add.at(part, places, ones)
    np.testing.assert_array_equal(total.get(), [[0, 2, 2, 0], [0, 0, 0, 0], [0, 1, 1, 0]])


def test_places_beyond_32_bits_are_added_to_in_the_same_way(cuda, rng):
    """Kernels of this package leave such arrays to the reference, whose sums take 64-bit places."""
    from fake_cupy import FakeArray

    from nn_core.engine.dispatch.plugin_manager import PLUGINS

    n = 2**31 + 10
    try:
        total = np.zeros(n, "float16").view(FakeArray)  # memory that nobody writes to takes no room
    except MemoryError:
        pytest.skip("4 GiB of addresses cannot be had")
    places = np.array([n - 1, 3, n - 1, 2**31, n - 1])
    values = rng.normal(size=5).astype("float16")
    PLUGINS.backend("cuda").namespace().add.at(total, cuda.asarray(places), cuda.asarray(values))
    expected = np.float32(0)
    for value in values[[0, 2, 4]]:
        expected += np.float32(value)
    plain = total.view(np.ndarray)
    assert plain[n - 1] == np.float16(expected)
    assert (plain[3], plain[2**31], plain[n - 1 - 2**31], plain[2**31 - 1]) == (values[1], values[3], 0, 0)
