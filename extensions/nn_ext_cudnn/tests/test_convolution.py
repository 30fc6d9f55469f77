"""Convolutions on the stand-in for libcudnn: which engine runs, what is refused, and how plans and memory are kept."""

from dataclasses import replace

import numpy as np
import pytest


@pytest.fixture
def kernels(cudnn):
    """The kernels, and the part of the library that computes graphs."""
    from nn_ext_cudnn.kernels import KERNELS

    return KERNELS, cudnn.parts[-1]


#: Shapes of x, weight and bias.
PLAIN = (2, 4, 6, 5), (6, 4, 3, 3), (6,)


def arrays_of(call, shift=0):
    """Arrays on the device for a forward call, off their alignment by `shift` elements."""
    from nn_ext_cuda.device.runtime import cupy

    rng = np.random.default_rng(0)
    arrays = []
    for desc in (*call.inputs, *call.outputs):
        if desc is None:
            arrays.append(None)
            continue
        memory = cupy.asarray(rng.normal(size=desc.size + 64).astype(desc.dtype))
        start = (-memory.data.ptr % 64) // memory.itemsize + shift
        arrays.append(memory[start : start + desc.size].reshape(desc.shape))
    return arrays


def true(arrays):
    """y by definition."""
    x, weight, bias = (None if array is None else np.asarray(array.get(), np.float64) for array in arrays[:3])
    windows = np.lib.stride_tricks.sliding_window_view(x, weight.shape[2:], axis=(2, 3))
    result = np.einsum("ncijrs,kcrs->nkij", windows, weight)
    return result if bias is None else result + bias[:, None, None]


def test_the_default_engine_is_exact_and_deterministic(kernels, call_of):
    table, graphs = kernels
    call = call_of("Convolution", *PLAIN)
    arrays = arrays_of(call)
    table["Convolution"].forward(call)(*arrays)
    assert graphs.engines == [1]
    np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=2e-6, atol=1e-5)


def test_tf32_opens_the_engines_that_round(kernels, call_of):
    from nn_ext_cuda.gemm import precision

    table, graphs = kernels
    call = call_of("Convolution", *PLAIN)
    kernel = table["Convolution"]
    assert kernel.layout(call) == "contiguous"
    precision.allow_tf32()
    try:
        assert kernel.layout(call) == "channels_last"
        arrays = arrays_of(call)
        kernel.forward(call)(*arrays)
    finally:
        precision.allow_tf32(False)
    assert graphs.engines == [10]
    np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=1e-2, atol=1e-2)
    assert np.abs(arrays[3].get() - true(arrays)).max() > 1e-5


def test_tensor_cores_are_exact_on_short_types(kernels, call_of):
    table, graphs = kernels
    call = call_of("Convolution", *PLAIN, dtype="float16")
    arrays = arrays_of(call)
    assert table["Convolution"].layout(call) == "channels_last"
    table["Convolution"].forward(call)(*arrays)
    assert graphs.engines == [10]
    np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=4e-3, atol=1e-2)


def test_nondeterministic_engines_have_to_be_allowed(kernels, call_of):
    import nn_ext_cudnn

    table, graphs = kernels
    call = call_of("Convolution", *PLAIN)
    assert not nn_ext_cudnn.is_nondeterministic_allowed()
    nn_ext_cudnn.allow_nondeterministic()
    try:
        table["Convolution"].forward(call)(*arrays_of(call))
    finally:
        nn_ext_cudnn.allow_nondeterministic(False)
    assert graphs.engines == [11]


def test_plans_are_built_once(kernels, cudnn, call_of):
    table, _ = kernels
    call = call_of("Convolution", *PLAIN)
    assert table["Convolution"].refuse(call) is None
    before = len(cudnn.calls)
    runner = table["Convolution"].forward(call)
    assert len(cudnn.calls) == before, "preparing what was looked up before calls nothing"
    step = runner.bind(*arrays_of(call))
    step()
    calls = len(cudnn.calls)
    step()
    assert cudnn.calls[calls:] == ["cudnnBackendExecute"]
    table["Convolution"].forward(call_of("Convolution", (3, 4, 6, 5), *PLAIN[1:]))
    assert len(cudnn.calls) > calls + 1


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_arrays_off_their_alignment_are_copied(kernels, call_of, dtype):
    from nn_ext_cuda.launch.graphs import record

    table, _ = kernels
    call = call_of("Convolution", *PLAIN, dtype=dtype)
    runner, arrays = table["Convolution"].forward(call), arrays_of(call, 1)
    before = [array.get() for array in arrays[:3]]
    step = runner.bind(*arrays)
    assert step.capturable
    graph = record([step.run], uses_blas=False)
    graph.launch()
    np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=4e-3, atol=1e-2)
    for array, values in zip(arrays, before, strict=False):
        np.testing.assert_array_equal(array.get(), values)


