"""Programs with sums in between, beside the reference: norms along any axes, gradients of one input, zeros."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(("shape", "dim"), [((5,), 0), ((64, 3, 3, 70), 0), ((7, 900), 1), ((4, 6, 5), 1), ((1, 8), 0)])
def test_weight_normalization(assert_alike: Compare, shape: tuple[int, ...], dim: int) -> None:
    assert_alike(lambda w, g: F.weight_normalization(w, g, dim=dim), normal(*shape), normal(shape[dim]), tolerance=1e-4)


def test_gradient_of_one_input_alone() -> None:
    w, g = normal(6, 50), normal(6)
    results = []
    for wanted in ((True, True), (True, False), (False, True)):
        with nn.context_scope(nn.Context(["cpu:float"])):
            inputs = [nn.Variable.from_numpy_array(a, need_grad=want) for a, want in zip((w, g), wanted, strict=True)]
            y = F.weight_normalization(*inputs)
            for x in inputs:
                x.grad.zero()
            y.forward()
            y.backward(normal(6, 50))
            results.append([x.g.copy() for x in inputs])
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[2][1])


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
@pytest.mark.parametrize(("shape", "axes"), [((40, 300), (1,)), ((40, 300), (0,)), ((3, 4, 5, 60), (1, 3)), ((7,), (0,))])
def test_normalization_by_a_norm(assert_alike: Compare, shape: tuple[int, ...], axes: tuple[int, ...], p: float) -> None:
    assert_alike(lambda x: F.norm_normalization(x, p=p, axes=axes), normal(*shape), tolerance=1e-4)
    assert_alike(lambda x: F.norm(x, p=p, axis=axes), normal(*shape), tolerance=1e-4)


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), None])
def test_gradients_get_a_norm(assert_alike: Compare, axes: tuple[int, ...] | None) -> None:
    assert_alike(lambda x: F.clip_grad_by_norm(x * x, 0.7, axes), normal(30, 200))


def test_gradients_that_are_zero_stay_zero() -> None:
    x = nn.Variable.from_numpy_array(normal(3, 4), need_grad=True)
    with nn.context_scope(nn.Context(["cpu:float"])):
        y = F.clip_grad_by_norm(x, axes=(1,))
        x.grad.zero()
        y.forward()
        y.backward(np.array([[0.0] * 4, [3, 0, 0, 4], [0.0] * 4], np.float32))
    np.testing.assert_allclose(x.g, [[0.0] * 4, [0.6, 0, 0, 0.8], [0.0] * 4], rtol=1e-6)


@pytest.mark.parametrize(("shape", "dim"), [((20, 300), 0), ((16, 24, 3, 3), 1), ((5,), 0)])
@pytest.mark.parametrize("itr", [1, 3])
def test_spectral_norm(assert_alike: Compare, shape: tuple[int, ...], dim: int, itr: int) -> None:
    # u is no parameter: it has no gradient.
    u = nn.Variable.from_numpy_array(normal(shape[dim]))
    assert_alike(lambda w: F.spectral_norm(w, u, dim=dim, itr=itr, test=True), normal(*shape), tolerance=1e-4)


def test_spectral_norm_keeps_its_vector() -> None:
    w, u = normal(8, 30), normal(8)
    kept = []
    for backend in ("cpu:float", "reference:double"):
        with nn.context_scope(nn.Context([backend])):
            vector = nn.Variable.from_numpy_array(u)
            y = F.spectral_norm(nn.Variable.from_numpy_array(w), vector)
            for _ in range(60):
                y.forward()
            kept.append((vector.d.copy(), y.d.copy()))
    np.testing.assert_allclose(kept[0][0], kept[1][0], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(np.linalg.svd(kept[0][1], compute_uv=False)[0], 1.0, rtol=1e-3)


@pytest.mark.parametrize(("shape", "base_axis"), [((4, 1000), 1), ((3, 4, 5), 2), ((3, 4, 5), 1), ((6,), 0)])
def test_divergence(assert_alike: Compare, shape: tuple[int, ...], base_axis: int) -> None:
    p, q = (np.abs(normal(*shape)) + 0.1 + k for k in range(2))
    assert_alike(lambda p, q: F.kl_multinomial(p, q, base_axis), p, q.astype(np.float32))
