"""Batch normalization, sum and ReLU in one pass on an emulated cuDNN: as one function, and where plans join three."""

import dataclasses

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.settings import without

PARAMETERS = [(1, 3, 1, 1)] * 4
IMAGE = (4, 3, 5, 2)


def laid_out(call, is_last):
    """The call on images in one layout."""
    from nn_ext_cudnn.legacy.images import channels_last

    def turned(desc):
        return channels_last(desc) if is_last and desc is not None and desc.shape == IMAGE else desc

    return dataclasses.replace(call, inputs=tuple(map(turned, call.inputs)), outputs=tuple(map(turned, call.outputs)))


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("has_z", [False, True])
def test_sum_and_relu_are_no_launches_of_their_own(cudnn, call_of, is_last, has_z):
    from nn_ext_cuda.kernels import KERNELS as CUDA_KERNELS
    from nn_ext_cudnn.kernels import KERNELS

    shapes = [IMAGE, *PARAMETERS, *[IMAGE] * has_z]
    call = laid_out(call_of("FusedBatchNormalization", *shapes, dtype="float16"), is_last)
    plain = laid_out(call_of("BatchNormalization", *shapes[:5], dtype="float16"), is_last)
    kernel, alone = KERNELS["FusedBatchNormalization"], CUDA_KERNELS["BatchNormalization"]
    wanted = [True, True, True, False, False, has_z]
    assert kernel.refuse(call) is None
    assert len(kernel.forward(call).launches) == len(alone.forward(plain).launches)
    assert len(kernel.backward(call, wanted).launches) == len(alone.backward(plain, wanted[:5]).launches)


@pytest.mark.parametrize("place", [0, 5])
def test_images_of_another_layout_are_turned(cudnn, call_of, place):
    from nn_ext_cuda.device.runtime import cupy
    from nn_ext_cudnn.kernels import KERNELS
    from nn_ext_cudnn.legacy.images import channels_last

    call = call_of("FusedBatchNormalization", IMAGE, *PARAMETERS, IMAGE)
    inputs = [channels_last(desc) if k == place else desc for k, desc in enumerate(call.inputs)]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=desc.shape).astype("float32") for desc in call.inputs]
    values[4] = np.abs(values[4])
    given = [cupy.asarray(np.ascontiguousarray(v.transpose(0, 2, 3, 1)) if k == place else v) for k, v in enumerate(values)]
    made = [cupy.asarray(np.zeros(desc.shape, "float32")) for desc in call.outputs]
    KERNELS["FusedBatchNormalization"].forward(dataclasses.replace(call, inputs=tuple(inputs))).bind(*given, *made)()
    x, beta, gamma, _, _, z = values
    mean, variance = x.mean(axis=(0, 2, 3), keepdims=True), x.var(axis=(0, 2, 3), keepdims=True)
    expected = np.maximum(gamma * (x - mean) / np.sqrt(variance + 1e-5) + beta + z, 0)
    np.testing.assert_allclose(made[0].get(), expected, rtol=1e-4, atol=1e-5)


@pytest.fixture
def joined(backend, monkeypatch):
    """The joins of plans."""
    from nn_ext_cuda.fusion.joinable import JoinableStep

    found = []

    def noted(name):
        method = getattr(JoinableStep, name)

        def noting(step, *arrays):
            found.append(name)
            return method(step, *arrays)

        monkeypatch.setattr(JoinableStep, name, noting)

    noted("with_relu")
    noted("through_relu")
    return found


def trained(has_shortcut, channels):
    """The loss, the gradients and the statistics of a small network after some steps."""
    nn.clear_parameters()
    nn.seed(7)
    values = np.random.default_rng(2).normal(size=(4, channels, 6, 6)).astype("float32")
    x = nn.Variable.from_numpy_array(values, need_grad=True)
    y = PF.convolution(x, channels, (3, 3), pad=(1, 1), name="first")
    for number in range(2):
        h = PF.convolution(y, channels, (3, 3), pad=(1, 1), with_bias=False, name=f"layer{number}")
        h = PF.batch_normalization(h, name=f"layer{number}")
        y = F.relu(F.add2(h, y) if has_shortcut else h)
    loss = F.mean(y**2)
    for _ in range(3):
        loss.forward(clear_no_need_grad=True)
        for parameter in nn.get_parameters().values():
            parameter.grad.zero()
        x.grad.zero()
        loss.backward(64.0, clear_buffer=True)
    return [loss.d.copy(), x.g.copy(), *[p.g.copy() for p in nn.get_parameters().values()]]


