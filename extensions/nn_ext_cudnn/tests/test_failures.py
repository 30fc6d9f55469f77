"""Errors of cuDNN while a call is prepared: refusals with the name of the status, so that another backend runs the call."""

import pytest

IMAGES = (4, 3, 6, 6)
PARAMETERS = ((1, 3, 1, 1),) * 4
NETWORK = ((3, 2, 5), (1, 1, 2, 4), (1, 1, 2, 4), (1, 4, 4, 9))

#: Function of nn_core, shapes, arguments, the part of the library and its function that fails.
CASES = [
    ("Convolution", (IMAGES, (6, 3, 3, 3)), {}, -1, "cudnnBackendFinalize"),
    ("Convolution", (IMAGES, (6, 3, 3, 3)), {}, -1, "cudnnBackendGetAttribute"),
    ("Softmax", ((4, 5),), {}, 1, "cudnnSetTensorNdDescriptor"),
    ("AveragePooling", (IMAGES,), {"kernel": (2, 2)}, 1, "cudnnSetPoolingNdDescriptor"),
    ("BatchNormalization", (IMAGES, *PARAMETERS), {}, 2, "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize"),
    ("BatchNormalization", (IMAGES, *PARAMETERS), {"batch_stat": False}, 2, "cudnnDeriveBNTensorDescriptor"),
    ("LSTM", NETWORK, {}, 3, "cudnnSetRNNDescriptor_v8"),
    ("LSTM", NETWORK, {}, 3, "cudnnGetRNNWeightParams"),
]


@pytest.fixture
def kernels(cudnn):
    """The kernels; what was prepared before is forgotten, because it would not be asked for again."""
    from nn_ext_cudnn.graph import plans
    from nn_ext_cudnn.kernels import KERNELS
    from nn_ext_cudnn.legacy import batch_norm_frame, networks

    for cache in (plans._built, batch_norm_frame._training, networks._network, networks._pieces):
        cache.cache_clear()
    yield KERNELS
    plans._built.cache_clear()


def _fail(cudnn, part, function, status):
    from fake_cudnn import RefusedError

    from nn_ext_cudnn.graph import descriptor

    def fail(*_):
        raise RefusedError(status, "it went wrong")

    assert hasattr(cudnn.parts[part], function)
    setattr(cudnn.parts[part], function, fail)
    vars(cudnn).pop(function, None)  # it holds on to the function as it was
    descriptor.functions.cache_clear()


@pytest.mark.parametrize(("status", "name"), [(4000, "INTERNAL_ERROR"), (2000, "BAD_PARAM"), (1001, "NOT_INITIALIZED")])
@pytest.mark.parametrize(("function", "shapes", "args", "part", "failing"), CASES)
def test_an_error_in_preparation_is_a_refusal(kernels, cudnn, call_of, function, shapes, args, part, failing, status, name):
    call = call_of(function, *shapes, **args)
    _fail(cudnn, part, failing, status)
    refusal = kernels[function].refuse(call)
    assert f"{failing}: status must be success, got {status} ({name})" in refusal.reason
    assert "cuDNN says it went wrong" in refusal.reason
    assert "\n" not in refusal.reason


@pytest.mark.parametrize(("function", "shapes", "args", "part", "failing"), CASES)
def test_memory_that_runs_out_in_preparation_is_told(kernels, cudnn, call_of, function, shapes, args, part, failing):
    from nn_ext_cuda.device.errors import DeviceMemoryError

    call = call_of(function, *shapes, **args)
    _fail(cudnn, part, failing, 4004)
    with pytest.raises(DeviceMemoryError, match="INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"):
        kernels[function].refuse(call)


def test_a_device_that_has_failed_is_told(kernels, cudnn, call_of):
    from nn_ext_cuda.device.errors import DeviceError

    _fail(cudnn, -1, "cudnnBackendFinalize", 5001)
    with pytest.raises(DeviceError, match="EXECUTION_FAILED_CUDA_DRIVER"):
        kernels["Convolution"].refuse(call_of("Convolution", IMAGES, (6, 3, 3, 3)))


def test_gradients_are_left_to_others_where_their_plans_fail(kernels, cudnn, call_of):
    kernel, call = kernels["Convolution"], call_of("Convolution", IMAGES, (6, 3, 3, 3))
    assert kernel.refuse(call) is None
    _fail(cudnn, -1, "cudnnBackendFinalize", 4002)
    assert kernel.backward(call, (True, True, False)) is None


def test_a_handle_that_cannot_be_made_is_a_refusal(kernels, cudnn, call_of, monkeypatch):
    from nn_ext_cudnn import handle

    monkeypatch.setattr(handle._OF_THREAD, "handles", {})
    monkeypatch.setattr(handle._Borrowed, "free", {})
    _fail(cudnn, 0, "cudnnCreate", 1001)
    for name, shapes in (("Convolution", (IMAGES, (6, 3, 3, 3))), ("LSTM", NETWORK)):
        refusal = kernels[name].refuse(call_of(name, *shapes))
        assert "cudnnCreate: status must be success, got 1001 (NOT_INITIALIZED)" in refusal.reason
