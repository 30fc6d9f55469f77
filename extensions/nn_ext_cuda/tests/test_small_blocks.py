"""Memory of small arrays: the lowest free address, no more than a limit, and none of it in graphs."""

import numpy as np
import pytest


@pytest.fixture
def recycled(device):
    from nn_ext_cuda.memory.small_blocks import Recycled

    return Recycled()


def address(array):
    return int(array.data.ptr)


def test_the_lowest_free_address_is_given_out(recycled):
    arrays = [recycled.empty((100,), "float32") for _ in range(5)]
    places = [address(array) for array in arrays]
    for n in (3, 1, 4, 0, 2):
        arrays[n] = None
    again = [recycled.empty((10, 10), "float32") for _ in range(5)]
    assert [address(array) for array in again] == sorted(places)


def test_a_view_keeps_the_memory(recycled):
    view = recycled.empty((100,), "float32")[10:20]
    assert recycled.sizes(0) == []
    assert address(recycled.empty((100,), "float32")) != address(view) - 40
    del view
    assert recycled.sizes(0) == [512, 512]


def test_arrays_are_of_the_shape_and_dtype_that_was_asked_for(recycled):
    for _ in range(2):
        array = recycled.empty((3, 5), "float64")
        assert (array.shape, array.dtype, array.flags.c_contiguous) == ((3, 5), np.float64, True)


def test_sizes_devices_and_streams_do_not_mix(device, recycled):
    place = address(recycled.empty((100,), "float32"))
    others = [recycled.empty((200,), "float32")]
    with device.cuda.Device(1):
        others.append(recycled.empty((100,), "float32"))
        assert recycled.sizes(1) == []
    with device.cuda.Stream(non_blocking=True):
        others.append(recycled.empty((100,), "float32"))
    assert place not in [address(array) for array in others]
    assert address(recycled.empty((100,), "float32")) == place


def test_large_and_empty_arrays_are_those_of_the_pool(recycled):
    from nn_ext_cuda.memory import small_blocks as module

    for n in (0, module.MAX_ARRAY_BYTES + 1):
        assert recycled.empty((n,), "uint8").nbytes == n
    assert recycled.sizes(0) == []


def test_free_memory_is_limited(recycled, monkeypatch):
    from nn_ext_cuda.memory import small_blocks as module

    monkeypatch.setattr(module, "MAX_FREE_BYTES", 3 * 512)
    arrays = [recycled.empty((1,), "uint8") for _ in range(5)]
    while arrays:
        arrays.pop()
        assert sum(recycled.sizes(0)) <= 3 * 512
    assert recycled.sizes(0) == [512, 512]


def test_a_full_device_gets_what_is_free(device, monkeypatch):
    from nn_ext_cuda.memory.arrays import allocated
    from nn_ext_cuda.memory.small_blocks import RECYCLED

    del (small := [RECYCLED.empty((5,), "uint8")])[:]
    assert RECYCLED.sizes(0)
    fresh = device.empty

    def empty(shape, dtype):
        if RECYCLED.sizes(0):
            raise device.cuda.memory.OutOfMemoryError("full")
        return fresh(shape, dtype)

    monkeypatch.setattr(device, "empty", empty)
    assert allocated((7,), "uint8").shape == (7,)
    assert small == []


def test_memory_from_the_driver_is_not_kept(cuda):
    from nn_ext_cuda.device import devices
    from nn_ext_cuda.memory.small_blocks import RECYCLED

    array = RECYCLED.empty((5,), "uint8")
    try:
        devices.prefer_cached_array(False)
        del array
        del (other := [RECYCLED.empty((5,), "uint8")])[:]
        assert RECYCLED.sizes(0) == [] and other == []
    finally:
        devices.reset_array_preference()
    del (other := [RECYCLED.empty((5,), "uint8")])[:]
    assert RECYCLED.sizes(0)
    devices.clear_memory_cache()
    assert RECYCLED.sizes(0) == []


def test_arrays_that_are_made_while_a_graph_is_recorded_are_of_its_pool(device):
    from nn_ext_cuda.launch.graphs import record
    from nn_ext_cuda.memory.small_blocks import RECYCLED

    del (kept := [RECYCLED.empty((5,), "uint8")])[:]
    free = list(RECYCLED.sizes(0))
    record([lambda: kept.append(RECYCLED.empty((5,), "uint8"))], uses_blas=False)
    assert free == RECYCLED.sizes(0)
    kept.clear()
    assert free == RECYCLED.sizes(0)
