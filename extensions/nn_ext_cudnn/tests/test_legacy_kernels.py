"""The refusals of the kernels over descriptors, how often they call cuDNN, and their steps in CUDA graphs."""

import dataclasses

import numpy as np
import pytest


@pytest.fixture
def kernels(cudnn):
    """The table of the backend."""
    from nn_ext_cudnn.kernels import KERNELS

    return KERNELS


PARAMETERS = [(1, 3, 1, 1)] * 4


@pytest.mark.parametrize(
    ("name", "shapes", "args", "reason"),
    [
        ("MaxPooling", [(1, 1, 3, 3, 3, 3)], {"kernel": (2, 2, 2, 2)}, "windows of up to 3 axes, got 4"),
        ("MaxPooling", [(0, 2, 4, 4)], {"kernel": (2, 2)}, "x of at least one element"),
        (
            "AveragePooling",
            [(1, 1, 5, 5)],
            {"kernel": (2, 2), "ignore_border": False},
            "windows that end inside the padded input, 2 on an axis, got 3",
        ),
        ("Softmax", [(0, 4)], {}, "x of at least one element"),
        ("Softmax", [(2**20, 2**11)], {}, "takes arrays of less than"),
        ("BatchNormalization", [(3, 2, 4), *[(3, 1, 4)] * 4], {"axes": (0, 2)}, "axes that are neighbours"),
        ("BatchNormalization", [(1, 3, 1, 1), *PARAMETERS], {}, "at least two elements a channel"),
        ("BatchNormalization", [(4, 3, 2, 2), *PARAMETERS[:3]], {}, "both mean and variance, or none"),
        ("BatchNormalization", [(2**17, 3), *[(1, 3)] * 4], {}, "batches of at most 131070, got 131072"),
        ("BatchNormalization", [(2**16, 3, 2, 2), *PARAMETERS], {"batch_stat": False}, "at most 65535, got 65536"),
        ("BatchNormalization", [(2, 2**16, 2), *[(1, 2**16, 1)] * 4], {}, "at most 65535 channels, got 65536"),
    ],
)
def test_refusals_say_why(kernels, name, shapes, args, reason, call_of):
    refusal = kernels[name].refuse(call_of(name, *shapes, **args))
    assert refusal is not None
    assert reason in refusal.reason


def test_windows_that_happen_to_end_inside_are_taken(kernels, call_of):
    assert kernels["MaxPooling"].refuse(call_of("MaxPooling", (1, 1, 4, 6), kernel=(2, 2), ignore_border=False)) is None


def test_a_batch_normalization_is_refused_where_cudnn_would_keep_something(kernels, cudnn, call_of):
    from nn_ext_cudnn.legacy.images import channels_last

    call = call_of("BatchNormalization", (4, 3, 2, 2), *PARAMETERS, dtype="float16")
    norms = cudnn.parts[2]
    assert kernels["BatchNormalization"].layout(call) == "channels_last"
    norms._check = _refusing(norms._check, lambda mode, x: mode == 1 and norms._tensor(x).strides[1] == 1)
    norms.kept_bytes = 64
    _forget()
    assert kernels["BatchNormalization"].layout(call) == "contiguous"
    assert kernels["BatchNormalization"].refuse(call) is None
    from nn_ext_cudnn.legacy.batch_norm_frame import frame_of, training

    with pytest.raises(Exception, match="mode SPATIAL_PERSISTENT keeps 64 bytes"):
        training(frame_of(channels_last(call.inputs[0]), (1,)))
    _forget()


@pytest.mark.parametrize("status", [2000, 3004, 4000])
def test_where_one_mode_fails_the_next_one_trains(kernels, cudnn, call_of, status):
    from nn_ext_cudnn.legacy import api
    from nn_ext_cudnn.legacy.batch_norm_frame import frame_of, training
    from nn_ext_cudnn.legacy.images import channels_last

    call = call_of("BatchNormalization", (4, 3, 2, 2), *PARAMETERS, dtype="float16")
    norms = cudnn.parts[2]
    norms._check = _refusing(norms._check, lambda mode, x: mode == api.BatchNorm.SPATIAL_PERSISTENT, status)
    _forget()
    assert kernels["BatchNormalization"].layout(call) == "channels_last"
    assert training(frame_of(channels_last(call.inputs[0]), (1,))).mode == api.BatchNorm.SPATIAL
    _forget()


