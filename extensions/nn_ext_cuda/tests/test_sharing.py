"""Memory of the device that other libraries read and write: DLPack both ways, and ``__cuda_array_interface__``."""

import gc

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.utils.dlpack import from_dlpack, to_dlpack


class Tensor:
    """An array of another library, in the memory of the device."""

    def __init__(self, array):
        self.array = array
        self.streams = []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream, **options)


def computed(values):
    """A Variable whose values are on the device, and the leaf that they are computed from."""
    x = nn.Variable.from_numpy_array(np.asarray(values, np.float32))
    y = F.mul_scalar(x, 2)
    y.forward()
    return x, y


def consumer(array, how):
    """The memory of an NdArray as another library sees it."""
    import fake_cupy

    if how == "dlpack":
        return fake_cupy.from_dlpack(array).view(np.ndarray)
    interface = array.__cuda_array_interface__
    view = np.asarray(type("View", (), {"__array_interface__": {**interface, "version": 3}}))
    assert interface["version"] == 3 and interface["stream"] is None
    return view


HOW = ["dlpack", "interface"]


@pytest.mark.parametrize("how", HOW)
def test_others_read_what_was_held_back(cuda, how):
    from nn_ext_cuda.launch import deferred

    x, y = computed([1, 2])
    for value in range(4):
        x.d = [value, value]
        y.forward()
    array = y.data
    with nn.launch_together():
        x.d = [5, 6]
        y.forward()
        assert deferred._STATE.parts, "launches are held back"
        assert consumer(array, how).tolist() == [10, 12]


@pytest.mark.parametrize("how", HOW)
def test_both_sides_see_what_the_other_writes(cuda, how):
    array = F.add_scalar(nn.NdArray.from_numpy_array(np.float32([1, 2])), 1)
    theirs = consumer(array, how)
    assert F.add_scalar(array, 1).data.tolist() == [3, 4]
    theirs[0] = 7
    assert F.add_scalar(array, 1).data.tolist() == [8, 4]
    array += 1
    assert theirs.tolist() == [8, 4]


@pytest.mark.parametrize("how", HOW)
def test_copies_of_shared_values_are_made_anew(cuda, how):
    _, y = computed([1, 2])
    theirs = consumer(y.data, how)
    assert y.data.get_data("r").tolist() == [2, 4]
    theirs[0] = 7
    assert y.data.get_data("r").tolist() == [7, 4]
    with nn.context_scope(nn.Context(["cuda:half"], nn.get_current_context().array_class)):
        z = F.add_scalar(y.data, 1)
        theirs[1] = 8
        assert F.add_scalar(y.data, 1).data.tolist() == [8, 9]
        assert z.data.tolist() == [8, 5]


def test_values_that_were_only_filled_are_written_before_others_see_them(cuda):
    _, y = computed([1, 2])
    y.data.fill(3)
    assert consumer(y.data, "dlpack").tolist() == [3, 3]
    y.data.fill(4)
    assert consumer(y.data, "interface").tolist() == [4, 4]


def test_memory_of_which_the_address_was_given_away_is_kept(cuda):
    _, y = computed(np.arange(1000))
    array = y.data
    theirs = consumer(y.data, "interface")
    array.clear()
    del y
    gc.collect()
    others = [nn.NdArray.from_numpy_array(np.full(1000, -1, np.float32)) for _ in range(8)]
    assert theirs.tolist() == list(range(0, 2000, 2))
    assert len(others) == 8 and array.clear_called


def test_the_stream_of_a_consumer_waits_for_ours(cuda, monkeypatch):
    import fake_cupy

    _, y = computed([1, 2])
    ours = fake_cupy.Stream(ptr=8)
    monkeypatch.setattr(fake_cupy.Stream, "current", ours)
    monkeypatch.setattr(fake_cupy.Stream, "waited_for", [])
    y.__dlpack__(stream=16)
    assert fake_cupy.Stream.waited_for == [(16, ours)]


def test_an_address_is_given_when_the_values_are_there(cuda, monkeypatch):
    import fake_cupy

    _, y = computed([1, 2])
    waits = []
    ours = fake_cupy.Stream(ptr=8)
    monkeypatch.setattr(ours, "synchronize", lambda: waits.append(True), raising=False)
    monkeypatch.setattr(fake_cupy.Stream, "current", ours)
    assert y.data.__cuda_array_interface__["stream"] is None  # PyTorch reads in a stream of its own, and does not ask
    assert len(waits) == 1


