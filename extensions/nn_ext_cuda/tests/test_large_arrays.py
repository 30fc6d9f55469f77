"""Arrays that 32 bits cannot index: a kernel refuses them, or counts in 64 bits, which is tried where they end."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import emulated
import launches
import sources

from nn_ext_cuda.codegen.compose import LIMIT
from nn_ext_cuda.kernels import KERNELS

#: Functions of CUDA C in files that take such arrays; each has a test below.
WIDE = {
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_mask",
    "integers",
    "normal",
    "pooling",
    "pooling_backward",
    "pooling_first_maxima",
    "pooling_gather",
    "pooling_of_maxima",
    "random_beta",
    "random_binomial",
    "random_gamma",
    "scan_across",
    "scan_along",
    "softmax",
    "softmax_backward",
    "uniform",
}


def is_large(call):
    return max(desc.size for desc in (*call.inputs, *call.outputs) if desc is not None) >= LIMIT


@pytest.mark.parametrize("n", [2**20, LIMIT, 2**34])
def test_calls_of_any_size_are_refused_or_can_be_launched(n):
    """Numbers that do not fit into an argument are an OverflowError."""
    for name in sorted(KERNELS):
        for sample, call in sources.scaled_calls(name, "float32", n):
            for _, program in sources.runners(KERNELS[name], call):
                found = [text for launch in getattr(program, "launches", ()) for text in launches.complaints(launch)]
                assert found == [], (name, sample, call.inputs)


@pytest.mark.parametrize(
    ("name", "shape", "args"),
    [("Sum", (0, 2**16, 2**16), {"axes": (0,)}), ("Broadcast", (1, 2**16, 2**16), {"shape": (0, 2**16, 2**16)})],
)
def test_one_array_without_elements_does_not_make_the_other_small(name, shape, args):
    call = emulated.call_of(name, [np.broadcast_to(np.float32(0), shape)], **args)
    assert KERNELS[name].refuse(call).reason == "takes arrays of less than 2147483648 elements, got 4294967296"


def test_kernels_that_take_large_arrays_count_in_64_bits():
    found = set()
    for name in sorted(KERNELS):
        for _, call in filter(lambda own: is_large(own[1]), sources.scaled_calls(name, "float32", LIMIT)):
            for _, program in sources.runners(KERNELS[name], call):
                for launch in program.launches:
                    if re.search(r"_[0-9a-f]{8}$", launch.code.name):
                        assert "uint32" not in launch.code.text, (name, launch.code.text)
                    else:
                        found.add(launch.code.name)
    assert found == WIDE


N = LIMIT + 300
ROWS = LIMIT // 8 + 40
#: Elements at the ends of an array, and around the first that 31 bits cannot number.
SOME = np.r_[0:300, LIMIT - 300 : N]


#: The seed and the counter of random functions, which are on the host.
KEY = np.array([5, 7], np.uint64)


@pytest.fixture
def rng():
    return np.random.default_rng(313)


@pytest.fixture
def made(device):
    """``made(shape, dtype)``: zeros on the device, which take room only where something is written."""

    def zeros(shape, dtype="float16"):
        try:
            return device.zeros(shape, dtype)
        except MemoryError:
            pytest.skip("so many addresses cannot be had")

    return zeros


def run(runner, *arrays, blocks=2):
    import machine

    with machine.ends_only(blocks):
        runner(*arrays)


def plain(array):
    return array.view(np.ndarray)


def described(name, arrays, **args):
    """The kernel of a function, and its call for arrays like these."""
    return KERNELS[name], emulated.call_of(name, [plain(array) for array in arrays], "float16", **args)


@pytest.mark.slow
@pytest.mark.parametrize("start", [0, 1], ids=["aligned", "not aligned"])
def test_elements(made, rng, start):
    x, y = made(N + 1)[start : start + N], made(N)
    plain(x)[SOME] = rng.normal(size=SOME.size)
    kernel, call = described("Abs", [x])
    run(kernel.forward(call), x, y)
    np.testing.assert_array_equal(plain(y)[SOME], abs(plain(x)[SOME]))


def last_rows(array, axis):
    return plain(array)[-8:] if axis else plain(array)[:, -8:]


def shape_of(axis):
    """Rows along `axis` that are short, and very many."""
    return (ROWS, 8) if axis else (8, ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(made, rng, axis):
    x, y, dy, dx = (made(shape_of(axis)) for _ in range(4))
    for array in (x, dy):
        last_rows(array, axis)[...] = rng.normal(size=last_rows(array, axis).shape)
    kernel, call = described("Softmax", [x], axis=axis)
    run(kernel.forward(call), x, y)
    raised = np.exp(last_rows(x, axis).astype(float))
    share = raised / raised.sum(axis, keepdims=True)
    np.testing.assert_allclose(last_rows(y, axis), share, rtol=2e-3)
    run(kernel.backward(call, [True]), None, y, dy, dx)
    g = last_rows(dy, axis).astype(float)
    np.testing.assert_allclose(last_rows(dx, axis), share * (g - (g * share).sum(axis, keepdims=True)), rtol=2e-2, atol=2e-3)


@pytest.mark.slow
def test_cross_entropy(made, rng):
    x, dx, labels, loss = made((ROWS, 8)), made((ROWS, 8)), made((ROWS, 1), "int64"), made((ROWS, 1), "float32")
    plain(x)[-8:], plain(labels)[-8:] = rng.normal(size=(8, 8)), np.arange(8)[:, None]
    kernel, call = described("SoftmaxCrossEntropy", [x, labels], axis=1)
    run(kernel.forward(call), x, labels, loss)
    raised = np.exp(plain(x)[-8:].astype(float))
    share = raised / raised.sum(1, keepdims=True)
    np.testing.assert_allclose(plain(loss)[-8:, 0], -np.log(np.diag(share)), rtol=2e-3)
    plain(loss)[-8:] = 1
    run(kernel.backward(call, [True, False]), x, labels, None, loss, dx, None)
    np.testing.assert_allclose(plain(dx)[-8:], share - np.eye(8), rtol=2e-3, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums(made, axis):
    x, y = made(shape_of(axis)), made(shape_of(axis))
    last_rows(x, axis)[...] = 1
    kernel, call = described("CumSum", [x], axis=axis)
    run(kernel.forward(call), x, y)
    np.testing.assert_array_equal(last_rows(y, axis), np.cumsum(np.ones((8, 8)), axis))


@pytest.mark.slow
def test_pooling(made, rng):
    x, y, dy, dx = made((ROWS, 8, 1)), made((ROWS, 4, 1)), made((ROWS, 4, 1)), made((ROWS, 8, 1))
    plain(x)[-8:], plain(dy)[-8:] = rng.permutation(64).reshape(8, 8, 1), rng.normal(size=(8, 4, 1))
    window = {"kernel": (2, 1), "stride": (2, 1)}
    kernel, call = described("MaxPooling", [x], **window)
    run(kernel.forward(call), x, y, blocks=64)
    pairs = plain(x)[-8:].reshape(8, 4, 2)
    np.testing.assert_array_equal(plain(y)[-8:, :, 0], pairs.max(-1))
    run(kernel.backward(call, [True]), x, None, dy, dx, blocks=64)
    chosen = np.where(pairs == pairs.max(-1, keepdims=True), plain(dy)[-8:], 0)
    np.testing.assert_array_equal(plain(dx)[-8:], chosen.reshape(8, 8, 1))
    plain(y)[-8:] = 0
    kernel, call = described("MaxPoolingGather", [x, x], **window)
    run(kernel.forward(call), x, x, y, blocks=64)
    np.testing.assert_array_equal(plain(y)[-8:, :, 0], pairs.max(-1))


@pytest.mark.slow
def test_dropout(made):
    x, y, mask = made(N), made(N), made(N)
    plain(x)[SOME] = 3
    kernel, call = described("Dropout", [x], p=0.5)
    run(kernel.forward(call), x, y, mask, KEY)
    assert set(plain(mask)[-300:].tolist()) == {0, 2}
    np.testing.assert_array_equal(plain(y)[-300:], 3 * plain(mask)[-300:])
    again, drawn = made(N), made(2, "uint64")
    plain(drawn)[...] = KEY
    kernel, call = described("DropoutMask", [drawn], shape=(N,), p=0.5)
    run(kernel.forward(call), drawn, again)
    np.testing.assert_array_equal(plain(again)[-300:], plain(mask)[-300:])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Rand", "Randn", "Randint"])
def test_random_numbers(made, name):
    kernel, call = described(name, [], shape=(N,), **({"low": 1, "high": 100} if name == "Randint" else {}))
    y = made(N, call.outputs[0].dtype)
    run(kernel.forward(call), y, KEY)
    assert (plain(y)[-300:] != 0).mean() > 0.9
