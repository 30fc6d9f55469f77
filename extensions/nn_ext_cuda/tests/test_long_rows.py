"""Rows for which the threads of several warps, or the turns of a block, wait for each other; those of the kit are shorter."""

import numpy as np
import pytest

N = 600


@pytest.fixture
def rng():
    return np.random.default_rng(313)


def kernel_and_call(name, inputs, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    return KERNELS[name], emulated.call_of(name, inputs, **args)


@pytest.mark.parametrize("name", ["CumSum", "CumProd"])
@pytest.mark.parametrize("settings", [(False, False), (True, False), (False, True)])
def test_running_sums(device, rng, name, settings):
    import emulated

    x = rng.uniform(0.99, 1.01, (3, N)).astype("float32")
    exclusive, reverse = settings
    kernel, call = kernel_and_call(name, [x], axis=1, exclusive=exclusive, reverse=reverse)
    (y,) = emulated.forward(device, kernel, call, [x])
    given = x[:, ::-1] if reverse else x
    expected = (np.cumsum if name == "CumSum" else np.cumprod)(given.astype(float), 1)
    if exclusive:
        start = float(name == "CumProd")
        expected = np.c_[np.full(3, start), expected[:, :-1]]
    np.testing.assert_allclose(y, expected[:, ::-1] if reverse else expected, rtol=1e-5)


def test_gradients_of_many_rows(device, rng):
    import emulated

    indices, table = rng.integers(0, 5, N), np.zeros((5, 3), "float32")
    dy = rng.normal(size=(N, 3)).astype("float32")
    kernel, call = kernel_and_call("Embed", [indices, table])
    _, dw = emulated.backward(device, kernel, call, [indices, table], dy)
    expected = np.zeros((5, 3))
    np.add.at(expected, indices, dy)
    np.testing.assert_allclose(dw, expected, rtol=1e-5, atol=1e-5)


def test_several_sums_of_long_rows(device):
    """The sums of a launch take turns in one part of shared memory."""
    from nn_ext_cuda.codegen.operand import Operand
    from nn_ext_cuda.codegen.reduce import reduction
    from nn_ext_cuda.codegen.reduce_code import Reduction
    from nn_ext_cuda.launch.program import Program

    x = device.asarray(np.arange(3 * N, dtype="float32").reshape(3, N))
    sums = [device.asarray(np.zeros((3, 1), "float32")) for _ in range(3)]
    results = [(Operand(f"y{k}", k + 1, "float32", (3, 1)), f"s{k}") for k in range(3)]
    summands = {f"s{k}": f"{k + 1} * x" for k in range(3)}
    wanted = Reduction("sums", summands, [Operand("x", 0, "float32", (3, N))], results)
    launches, scratch = reduction(wanted, "float32", (3, N), [1], 4)
    Program(launches, 4, scratch)(x, *sums)
    expected = x.get().sum(1, keepdims=True)
    for k, found in enumerate(sums):
        np.testing.assert_allclose(found.get(), (k + 1) * expected, rtol=1e-5)