def test_arrays_of_others_are_taken_without_a_copy(cuda, monkeypatch):
    import fake_cupy

    theirs = Tensor(cuda.asarray(np.float32([[1, 2], [3, 4]])))
    monkeypatch.setattr(fake_cupy.Stream, "current", fake_cupy.Stream(ptr=8))
    array = nn.NdArray.from_dlpack(theirs)
    assert theirs.streams == [8]
    assert array.__dlpack_device__() == (2, 0)
    assert F.add_scalar(array, 1).data.tolist() == [[2, 3], [4, 5]]
    theirs.array.view(np.ndarray)[0, 0] = 9
    assert F.add_scalar(array, 1).data.tolist() == [[10, 3], [4, 5]]
    assert array.get_data("r").tolist() == [[9, 2], [3, 4]]
    F.assign(array, nn.NdArray((2, 2)))
    assert theirs.array.get().tolist() == [[0, 0], [0, 0]]


def test_a_plan_reads_the_memory_of_others(cuda):
    theirs = Tensor(cuda.asarray(np.float32([1, 2])))
    x = nn.Variable((2,))
    x.data = nn.NdArray.from_dlpack(theirs)
    y = F.mul_scalar(x, 2)
    for value in (1, 3, 5, 7):
        theirs.array.view(np.ndarray)[0] = value
        y.forward()
        assert y.d.tolist() == [2 * value, 4]


def test_arrays_that_are_not_in_c_order_are_copied(cuda):
    theirs = Tensor(cuda.asarray(np.float32([[1, 2], [3, 4]])).T)
    array = nn.NdArray.from_dlpack(theirs)
    theirs.array.view(np.ndarray)[...] = 0
    assert array.__dlpack_device__() == (2, 0)
    assert array.data.tolist() == [[1, 3], [2, 4]]


def test_capsules_name_the_device_of_their_memory(cuda):
    _, y = computed([1, 2])
    taken = from_dlpack(to_dlpack(y))
    assert taken.__dlpack_device__() == (2, 0)
    assert taken.data.tolist() == [2, 4]
    _, y = computed([1.75, 2])
    assert from_dlpack(to_dlpack(y, dtype=np.int32)).data.tolist() == [3, 4]
    target = nn.NdArray((2,))
    assert from_dlpack(to_dlpack(computed([1, 2])[1]), arr=target) is target
    assert target.data.tolist() == [2, 4]


def test_a_copy_on_the_host_can_be_asked_for(cuda):
    _, y = computed([1, 2])
    copy = np.from_dlpack(y, device="cpu")
    assert copy.tolist() == [2, 4] and y.__dlpack_device__() == (2, 0)
    with pytest.raises(BufferError, match=r"dl_device must be the device of the values, \(2, 0\), or, with a copy, the host"):
        y.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"got \(2, 1\) with copy=None"):
        y.__dlpack__(dl_device=(2, 1))


def test_values_on_the_host_are_shared_by_numpy(cuda):
    x, _ = computed([1, 2])
    assert x.__dlpack_device__() == (1, 0)
    np.from_dlpack(x)[0] = 5
    assert x.d.tolist() == [5, 2]
    assert not hasattr(nn.NdArray.from_numpy_array(np.ones(2)), "__cuda_array_interface__")


def test_memory_of_a_device_without_a_backend_is_refused(cuda):
    theirs = Tensor(cuda.asarray(np.float32([1, 2])))
    with (
        nn.context_scope(nn.Context(["reference:float"])),
        pytest.raises(ArgumentError, match="must be on the host or on a device of the current context, got CUDA device 0"),
    ):
        nn.NdArray.from_dlpack(theirs)


def test_a_view_that_would_have_to_be_copied_is_not_shared(cuda):
    from nn_core.engine.arrays.leases import STRIDED

    _, y = computed(np.arange(24).reshape(1, 2, 3, 4))
    synced = nn.NdArray((1, 2, 3, 4)).synced
    array = nn.NdArray((24,))
    array.rest_on(synced, (24,))
    key = y.data.synced.latest
    synced.hold(key, cuda.asarray(np.zeros((1, 3, 4, 2), np.float32)).transpose(0, 3, 1, 2))
    synced.lease = STRIDED
    with pytest.raises(BufferError, match="must not be a view under another shape of values that are channels-last"):
        array.__dlpack__()
