"""Determinants, inverses and factors of small matrices on the emulated device."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

RNG = np.random.default_rng(0)


def ran(device, name, x, **args):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    call = emulated.call_of(name, [x], str(x.dtype), **args)
    assert KERNELS[name].refuse(call) is None
    return emulated.forward(device, KERNELS[name], call, [x])[0]


def matrices(n, dtype="float32"):
    """Some whose pivots are not on the diagonal."""
    return np.roll(RNG.normal(size=(3, n, n)) + 3 * np.eye(n), 1, axis=1).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 17, 64])
def test_inverses_and_determinants(device, n, dtype):
    x = matrices(n, dtype)
    tolerance = 1e-3 if dtype == "float32" else 1e-11
    inverse, exact = ran(device, "BatchInv", x), np.linalg.inv(x.astype("float64"))
    assert np.abs(inverse - exact).max() <= tolerance * np.abs(exact).max()
    np.testing.assert_allclose(ran(device, "BatchLogdet", x), np.linalg.slogdet(x.astype("float64"))[1], rtol=tolerance)
    if n < 60:  # that of larger ones is beyond float32
        np.testing.assert_allclose(ran(device, "BatchDet", x), np.linalg.det(x.astype("float64")), rtol=tolerance)


def test_singular_matrices_have_no_determinant_left(device):
    x = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]], [[0, 1], [1, 0]]], "float32")
    assert ran(device, "BatchDet", x).tolist() == [0, 0, -1]
    assert ran(device, "BatchLogdet", x).tolist() == [-np.inf, -np.inf, 0]


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [1, 6, 40])
def test_factors(device, n, upper):
    root = RNG.normal(size=(2, n, n))
    x = (root @ root.transpose(0, 2, 1) + n * np.eye(n)).astype("float32")
    expected = np.linalg.cholesky(x.astype("float64"))
    found = ran(device, "BatchCholesky", x, upper=upper)
    np.testing.assert_allclose(found.transpose(0, 2, 1) if upper else found, expected, atol=1e-5 * n)


@pytest.mark.parametrize(("name", "text"), [("batch_inv", "hold invertible"), ("batch_cholesky", "be positive definite")])
def test_what_has_no_result_is_told(cuda, name, text):
    from nn_core.errors import ArgumentError

    x = np.stack([np.ones((2, 2)), np.zeros((2, 2))]).astype("float32")
    y = getattr(F, name)(nn.Variable.from_numpy_array(x))
    with pytest.raises(ArgumentError, match=rf"{name}: x must {text}.*in shape \(2, 2, 2\)"):
        y.forward()
        y.d.copy()


def test_large_matrices_are_left_to_the_reference(device):
    import emulated

    from nn_ext_cuda.kernels import KERNELS

    for n, dtype, most in ((108, "float32", 108), (109, "float32", 108), (76, "float64", 76), (77, "float64", 76)):
        refusal = KERNELS["BatchInv"].refuse(emulated.call_of("BatchInv", [np.zeros((1, n, n), dtype)], dtype))
        assert (refusal is None) == (n <= most)
        assert refusal is None or f"takes matrices of 1 to {most} rows in {dtype}, got {n}" in refusal.reason
    ran(device, "BatchInv", matrices(108))


def test_they_are_recorded_in_graphs(cuda):
    import emulated

    x = nn.Variable.from_numpy_array(matrices(4), need_grad=True)
    loss = F.sum(F.batch_inv(x)) + F.sum(F.batch_logdet(x)) + F.sum(F.batch_det(x))
    emulated.check_recorded(loss, x)
    inverse = np.linalg.inv(x.d.astype("float64"))
    turned, ones = inverse.transpose(0, 2, 1), np.ones((4, 4))
    expected = -turned @ ones @ turned + turned * (1 + np.linalg.det(x.d.astype("float64")))[:, None, None]
    np.testing.assert_allclose(x.g, expected, atol=1e-3 * np.abs(expected).max())