def _refusing(check, condition, status=3004):
    from fake_cudnn import RefusedError

    def checked(mode, operations, x, *others):
        if condition(mode, x):
            raise RefusedError(status, "no kernels")
        return check(mode, operations, x, *others)

    return checked


def _forget():
    from nn_ext_cudnn.legacy import batch_norm_frame

    batch_norm_frame._training.cache_clear()


def _bound(kernel, call, cupy):
    """A forward step of a call on new arrays, and the arrays."""
    rng = np.random.default_rng(0)
    given = [cupy.asarray(rng.normal(size=desc.shape).astype(desc.dtype)) for desc in call.inputs if desc is not None]
    made = [cupy.asarray(np.full(desc.shape, np.nan, desc.dtype)) for desc in call.outputs]
    return kernel.forward(call).bind(*given, *made), given, made


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("Softmax", "cudnnSoftmaxForward"),
        ("MaxPooling", "cudnnPoolingForward"),
        ("BatchNormalization", "cudnnBatchNormalizationForwardTrainingEx"),
    ],
)
def test_running_is_one_call(kernels, cudnn, name, function, call_of):
    from nn_ext_cuda.device.runtime import cupy

    args = {"kernel": (2, 2)} if name == "MaxPooling" else {}
    shapes = [(4, 3, 4, 4), *PARAMETERS] if name == "BatchNormalization" else [(4, 3, 4, 4)]
    step, _, made = _bound(kernels[name], call_of(name, *shapes, **args), cupy)
    cudnn.calls.clear()
    step()
    step()
    assert cudnn.calls == [function, function]
    assert np.isfinite(made[0].get()).all()


@pytest.mark.parametrize("offset", [1, 2, 4, 8])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_views_off_their_alignment_are_copied_where_values_are_narrow(kernels, cudnn, offset, dtype, call_of):
    from nn_ext_cuda.device.runtime import cupy

    call = call_of("Softmax", (4, 5), dtype=dtype)
    values = np.random.default_rng(0).normal(size=20).astype(dtype)
    x, y = (cupy.asarray(np.zeros(64, dtype))[offset : offset + 20].reshape(4, 5) for _ in range(2))
    x[...] = cupy.asarray(values.reshape(4, 5))
    pointers = []
    forward = cudnn.parts[1].cudnnSoftmaxForward
    cudnn.parts[1].cudnnSoftmaxForward = lambda *args: pointers.extend((args[5], args[8])) or forward(*args)
    kernels["Softmax"].forward(call).bind(x, y)()
    expected = np.exp(values.reshape(4, 5).astype("float64"))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.get(), expected, rtol=2e-3)
    np.testing.assert_array_equal(x.get(), values.reshape(4, 5))
    assert len(pointers) == 2
    if dtype == "float16":
        assert all(pointer % 16 == 0 for pointer in pointers)
    else:
        assert pointers == [x.data.ptr, y.data.ptr]


def test_what_cudnn_does_not_support_is_done_by_cuda_for_good(kernels, cudnn, caplog, call_of):
    from nn_ext_cuda.device.runtime import cupy

    cudnn.parts[1].cudnnSoftmaxForward = _raise
    step, (x,), (y,) = _bound(kernels["Softmax"], call_of("Softmax", (4, 5)), cupy)
    cudnn.calls.clear()
    with caplog.at_level("WARNING"):
        step()
        step()
    assert cudnn.calls == ["cudnnSoftmaxForward"]
    assert [record.message for record in caplog.records] == [
        "softmax: nn_ext_cuda takes over from cuDNN: cudnnSoftmaxForward: status must be success, got 3000 (NOT_SUPPORTED)"
    ]
    expected = np.exp(x.get()) / np.exp(x.get()).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y.get(), expected, rtol=1e-5)


