"""Fourier transforms on the emulated device, beside NumPy's in double precision: lengths, axes, windows, gradients, limits."""

import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

RNG = np.random.default_rng(0)
#: Every radix, products of them, and prime factors that have none.
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 30, 32, 64, 77, 98, 100, 127, 128, 169, 210, 254, 289, 360, 500, 512]
#: Of the largest magnitude of a result, by the dtype.
TOLERANCES = {"float32": 4e-7, "float64": 1e-15, "float16": 1e-3}


def spoken(pairs):
    """Complex numbers from pairs of real numbers."""
    wide = np.asarray(pairs, "float64")
    return wide[..., 0] + 1j * wide[..., 1]


def ran(device, name, x, *, direction="forward", **args):
    """The result of a kernel, as complex numbers."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, [x], str(x.dtype), **args)
    assert KERNELS[name].refuse(call) is None
    if direction == "backward":
        return spoken(emulated.backward(device, KERNELS[name], call, [x], x)[0])
    return spoken(emulated.forward(device, KERNELS[name], call, [x])[0])


def numbers(*shape, dtype="float32"):
    return RNG.normal(size=(*shape, 2)).astype(dtype)


def check(found, expected, dtype="float32"):
    """Compare, with errors that grow as the logarithm of the number of terms."""
    assert np.abs(found - expected).max() <= TOLERANCES[dtype] * max(np.log2(expected.size), 1) * np.abs(expected).max()


@pytest.mark.parametrize("length", LENGTHS)
def test_lengths(device, length):
    x = numbers(3, length)
    check(ran(device, "FFT", x, signal_ndim=1), np.fft.fft(spoken(x)))
    check(ran(device, "IFFT", x, signal_ndim=1), np.fft.ifft(spoken(x)))


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((3, 10, 21), "float32"),
        ((2, 4, 6, 5), "float32"),
        ((1, 1, 1), "float32"),
        ((2, 1, 7), "float32"),
        ((70, 4, 3), "float32"),
        ((3, 4, 6), "float64"),
        ((3, 4, 6), "float16"),
        ((5, 2, 3, 4), "float16"),
    ],
)
@pytest.mark.parametrize("normalized", [False, True])
def test_axes(device, shape, dtype, normalized):
    x = numbers(*shape, dtype=dtype)
    n_axes = min(len(shape), 3)
    axes, norm = tuple(range(-n_axes, 0)), "ortho" if normalized else "backward"
    args = {"signal_ndim": n_axes, "normalized": normalized}
    forward, back = np.fft.fftn(spoken(x), axes=axes, norm=norm), np.fft.ifftn(spoken(x), axes=axes, norm=norm)
    n = 1 if normalized else np.prod(shape[-n_axes:])
    check(ran(device, "FFT", x, **args), forward, dtype)
    check(ran(device, "IFFT", x, **args), back, dtype)
    check(ran(device, "FFT", x, direction="backward", **args), back * n, dtype)
    check(ran(device, "IFFT", x, direction="backward", **args), forward / n, dtype)


@pytest.mark.parametrize("length", [4096, 5760, 5418])
def test_long_lines_are_as_accurate_as_rounded_roots_allow(device, length):
    x = numbers(1, length)
    found, expected = ran(device, "FFT", x, signal_ndim=1), np.fft.fft(spoken(x))
    assert np.sqrt(np.mean(np.abs(found - expected) ** 2) / np.mean(np.abs(expected) ** 2)) < 3e-7


def test_roots_of_unity_are_exact_at_quarters_and_next_to_exact_elsewhere():
    from nn_ext_cuda.kernels.fourier import roots_of_unity

    roots = roots_of_unity(720, "float64")
    assert roots[[0, 180, 360, 540]].tolist() == [[1, 0], [0, -1], [-1, 0], [0, 1]]
    angles = np.pi / 360 * np.arange(720)
    np.testing.assert_allclose(roots, np.stack([np.cos(angles), -np.sin(angles)], -1), rtol=0, atol=1e-15)


def test_what_is_not_finite_stays_in_its_line(device):
    x = numbers(3, 30)
    x[1, 4, 0] = np.nan
    y = ran(device, "FFT", x, signal_ndim=1)
    assert np.isnan(y).all(axis=1).tolist() == [False, True, False]


@pytest.mark.parametrize("shape", [(2, 8192), (1, 16000), (1, 8192, 3), (2, 3, 5796), (1, 6000, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lines_beyond_shared_memory(device, shape, dtype):
    x = numbers(*shape, dtype=dtype)
    n_axes = len(shape) - 1
    axes = tuple(range(-n_axes, 0))
    found = ran(device, "FFT", x, signal_ndim=n_axes, normalized=True)
    check(found, np.fft.fftn(spoken(x), axes=axes, norm="ortho"), dtype)
    found = ran(device, "IFFT", x, signal_ndim=n_axes, direction="backward")
    check(found, np.fft.fftn(spoken(x), axes=axes, norm="forward"), dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "length", "reason"),
    [
        ("FFT", "float32", 2**20 + 2**10, "at most 5782 in float32, and up to 1048576 products of two such lengths, got"),
        ("FFT", "float32", 262, "prime factors of at most 127, got 262"),
        ("ISTFT", "float32", 5796, "at most 5782 in float32, got 5796"),
        ("ISTFT", "float64", 2904, "at most 2891 in float64, got 2904"),
    ],
)
def test_other_lengths_are_left_to_the_reference(device, name, dtype, length, reason):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    if name == "FFT":
        call = emulated.call_of(name, [numbers(1, length, dtype=dtype)], dtype, signal_ndim=1)
    else:
        spectrum = np.ones((1, length // 2 + 1, 2), dtype)
        args = {"window_size": length, "stride": length // 2, "fft_size": length}
        call = emulated.call_of(name, [spectrum, spectrum], dtype, **args)
    assert reason in KERNELS[name].refuse(call).reason


FRAMES = {
    "plain": {"window_size": 8, "stride": 4, "fft_size": 8},
    "hamming": {"window_size": 12, "stride": 5, "fft_size": 15, "window_type": "hamming", "pad_mode": "constant"},
    "not_centred": {"window_size": 10, "stride": 3, "fft_size": 10, "window_type": "rectangular", "center": False},
    "odd": {"window_size": 5, "stride": 2, "fft_size": 9},
    "one": {"window_size": 1, "stride": 1, "fft_size": 1, "window_type": "rectangular"},
    "apart": {"window_size": 4, "stride": 6, "fft_size": 8},
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("frames", FRAMES)
def test_frames(cuda, frames, dtype):
    args = FRAMES[frames]
    for transposed in (False, True):
        if transposed and frames == "apart":  # windows must overlap there
            continue
        signal = RNG.normal(size=(3, 46)).astype(dtype)
        compare("STFT", [signal], dtype, **args, as_istft_backward=transposed)
        spectrum = [RNG.normal(size=(3, args["fft_size"] // 2 + 1, 11)).astype(dtype) for _ in range(2)]
        if transposed or frames != "apart":
            compare("ISTFT", spectrum, dtype, **args, as_stft_backward=transposed)


def test_the_transpose_of_frames_that_are_apart(cuda):
    spectrum = [RNG.normal(size=(2, 5, 4)).astype("float32") for _ in range(2)]
    compare("ISTFT", spectrum, "float32", **FRAMES["apart"], as_stft_backward=True)


def compare(name, inputs, dtype, **args):
    """Results and gradients, beside those of the reference and of the gradient rule in double precision."""
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    device, kernel = sys.modules["cupy"], KERNELS[name]
    call = emulated.call_of(name, inputs, dtype, **args)
    assert kernel.refuse(call) is None
    found = emulated.forward(device, kernel, call, inputs)
    variables = [nn.Variable.from_numpy_array(array.astype("float64"), need_grad=True) for array in inputs]
    with nn.context_scope(nn.Context(["reference:double"])):
        outputs = getattr(F, name.lower())(*variables, **args)
        outputs = outputs if isinstance(outputs, tuple | list) else [outputs]
        gradients = [RNG.normal(size=y.shape).astype(dtype) for y in outputs]
        factors = [nn.Variable.from_numpy_array(dy.astype("float64")) for dy in gradients]
        loss = sum(F.sum(y * factor) for y, factor in zip(outputs, factors, strict=True))
        for variable in variables:
            variable.grad.zero()
        loss.forward()
        loss.backward()
        expected = [y.d.copy() for y in outputs]
    wanted = [True] * len(inputs)
    empty = [None] * (len(inputs) + len(outputs))
    made = [device.asarray(np.full(array.shape, -7, dtype)) for array in inputs]
    kernel.backward(call, wanted)(*empty, *map(device.asarray, gradients), *made)
    pairs = [*zip(found, expected, strict=True), *[(one.get(), v.g) for one, v in zip(made, variables, strict=True)]]
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=10 * TOLERANCES[dtype] * max(np.abs(other).max(), 1))


def test_one_of_two_gradients(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    spectrum = [RNG.normal(size=(1, 5, 6)).astype("float32") for _ in range(2)]
    call = emulated.call_of("ISTFT", spectrum, **FRAMES["plain"])
    dx = device.asarray(RNG.normal(size=call.outputs[0].shape).astype("float32"))
    both = [device.asarray(np.zeros((1, 5, 6), "float32")) for _ in range(2)]
    KERNELS["ISTFT"].backward(call, [True, True])(None, None, None, dx, *both)
    alone = device.asarray(np.zeros((1, 5, 6), "float32"))
    KERNELS["ISTFT"].backward(call, [False, True])(None, None, None, dx, None, alone)
    np.testing.assert_array_equal(alone.get(), both[1].get())


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(RNG.normal(size=(2, 64)).astype("float32"), need_grad=True)
    real, imaginary = F.stft(x, window_size=16, stride=8, fft_size=16)
    y = F.ifft(F.fft(F.stack(real, imaginary, axis=-1), 2), 2)
    loss = F.sum(F.istft(y[..., 0], y[..., 1], window_size=16, stride=8, fft_size=16) ** 2)
    emulated.check_recorded(loss, x)
    np.testing.assert_allclose(x.g, 2 * x.d, atol=1e-5)