@pytest.mark.parametrize("dtype", ["float", "half", "bfloat16"])
@pytest.mark.parametrize("has_shortcut", [False, True])
def test_plans_join_the_separate_functions(joined, has_shortcut, dtype):
    with nn.context_scope(nn.Context([f"cudnn:{dtype}", f"cuda:{dtype}"], nn.get_current_context().array_class)):
        found = trained(has_shortcut, 8)
        assert joined == ["with_relu"] * 2 + ["through_relu"] * 2
        with without("fuse"):
            expected = trained(has_shortcut, 8)
    assert len(joined) == 4
    tolerance = {"float": 1e-5, "half": 1e-2, "bfloat16": 8e-2}[dtype]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1e-2))


@pytest.fixture
def launched(backend, monkeypatch):
    """Names of the kernels of nn_ext_cuda that steps launch, in recorded graphs too."""
    import fake_cupy

    from nn_ext_cuda.launch.program import Step

    found, run = [], Step.run

    def noting(step):
        fake_cupy.Graph.note(lambda: found.append(step.name))
        run(step)

    monkeypatch.setattr(Step, "run", noting)
    return found


def branches(replaces):
    """The loss and the gradients of blocks with a shortcut, one of them through a convolution, after each of some steps."""
    nn.clear_parameters()
    nn.seed(7)
    rng = np.random.default_rng(2)
    x, images = nn.Variable((4, 4, 6, 6), need_grad=True), rng.normal(size=(5, 4, 4, 6, 6)).astype("float32")
    h = F.tanh(x)  # gradients of leaves in 16 bits add up in float32
    y = PF.convolution(h, 8, (1, 1), with_bias=False, name="first")
    y = PF.fused_batch_normalization(y, PF.convolution(h, 8, (3, 3), pad=(1, 1), name="shortcut"), name="first")
    for number in range(2):
        h = PF.convolution(y, 8, (3, 3), pad=(1, 1), with_bias=False, name=f"layer{number}")
        y = PF.fused_batch_normalization(h, y, name=f"layer{number}")
    loss, found = F.mean(y**2), []
    for number in range(4):
        x.d = images[number]
        loss.forward(clear_no_need_grad=True)
        if replaces:
            x.d = images[number + 1]
        for leaf in (x, *nn.get_parameters().values()):
            leaf.grad.zero()
        loss.backward(64.0, clear_buffer=True)
        found += [loss.d.copy(), x.g.copy(), *[p.g.copy() for p in nn.get_parameters().values()]]
    return found


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("dtype", ["float", "half", "bfloat16"])
def test_the_gradients_of_two_branches_are_added_where_one_is_computed(launched, dtype, replaces):
    array_class = nn.get_current_context().array_class
    with nn.context_scope(nn.Context([f"cudnn:{dtype}", f"cuda:{dtype}"], array_class)):
        found = branches(replaces)
    assert "fused_batch_normalization_backward_sums" in launched
    assert "add2_forward" not in launched
    with nn.context_scope(nn.Context(["reference:float"])):
        expected = branches(replaces)
    tolerance = {"float": 2e-5, "half": 2e-2, "bfloat16": 1e-1}[dtype]
    for one, other in zip(found, expected, strict=True):  # as a whole: a ReLU near its kink decides by the last bit
        assert np.linalg.norm(one - other) <= tolerance * max(np.linalg.norm(other), 1e-2)


def test_whole_images_are_averaged_as_they_are_in_memory(backend, monkeypatch):
    from nn_ext_cuda.launch.program import Step

    steps, start = [], Step.__init__

    def noting(step, *arguments):
        start(step, *arguments)
        steps.append(step)

    monkeypatch.setattr(Step, "__init__", noting)
    x = nn.Variable.from_numpy_array(np.random.default_rng(0).normal(size=(2, 8, 6, 5)), need_grad=True)
    h = F.relu(PF.convolution(x, 16, (3, 3)))
    loss = F.mean(PF.affine(F.global_average_pooling(h), 3) ** 2)
    for _ in range(3):
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
    for name in ("forward", "backward"):
        found = [step for step in steps if step.name == f"global_average_pooling_{name}"]
        images = [array for step in found for array in step.arrays if array is not None and array.shape == h.shape]
        assert images
        assert {array.strides[1] for array in images} == {2}