@pytest.mark.parametrize("is_last", [False, True])
def test_cuda_normalizes_what_cudnn_turns_out_not_to(kernels, call_of, cudnn, is_last):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.legacy.images import channels_last

    cudnn.parts[2].cudnnBatchNormalizationForwardTrainingEx = _raise
    call = call_of("BatchNormalization", (4, 3, 5, 2), *PARAMETERS)
    if is_last:
        inputs = (channels_last(call.inputs[0]), *call.inputs[1:])
        call = dataclasses.replace(call, inputs=inputs, outputs=(channels_last(call.outputs[0]), *call.outputs[1:]))
    step, given, (y, *_) = _bound(kernels["BatchNormalization"], call, cupy)
    x, beta, gamma, *_ = (array.get() for array in given)
    step()
    if is_last:
        x = x.reshape(4, 5, 2, 3).transpose(0, 3, 1, 2)
    mean, variance = x.mean(axis=(0, 2, 3), keepdims=True), x.var(axis=(0, 2, 3), keepdims=True)
    expected = gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta
    found = y.get().reshape(4, 5, 2, 3).transpose(0, 3, 1, 2) if is_last else y.get()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_errors_name_the_function_and_its_arrays(kernels, call_of, cudnn):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.errors import CudnnError

    cudnn.parts[1].cudnnSoftmaxForward = lambda *_: _raise(5003)
    step, _, _ = _bound(kernels["Softmax"], call_of("Softmax", (4, 5)), cupy)
    with pytest.raises(CudnnError, match=r"^softmax: cudnnSoftmaxForward: status must be success, got 5003(.|\n)*\(4, 5\)"):
        step()


def _raise(status=3000, *_):
    from fake_cudnn import RefusedError

    raise RefusedError(status if status == 5003 else 3000, "not this")


def test_steps_are_recorded_as_a_graph_and_keep_their_memory(kernels, cudnn, call_of):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cuda.launch.capture import Section
    from nn_ext_cudnn import handle

    call = call_of("BatchNormalization", (4, 3, 2, 2), *PARAMETERS, dtype="float16")
    joinable, _, made = _bound(kernels["BatchNormalization"], call, cupy)
    step = joinable.step
    other, _, other_made = _bound(kernels["Softmax"], call_of("Softmax", (4, 5)), cupy)
    recorded = Section([step, other])
    recorded()
    first = [array.get() for array in (*made, *other_made)]
    memory = step._memories[-1]
    recorded()
    assert recorded.graph_sizes() == [2]
    handle.workspace(memory.nbytes + 4096)
    for array in (*made, *other_made):
        array.set(np.zeros(array.shape))
    recorded()
    assert memory is step._memories[0], "what was recorded needs it"
    for array, before in zip((made[0], other_made[0]), (first[0], first[-1]), strict=True):
        np.testing.assert_array_equal(array.get(), before)
    step()
    assert step._memories[-1] is handle.workspace().array


@pytest.mark.parametrize("shape", [(4, 1, 3, 5), (4, 1, 6), (6, 1), (4, 3, 1, 1)])
@pytest.mark.parametrize("batch_stat", [True, False])
def test_statistics_are_those_of_channels_also_where_there_is_one(kernels, call_of, shape, batch_stat):
    from nn_ext_cuda.device.runtime import cupy

    n_channels = (1, shape[1], *[1] * (len(shape) - 2))
    call = call_of("BatchNormalization", shape, *[n_channels] * 4, batch_stat=batch_stat)
    step, given, (y, batch_mean, batch_variance) = _bound(kernels["BatchNormalization"], call, cupy)
    x, beta, gamma, mean, variance = (array.get() for array in given)
    variance = np.abs(variance)
    given[-1].set(variance)
    step()
    if batch_stat:
        axes = (0, *range(2, len(shape)))
        mean, variance = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    expected = gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta
    np.testing.assert_allclose(y.get(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(batch_mean.get(), mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(batch_variance.get(), variance, rtol=1e-4)


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "contiguous"), ("float16", "channels_last")])
def test_images_lie_as_convolutions_read_them(kernels, call_of, dtype, expected):
    image = (4, 8, 6, 6)
    calls = [
        call_of("Convolution", image, (8, 8, 3, 3), dtype=dtype),
        call_of("BatchNormalization", image, *[(1, 8, 1, 1)] * 4, dtype=dtype),
        call_of("MaxPooling", image, kernel=(2, 2), dtype=dtype),
    ]
    assert [kernels[call.spec.name].layout(call) for call in calls] == [expected] * 3


def test_parameters_of_16_bits_are_converted_in_one_launch(kernels, call_of):
    call = call_of("BatchNormalization", (4, 3, 2, 2), *PARAMETERS, dtype="float16")
    kernel = kernels["BatchNormalization"]
    for recipe in (kernel._forward(call), kernel._backward(call, [True, True, True, False, False])):
        assert [len(getattr(part, "launches", [])) for part in recipe.parts] == [1, 0, 1]