def test_without_an_engine_for_the_bias_it_is_added_by_a_launch(kernels, call_of):
    table, graphs = kernels
    graphs.refuses = lambda operations: "no fusion here" if len(operations) > 1 else None
    for dtype in ("float32", "float16"):
        call = call_of("Convolution", *PLAIN, dtype=dtype)
        arrays = arrays_of(call)
        assert table["Convolution"].refuse(call) is None
        step = table["Convolution"].forward(call).bind(*arrays)
        assert step.capturable
        step()
        np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=4e-3, atol=1e-2)


def test_without_any_engine_it_is_a_refusal_with_the_reasons(kernels, call_of):
    table, graphs = kernels
    graphs.refuses = lambda operations: "the shape is too odd"
    call = call_of("Convolution", *PLAIN)
    refusal = table["Convolution"].refuse(call)
    assert refusal.reason.startswith("no engine of cuDNN runs it; ")
    assert "the shape is too odd" in refusal.reason
    assert table["Convolution"].backward(call, (True, True, True)) is None


@pytest.mark.parametrize(
    ("shapes", "dtype", "reason"),
    [
        (((1, 1, 2, 2, 2, 2), (1, 1, 1, 1, 1, 1)), "float32", "one to three spatial"),
        (((0, 4, 6, 5), *PLAIN[1:]), "float32", "at least one element"),
        (PLAIN, "int64", "computes in float32"),
    ],
)
def test_what_is_refused(kernels, cudnn, call_of, shapes, dtype, reason):
    table, _ = kernels
    assert reason in table["Convolution"].refuse(call_of("Convolution", *shapes, dtype=dtype)).reason
    assert not cudnn.calls, "a refusal of what cuDNN never runs asks nobody"


def test_longer_outputs_than_a_stride_are_refused(kernels, call_of):
    table, _ = kernels
    shapes = (1, 4, 4, 3), (4, 6, 3, 3)
    assert table["Deconvolution"].refuse(call_of("Deconvolution", *shapes, dilation=(2, 1))) is None
    longer = call_of("Deconvolution", *shapes, dilation=(2, 1), output_padding=(1, 0))
    assert "output_padding below the stride" in table["Deconvolution"].refuse(longer).reason


def gradient_arrays(call, shift=0):
    """Arrays on the device for a backward call."""
    x, weight, _, dy = arrays_of(call, shift)
    dx, dweight, dbias, _ = arrays_of(call, shift)
    return [x, weight, None, None, dy, dx, dweight, dbias]


