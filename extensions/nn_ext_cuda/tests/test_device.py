"""The offers of the package besides functions, on an emulated device with two of a kind."""

import dataclasses
import gc

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError
from nn_core.ext import dtype_of
from nn_core.ext_utils import get_extension_context, import_extension_module


def test_everything_that_is_announced_is_there(cuda):
    module = import_extension_module("cuda")
    assert all(callable(getattr(module, name)) for name in module.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'absent'"):
        module.absent  # noqa: B018


def test_devices_and_their_memory(cuda, capsys):
    module = import_extension_module("cuda")
    assert module.get_device_count() == 2
    assert module.get_devices() == ["Fake 0", "Fake 1"]
    assert module.memory_info(1) == (1000, 4000, 128, 512)
    assert module.memory_info()._fields == ("free_bytes", "total_bytes", "used_bytes", "held_bytes")
    module.clear_memory_cache()
    module.device_synchronize("1")
    module.synchronize_stream()
    module.print_memory_cache_map()
    assert capsys.readouterr().out.count("Fake") == 2


def test_the_kind_of_arrays_can_be_chosen(cuda, monkeypatch):
    module = import_extension_module("cuda")
    allocators = []
    monkeypatch.setattr(cuda.cuda, "set_allocator", allocators.append)
    module.prefer_cached_array(False)
    assert module.array_classes() == ["CudaArray", "CudaCachedArray"]
    module.reset_array_preference()
    assert module.array_classes() == ["CudaCachedArray", "CudaArray"]
    assert allocators == [None, cuda.get_default_memory_pool().malloc]


def test_events_keep_a_program_near_its_device(cuda):
    import fake_cupy

    events = import_extension_module("cuda").StreamEventHandler(0)
    before = fake_cupy.Event.synchronized
    for step in range(4):
        events.event_synchronize()
        assert fake_cupy.Event.synchronized - before == max(step - 1, 0)
        events.add_default_stream_event()


def test_a_context_chooses_the_device_of_its_functions(cuda):
    from nn_ext_cuda.device.runtime import cupy

    used = []
    with nn.context_scope(get_extension_context("cuda", device_id=1)):
        y = F.tanh(nn.Variable.from_numpy_array(np.ones(2, np.float32)))
    z = F.exp(nn.Variable.from_numpy_array(np.ones(2, np.float32)))
    for graph in (y, z, y, z):
        graph.forward()
        used.append(cupy.cuda.runtime.getDevice())
    assert used == [1, 0, 1, 0]


def test_what_is_held_back_is_launched_before_another_device_is_used(cuda, monkeypatch):
    from nn_ext_cuda.device import devices
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cuda.launch import deferred

    launched_on = []
    monkeypatch.setattr(deferred, "flush", lambda: launched_on.append(cupy.cuda.runtime.getDevice()))
    devices.use_device(0)
    assert launched_on == []
    devices.use_device(1)
    devices.use_device(0)
    assert launched_on == [0, 1]


@pytest.mark.parametrize("device_id", ["2", 7])
def test_a_device_that_is_not_there_is_refused(cuda, device_id):
    with pytest.raises(ArgumentError, match="must be below the number of devices, 2, got"):
        get_extension_context("cuda", device_id=device_id)


@pytest.mark.parametrize(("type_config", "dtype"), [("float", "float32"), ("half", "float16"), ("double", "float64")])
def test_the_number_type_of_a_context_is_that_of_its_results(cuda, type_config, dtype):
    with nn.context_scope(get_extension_context("cuda", type_config=type_config)):
        y = F.tanh(nn.NdArray.from_numpy_array(np.ones(3)))
    assert y.dtype == dtype
    np.testing.assert_allclose(y.data, np.tanh(1), rtol=1e-3)


def test_bfloat16_is_a_number_type_too(cuda):
    pytest.importorskip("ml_dtypes")
    with nn.context_scope(get_extension_context("cuda", type_config="bfloat16")):
        y = F.tanh(nn.NdArray.from_numpy_array(np.ones(3)))
    assert y.dtype.name == "bfloat16"
    np.testing.assert_allclose(y.data.astype(np.float32), np.tanh(1), rtol=1e-2)


def test_wrong_settings_of_a_context_are_refused(cuda):
    with pytest.raises(ArgumentError, match="type_config must be float, half, bfloat16, double, got 'single'"):
        get_extension_context("cuda", type_config="single")
    with pytest.raises(ArgumentError, match="takes device_id, type_config, tf32, got 'devices'"):
        get_extension_context("cuda", devices=2)


def test_tf32_is_off_until_somebody_turns_it_on(cuda):
    import nn_ext_cuda

    assert not nn_ext_cuda.is_tf32_allowed()
    try:
        get_extension_context("cuda", tf32=True)
        assert nn_ext_cuda.is_tf32_allowed()
        get_extension_context("cuda")
        assert nn_ext_cuda.is_tf32_allowed()
    finally:
        nn_ext_cuda.allow_tf32(False)


def test_values_come_and_go_in_every_dtype(cuda):
    for dtype in ("float32", "float64", "float16", "int64", "int32", "uint8", "bool"):
        values = np.arange(6).reshape(2, 3).astype(dtype)
        array = nn.NdArray.from_numpy_array(values)
        y = F.identity(array)
        np.testing.assert_array_equal(y.data.astype(np.float64), values.astype(np.float64))


def test_a_program_that_is_far_ahead_waits_for_its_copies(cuda, monkeypatch):
    import fake_cupy

    from nn_ext_cuda.memory import arrays

    uploads = arrays.Uploads()
    monkeypatch.setattr(arrays, "MAX_BYTES_ON_THE_WAY", 100)
    target = cuda.zeros((10,), "float32")
    before = fake_cupy.Event.synchronized
    for step in range(5):
        uploads.start(target, np.full(10, step))
        np.testing.assert_array_equal(target.get(), np.full(10, step, np.float32))
    assert fake_cupy.Event.synchronized - before >= 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_images_of_bytes_are_converted_on_the_device(cuda, monkeypatch, dtype):
    from nn_ext_cuda.memory import arrays

    sizes = []
    pinned = cuda.cuda.alloc_pinned_memory
    monkeypatch.setattr(cuda.cuda, "alloc_pinned_memory", lambda n_bytes: sizes.append(n_bytes) or pinned(n_bytes))
    for kind in (np.uint8, np.int8):
        values = np.arange(256).astype(kind).reshape(2, 128)
        target = cuda.empty(values.shape, dtype_of(dtype))
        arrays.Uploads().start(target, values)
        np.testing.assert_array_equal(target.get().astype(int), values)
    assert sizes == [256, 256]
    arrays.Uploads().start(cuda.empty((2,), "int64"), np.zeros(2, np.uint8))
    assert sizes[-1] == 16, "nothing but floating values is converted there"


def test_large_copies_run_beside_the_computation(cuda, monkeypatch):
    import fake_cupy

    from nn_ext_cuda.memory import arrays

    monkeypatch.setattr(fake_cupy.Stream, "waited_for", [])
    uploads, values = arrays.Uploads(), np.arange(arrays.MIN_BYTES_BESIDE // 4).astype("float32")
    for n, n_waits in ((values.size - 1, 0), (values.size, 1)):
        target = cuda.empty((n,), "float32")
        uploads.start(target, values[:n])
        np.testing.assert_array_equal(target.get(), values[:n])
        assert len(fake_cupy.Stream.waited_for) == n_waits
    ((waiting, beside),) = fake_cupy.Stream.waited_for
    assert waiting is cuda.cuda.get_current_stream() and beside is not waiting and beside.non_blocking
    _, (_, arrived), _ = uploads._on_the_way[-1]
    assert arrived.nbytes == values.nbytes, "kept until the stream has read it"


def test_functions_and_graphs_are_ranges_for_profilers(cuda, monkeypatch):
    module = import_extension_module("cuda")
    seen = []
    monkeypatch.setattr(cuda.cuda.nvtx, "RangePush", seen.append)
    monkeypatch.setattr(cuda.cuda.nvtx, "RangePop", lambda: seen.append("end"))
    y = F.exp(nn.Variable.from_numpy_array(np.ones(2, np.float32)))
    y.forward()
    assert seen == []
    module.annotate_ranges()
    try:
        for _ in range(2):
            y.forward()
    finally:
        module.annotate_ranges(False)
    assert seen[-2:] == ["graph of 1", "end"]
    z = F.exp(nn.Variable.from_numpy_array(np.ones(2, np.float32)))
    z.forward()
    seen.clear()
    module.annotate_ranges()
    try:
        z.forward()
    finally:
        module.annotate_ranges(False)
    assert seen == ["exp_forward", "end"]


def test_memory_is_reported_by_what_holds_it(cuda):
    module = import_extension_module("cuda")
    gc.collect()  # what earlier tests have recorded
    before = {arena.name: arena for arena in module.memory_report()}
    x = nn.Variable.from_numpy_array(np.ones((2, 3), "float32"), need_grad=True)
    index = nn.Variable.from_numpy_array([[1, 0]])
    y = F.sum(F.scatter_nd(x, index, shape=(4, 3), add=True))
    for _ in range(4):
        y.forward()
    report = {arena.name: arena for arena in module.memory_report()}
    graphs = report["graphs"]
    assert graphs.count > before["graphs"].count
    assert (graphs.used_bytes, graphs.held_bytes) == (128 * graphs.count, 512 * graphs.count)
    assert (report["arrays"].used_bytes, report["arrays"].held_bytes) == (128, 512)
    assert report["workspaces, among the arrays"].used_bytes >= 256
    assert {arena.name: arena for arena in module.memory_report(1)}["graphs"].count == 0
    del y
    gc.collect()
    assert {arena.name: arena for arena in module.memory_report()}["graphs"].count <= before["graphs"].count
    lines = str(module.memory_report()).splitlines()
    assert len(lines) == 8 and len({len(line) for line in lines}) == 1


def test_memory_of_plans_is_reported_as_long_as_they_exist(cuda):
    module = import_extension_module("cuda")

    def plans(device=0):
        gc.collect()
        return {arena.name: arena for arena in module.memory_report(device)}["plans, among the arrays"]

    before = plans()
    x = nn.Variable.from_numpy_array(np.ones((100, 3), "float32"), need_grad=True)
    y = F.sum(F.exp(F.sin(x)))
    y.forward(clear_buffer=True)
    inference = plans()
    assert (inference.count, inference.used_bytes) == (before.count + 1, before.used_bytes + 2 * 1200 + 4)
    y.forward()
    y.backward()
    assert plans().count == before.count + 3
    assert plans(1) == dataclasses.replace(before, count=0, used_bytes=0, held_bytes=0)
    del y
    assert plans() == before


def test_inputs_on_their_way_are_counted(cuda):
    from nn_ext_cuda.memory.arrays import Uploads

    uploads = Uploads()
    target = cuda.zeros((1000,), "float32")
    uploads.start(target, np.ones(1000, np.float32))
    assert uploads.on_the_way() == (1, 4000)
    for _ in range(4):
        uploads.on_the_way()
    assert uploads.on_the_way() == (0, 0)


def test_shared_memory_belongs_to_a_stream(cuda, monkeypatch):
    import fake_cupy

    from nn_ext_cuda.memory import workspace

    ours = workspace.shared([1000])[0]
    monkeypatch.setattr(fake_cupy.Stream, "current", fake_cupy.Stream(ptr=8))
    theirs = workspace.shared([1000])[0]
    assert int(ours.data.ptr) != int(theirs.data.ptr)
    monkeypatch.undo()
    assert int(workspace.shared([1000])[0].data.ptr) == int(ours.data.ptr)


def test_memory_of_a_copy_that_is_under_way_outlives_its_thread(cuda, monkeypatch):
    import gc
    import threading
    import weakref

    from nn_ext_cuda.memory.arrays import Uploads, _OnTheWay

    allocate, memories = cuda.cuda.alloc_pinned_memory, []

    def noted(n_bytes):
        memory = allocate(n_bytes)
        memories.append(weakref.ref(memory))
        return memory

    monkeypatch.setattr(cuda.cuda, "alloc_pinned_memory", noted)
    monkeypatch.setattr(_OnTheWay, "left", [])
    uploads, target = Uploads(), cuda.zeros((1000,), "float32")
    thread = threading.Thread(target=lambda: uploads.start(target, np.ones(1000, np.float32)))
    thread.start()
    thread.join()
    gc.collect()
    assert memories[0]() is not None, "the device may still read it"
    for _ in range(4):  # an emulated copy has arrived after its event was asked for three times
        uploads.start(target, np.ones(1000, np.float32))
    gc.collect()
    assert memories[0]() is None
