"""Convolutions without cuDNN: what the samples of the conformance kit are too small for, on an emulated device."""

from types import SimpleNamespace

import numpy as np
import pytest

from nn_ext_cuda.codegen.layout import divider

SETTINGS = {
    "plain": {"pad": (1, 1)},
    "strided groups": {"pad": (1, 2), "stride": (2, 1), "dilation": (1, 2), "group": 2},
    "channels last": {"pad": (1, 0), "group": 2, "channel_last": True},
    "one by one": {},
}


@pytest.fixture
def cublas(device, monkeypatch):
    import fake_cublas

    return fake_cublas.install(monkeypatch, fake_cublas.FakeCublas())


def test_division_by_a_product_is_exact():
    numbers = np.array([0, 1, 2, 62, 63, 64, 65, 999, 2**31 - 2, 2**31 - 1], np.uint64)
    for divisor in (1, 2, 3, 5, 7, 49, 63, 64, 65, 1000, 2**20 + 1, 2**31 - 1):
        factor, shift = divider(divisor)
        quotients = ((numbers * np.uint64(factor) >> np.uint64(32)) + numbers) >> np.uint64(shift)
        np.testing.assert_array_equal(quotients, numbers // np.uint64(divisor))


def arrays_of(name, settings, rng):
    last = settings.get("channel_last", False)
    size = (1, 1) if not settings else (3, 2)
    shape, lengths = (8, 6 // settings.get("group", 1)), (6, 5)
    x = (5, *lengths, 6) if last else (5, 6, *lengths)
    weight = (8, *size, shape[1]) if last else (*shape, *size)
    bias = 8
    if name == "Deconvolution":
        x = (5, *lengths, 8) if last else (5, 8, *lengths)
        bias = 6
    return [rng.normal(size=part).astype("float32") for part in (x, weight, (bias,))]


@pytest.mark.parametrize("samples_at_once", [2, 100])
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["Convolution", "Deconvolution"])
def test_samples_may_be_taken_in_portions(device, cublas, monkeypatch, name, setting, samples_at_once):
    import emulated

    from nn_core.operators.reference.convolution import convolution, deconvolution
    from nn_ext_cuda.kernels import KERNELS, convolution_products

    settings, rng = SETTINGS[setting], np.random.default_rng(0)
    inputs = arrays_of(name, settings, rng)
    call = emulated.call_of(name, inputs, **settings)
    geometry = KERNELS[name]._geometry(call)
    monkeypatch.setattr(convolution_products, "COLUMN_BYTES", samples_at_once * geometry.column * geometry.n_places * 4)
    reference = convolution if name == "Convolution" else deconvolution
    wide = [array.astype("float64") for array in inputs]
    expected = reference(np, *wide, **call.args)
    (y,) = emulated.forward(device, KERNELS[name], call, inputs)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)

    dy = rng.normal(size=y.shape)
    gradients = emulated.backward(device, KERNELS[name], call, inputs, dy.astype("float32"))
    for k, gradient in enumerate(gradients):  # the function is linear in each input, up to the bias
        direction = rng.normal(size=inputs[k].shape)
        moved = [array + direction if j == k else array for j, array in enumerate(wide)]
        slope = np.sum((reference(np, *moved, **call.args) - expected) * dy)
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-3, atol=1e-3)


def test_a_sample_too_large_for_columns_is_summed_directly(device, monkeypatch):
    import emulated

    from nn_core.operators.reference.convolution import convolution
    from nn_ext_cuda.kernels import KERNELS, convolution_products

    monkeypatch.setattr(convolution_products, "COLUMN_BYTES", 100)
    inputs = arrays_of("Convolution", {"pad": 1}, np.random.default_rng(0))
    call = emulated.call_of("Convolution", inputs, pad=(1, 1))
    assert KERNELS["Convolution"]._geometry(call).is_direct
    (y,) = emulated.forward(device, KERNELS["Convolution"], call, inputs)
    expected = convolution(np, *(array.astype("float64") for array in inputs), **call.args)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_steps_share_one_memory(device):
    from nn_ext_cuda.memory.workspace import shared

    first, second = shared([1000, 50])
    again, _ = shared([1000, 50])
    assert first.data.ptr == again.data.ptr
    assert (first.size, second.size) == (1000, 50)
    assert second.data.ptr - first.data.ptr == 1024
    shared([10**6])
    assert shared([10])[0].data.ptr == shared([10**6])[0].data.ptr


def test_four_axes_are_refused():
    from nn_ext_cuda.kernels.convolution import Convolution

    call = SimpleNamespace(args={"stride": (1, 1, 1, 1)})
    assert "3 spatial axes, got 4" in Convolution().refuse(call).reason


@pytest.mark.parametrize("setting", [*SETTINGS, "depthwise"])
@pytest.mark.parametrize("samples_at_once", [2, 100])
def test_the_gradient_of_images_is_added_to_what_is_there(device, cublas, monkeypatch, setting, samples_at_once):
    import emulated

    from nn_ext_cuda.kernels import KERNELS, convolution_products

    rng = np.random.default_rng(0)
    name = "DepthwiseConvolution" if setting == "depthwise" else "Convolution"
    inputs = arrays_of("Convolution", SETTINGS.get(setting, {}), rng)
    if setting == "depthwise":
        inputs = [inputs[0], rng.normal(size=(6, 3, 2)).astype("float32"), inputs[2][:6]]
    call = emulated.call_of(name, inputs, **SETTINGS.get(setting, {}))
    geometry = KERNELS[name]._geometry(call)
    monkeypatch.setattr(convolution_products, "COLUMN_BYTES", samples_at_once * geometry.column * geometry.n_places * 4)
    runner = KERNELS[name].backward(call, [True, True, True])
    shapes = [desc.shape for desc in (*call.inputs, call.outputs[0])]
    x, weight, _, dy = (device.asarray(rng.normal(size=shape).astype("float32")) for shape in shapes)
    before = rng.normal(size=x.shape).astype("float32")
    found = []
    for each in (runner, runner.accumulating([5])):
        gradients = [device.asarray(before), *(device.asarray(np.full(shape, -7, "float32")) for shape in shapes[1:3])]
        each.bind(x, weight, None, None, dy, *gradients)()
        found.append([gradient.get() for gradient in gradients])
    (alone, *others), (added, *same) = found
    np.testing.assert_allclose(added, before + alone, rtol=1e-5, atol=1e-4)
    for one, other in zip(others, same, strict=True):
        np.testing.assert_array_equal(one, other)
    assert runner.accumulating([5, 6]) is None