@pytest.mark.parametrize("name", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize(("dtype", "shift"), [("float32", 0), ("float32", 1), ("float16", 0), ("float16", 1)])
@pytest.mark.parametrize("places", [(5,), (6, 7), (5, 6, 7)])
def test_gradients_are_added_to_what_is_there(kernels, call_of, name, dtype, shift, places):
    table, _ = kernels
    shapes = PLAIN if name == "Convolution" else ((2, 6, 4, 3), (6, 4, 3, 3), (4,))
    runner = table[name].backward(call_of(name, *shapes, dtype=dtype), (True, True, True))
    arrays = gradient_arrays(call_of(name, *shapes, dtype=dtype), shift)
    before = [array.get().astype("float64") for array in arrays[5:]]
    runner.bind(*arrays)()
    written = [array.get().astype("float64") for array in arrays[5:]]
    for array, values in zip(arrays[5:], before, strict=True):
        array.view(np.ndarray)[...] = values.astype(dtype)
    runner.accumulating(places).bind(*arrays)()
    for place, array, old, alone in zip((5, 6, 7), arrays[5:], before, written, strict=True):
        expected = old + alone if place in places else alone
        tolerance = 1e-5 if dtype == "float32" else 2e-2
        np.testing.assert_allclose(array.get().astype("float64"), expected, rtol=tolerance, atol=tolerance)


def test_without_an_engine_that_adds_gradients_are_added_afterwards(kernels, call_of):
    table, graphs = kernels
    graphs.refuses = lambda operations: "it adds" if operations[0].values.beta else None
    runner = table["Convolution"].backward(call_of("Convolution", *PLAIN), (True, True, True))
    assert runner.accumulating([5]) is None
    assert runner.accumulating([7]) is not None


def test_scratch_memory_is_shared_and_kept_for_recorded_graphs(kernels, call_of):
    from nn_ext_cudnn import handle

    table, _ = kernels
    call = call_of("Convolution", *PLAIN)
    arrays = arrays_of(call)
    runner = table["Convolution"].forward(call)
    first, second = runner.bind(*arrays), runner.bind(*arrays)
    first()
    small = handle.workspace().array
    assert small.nbytes == 4096
    handle.workspace(10**5)
    first()
    second()
    assert [each is small for each in first._held] == [True, False]
    assert second._held == [handle.workspace().array]


def test_a_plan_is_recorded_in_a_cuda_graph(kernels, call_of):
    from nn_ext_cuda.launch import capture, deferred

    table, graphs = kernels
    call = call_of("Convolution", *PLAIN)
    runner = table["Convolution"].forward(call)
    pairs = [arrays_of(call), arrays_of(call)]
    section = capture.Section([runner.bind(*arrays) for arrays in pairs])
    for _ in range(3):
        for arrays in pairs:
            arrays[3].view(np.ndarray)[...] = np.nan
        section()
    deferred.flush()
    assert section.graph_sizes() == [2]
    assert not section.apart()
    assert len(graphs.engines) == 6
    for arrays in pairs:
        np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=2e-6, atol=1e-5)


def test_a_step_is_recorded_in_another_thread_than_the_one_that_bound_it(kernels, cudnn, call_of, monkeypatch):
    import threading

    import fake_cupy

    from nn_ext_cuda.launch.graphs import record
    from nn_ext_cudnn import handle as handles

    monkeypatch.setattr(handles._Borrowed, "free", {})
    made = []
    create = cudnn.cudnnCreate

    def strict(handle):
        assert fake_cupy.Graph.recording is None, "cudnnCreate allocates, which cannot be captured"
        made.append(threading.current_thread())
        return create(handle)

    monkeypatch.setattr(cudnn, "cudnnCreate", strict)
    table, _ = kernels
    call = call_of("Convolution", *PLAIN)
    arrays = arrays_of(call)
    step = table["Convolution"].forward(call).bind(*arrays)
    recorded = []
    thread = threading.Thread(target=lambda: recorded.append(record([step.run], uses_blas=False)))
    thread.start()
    thread.join()
    assert thread in made
    recorded[0].launch()
    np.testing.assert_allclose(arrays[3].get(), true(arrays), rtol=2e-6, atol=1e-5)


def test_a_failure_names_the_function_and_the_sizes(kernels, call_of):
    from nn_ext_cuda.device.errors import DeviceError

    table, graphs = kernels
    call = call_of("Convolution", *PLAIN)
    step = table["Convolution"].forward(call).bind(*arrays_of(call))
    graphs._handles.streams.clear()
    with pytest.raises(DeviceError, match=r"^convolution: cudnnBackendExecute: status") as caught:
        step()
    assert "(2, 4, 6, 5) float32" in str(caught.value)


@pytest.mark.parametrize(("dtype", "transposed"), [("float32", False), ("float16", False), ("float16", True)])
def test_depthwise_filters_in_another_order_are_read_from_a_copy(kernels, call_of, dtype, transposed):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.graph.convolution import channels_last

    name = "DepthwiseDeconvolution" if transposed else "DepthwiseConvolution"
    kernel = kernels[0][name]
    call = call_of(name, (2, 4, 6, 5), (4, 3, 2), None, dtype=dtype)
    arrays = arrays_of(call)
    kernel.forward(call)(*arrays)
    turned = replace(call, inputs=(call.inputs[0], channels_last(call.inputs[1]), None))
    weight = arrays[1].get()
    arrays[1] = cupy.asarray(np.ascontiguousarray(weight.swapaxes(1, 2))).swapaxes(1, 2)
    again = [*arrays[:3], cupy.zeros_like(arrays[3])]
    kernel.forward(turned)(*again)
    np.testing.assert_array_equal(again[3].get(), arrays[3].get())
    assert kernel.backward(turned, [False, True, False]) is None
