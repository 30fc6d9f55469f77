"""Reductions and broadcasts by packs of elements, and statistics in one pass, on an emulated device."""

import numpy as np
import pytest

ROWS, COLUMNS = 0, 1


@pytest.fixture
def rng():
    return np.random.default_rng(313)


def kernel_and_call(name, inputs, dtype="float32", **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    return KERNELS[name], emulated.call_of(name, inputs, dtype, **args)


def late(device, array):
    """An array of the device that begins one element late, so that its packs are not aligned."""
    memory = device.asarray(np.concatenate([array.reshape(-1)[:1], array.reshape(-1)]))
    return memory[1:].reshape(array.shape)


def aligned(device, array):
    """An array of the device that begins at a multiple of 64 bytes."""
    memory = device.asarray(np.zeros(array.size + 64 // array.itemsize, array.dtype))
    skipped = -int(memory.data.ptr) % 64 // array.itemsize
    found = memory[skipped : skipped + array.size].reshape(array.shape)
    found[...] = device.asarray(array)
    return found


@pytest.mark.parametrize("place", [aligned, late])
@pytest.mark.parametrize("shape", [(300, 64), (70, 8), (5, 12), (9000, 24), (6, 1024), (3, 7), (33, 4096)])
@pytest.mark.parametrize("axis", [ROWS, COLUMNS])
def test_sums_of_packs(device, rng, shape, axis, place):
    x = rng.integers(-9, 9, shape).astype("float32")
    kernel, call = kernel_and_call("Sum", [x], axes=(axis,), keep_dims=False)
    y = aligned(device, np.full(call.outputs[0].shape, -7, "float32"))
    kernel.forward(call)(place(device, x), y)
    np.testing.assert_array_equal(y.get(), x.sum(axis))


def test_what_is_aligned_is_read_in_packs(device):
    kernel, call = kernel_and_call("Sum", [np.zeros((8, 64), "float16")], "float16", axes=(0,), keep_dims=False)
    (launch,) = kernel.forward(call).launches
    assert "Pack<half_t, 8> x_pack" in launch.code.text
    kernel, call = kernel_and_call("Sum", [np.zeros((8, 63), "float16")], "float16", axes=(0,), keep_dims=False)
    (launch,) = kernel.forward(call).launches
    assert "x_pack" not in launch.code.text


@pytest.mark.parametrize("place", [aligned, late])
@pytest.mark.parametrize(
    "shapes",
    [((6, 24), (1, 24)), ((6, 24), (6, 1)), ((3, 4, 8), (3, 1, 8)), ((3, 8, 5), (3, 8, 1)), ((5, 7), (1, 7))],
)
def test_broadcasts_in_packs(device, rng, shapes, place):
    x, z = (rng.normal(size=shape).astype("float32") for shape in shapes)
    kernel, call = kernel_and_call("Mul2", [x, z])
    y = aligned(device, np.full(shapes[0], -7, "float32"))
    kernel.forward(call)(aligned(device, x), place(device, z), y)
    np.testing.assert_array_equal(y.get(), x * z)
    assert ("made" in kernel.forward(call).launches[0].code.text) == (shapes[0][-1] % 4 == 0)


def normalized(device, x, dtype="float32"):
    """The results of a batch normalization of rows x, (y, mean, variance)."""
    import emulated

    parameters = [np.full((1, x.shape[1]), value, "float32") for value in (0, 1, 0, 1)]
    kernel, call = kernel_and_call("BatchNormalization", [x, *parameters], dtype, axes=(1,))
    return emulated.forward(device, kernel, call, [x, *parameters])


#: Numbers of rows and channels: in one launch or several, with packs or without, and channels that fill no warp.
FORMS = [(20, 3), (300, 8), (4000, 12), (9001, 64), (2500, 5), (2, 16), (700, 256)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [0, 1e4])
def test_statistics_of_one_pass_are_as_exact_as_those_of_two(device, rng, form, offset):
    """The mean is 1e4 times the deviation: sums of squares in float32 would lose the variance altogether."""
    x = (rng.normal(size=form) + offset).astype("float32")
    _, mean, variance = normalized(device, x)
    exact = x.astype("float64")
    error = np.abs(variance / exact.var(0) - 1).max()
    two_passes = np.square(x - x.mean(0, dtype="float32")).mean(0, dtype="float32")
    assert error < max(2 * np.abs(two_passes / exact.var(0) - 1).max(), 2e-5)
    np.testing.assert_allclose(mean[0], exact.mean(0), rtol=3e-7, atol=1e-6)


def test_a_first_value_far_from_all_others_costs_no_accuracy(device, rng):
    x = rng.normal(size=(6000, 16)).astype("float32")
    x[0] = 1000
    exact = x.astype("float64")
    _, mean, variance = normalized(device, x)
    np.testing.assert_allclose(variance[0], exact.var(0), rtol=1e-5)
    np.testing.assert_allclose(mean[0], exact.mean(0), rtol=0, atol=1e-5 * exact.std())


def test_equal_values_have_no_variance(device):
    y, mean, variance = normalized(device, np.full((5000, 8), 0.1, "float32"))
    assert (variance == 0).all()
    np.testing.assert_array_equal(mean, np.float32(0.1))
    np.testing.assert_array_equal(y, 0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [0, 2999])
def test_what_is_not_finite_is_seen_in_its_channel_only(device, rng, value, row):
    x = rng.normal(size=(3000, 16)).astype("float32")
    x[row, 3] = value
    _, mean, variance = normalized(device, x)
    assert not np.isfinite(mean[0, 3])
    assert np.isnan(variance[0, 3])
    assert np.isfinite(np.delete(variance[0], 3)).all()


def test_names_of_arrays_are_no_names_of_loops(device, rng):
    p, q = (rng.uniform(0.1, 1, (5, length)).astype("float32") for length in (8, 8))
    kernel, call = kernel_and_call("KLMultinomial", [p, q])
    D = device.asarray(np.zeros(call.outputs[0].shape, "float32"))
    kernel.forward(call)(device.asarray(p), device.asarray(q), D)
    np.testing.assert_allclose(D.get().ravel(), (p * np.log(p / q)).sum(1), rtol=1e-4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_gradients_of_all_forms(device, rng, form, dtype):
    import emulated

    x, dy = (rng.normal(size=form).astype(dtype) for _ in range(2))
    gamma, beta = (rng.normal(size=(1, form[1])).astype(dtype) for _ in range(2))
    statistics = [np.full((1, form[1]), value, "float32") for value in (0, 1)]
    kernel, call = kernel_and_call("BatchNormalization", [x, beta, gamma, *statistics], dtype, axes=(1,))
    _, *kept = emulated.forward(device, kernel, call, [x, beta, gamma, *statistics])
    found = [device.asarray(np.full(desc.shape, -7, dtype)) for desc in call.inputs[:3]]
    read = [x, None, gamma, None, None, None, *kept, dy]
    given = [None if array is None else device.asarray(array) for array in read]
    kernel.backward(call, [True, True, True, False, False])(*given, *found, None, None)
    found = [array.get() for array in found]
    x, dy, gamma = (array.astype("float64") for array in (x, dy, gamma))
    scale = 1 / np.sqrt(x.var(0) + 1e-5)
    standard = (x - x.mean(0)) * scale
    dx = (dy - dy.mean(0) - standard * (dy * standard).mean(0)) * gamma * scale
    tolerance = 2e-5 if dtype == "float32" else 4e-3
    for own, expected in zip(found, (dx, dy.sum(0), (dy * standard).sum(0)), strict=True):
        atol = tolerance * max(np.abs(expected).max(), 1)
        np.testing.assert_allclose(np.squeeze(own), np.squeeze(expected), rtol=0, atol=atol)


def test_a_batch_normalization_reads_x_twice_and_takes_three_launches(device):
    x, *parameters = (np.ones(shape, "float32") for shape in ((9000, 64), *[(1, 64)] * 4))
    kernel, call = kernel_and_call("BatchNormalization", [x, *parameters], axes=(1,))
    launches = kernel.forward(call).launches
    assert [0 in launch.arguments for launch in launches] == [True, False, True]
    launches = kernel.backward(call, [True, True, True, False, False]).launches
    assert [0 in launch.arguments for launch in launches] == [True, False, True]


@pytest.mark.parametrize("form", [*FORMS, (9001, 63)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("in_place", [False, True])
def test_the_gradient_of_a_shortcut_is_written_with_the_sums(device, rng, form, dtype, in_place):
    """The gradient of z is that which the ReLU lets through; the launch for dx reads that in place of y and dy."""
    x, z, dy = (rng.normal(size=form).astype(dtype) for _ in range(3))
    beta, gamma = (rng.normal(size=(1, form[1])).astype(dtype) for _ in range(2))
    statistics = [np.full((1, form[1]), value, "float32") for value in (0, 1)]
    kernel, call = kernel_and_call("FusedBatchNormalization", [x, beta, gamma, *statistics, z], dtype, axes=(1,))
    outputs = [device.asarray(np.zeros(desc.shape, desc.dtype)) for desc in call.outputs]
    inputs = [device.asarray(array) for array in (x, beta, gamma, *statistics, z)]
    kernel.forward(call)(*inputs, *outputs)
    program = kernel.backward(call, [True, True, True, False, False, True])
    dx, dbeta, dgamma = (device.asarray(np.full(desc.shape, -7, dtype)) for desc in call.inputs[:3])
    given = device.asarray(dy)
    dz = given if in_place else device.asarray(np.full(form, -7, dtype))
    program(inputs[0], None, inputs[2], None, None, None, *outputs, given, dx, dbeta, dgamma, None, None, dz)
    masked = np.where(outputs[0].get() > 0, dy, 0)
    np.testing.assert_array_equal(dz.get(), masked)
    x, masked, gamma = (array.astype("float64") for array in (x, masked, gamma))
    scale = 1 / np.sqrt(x.var(0) + 1e-5)
    standard = (x - x.mean(0)) * scale
    expected = (masked - masked.mean(0) - standard * (masked * standard).mean(0)) * gamma * scale
    atol = (2e-5 if dtype == "float32" else 4e-3) * max(np.abs(expected).max(), 1)
    np.testing.assert_allclose(dx.get(), expected, rtol=0, atol=atol)
    y_and_dy = {6, 9}
    *_, last = program.launches
    assert not y_and_dy & {argument for argument in last.arguments if type(argument) is int}
