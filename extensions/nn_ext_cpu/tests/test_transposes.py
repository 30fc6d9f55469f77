"""Transposes on every instruction set: whole tiles and parts of them, every bit of the elements."""

from collections.abc import Sequence

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 5), (1, 0)),
        ((5, 7), (1, 0)),
        ((32, 64), (1, 0)),
        ((3, 17, 33), (0, 2, 1)),
        ((2, 9, 4, 40), (0, 2, 3, 1)),
        ((2, 4, 20, 16), (0, 3, 1, 2)),
        ((33, 2, 18), (2, 1, 0)),
    ],
)
def test_transposes_move_every_bit(isa: str, shape: tuple[int, ...], axes: Sequence[int], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal(shape).astype(dtype), rng.standard_normal([shape[axis] for axis in axes]).astype(dtype)
    x.flat[:5] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45])
    with nn.context_scope(nn.Context(["cpu:float" if dtype == "float32" else "cpu:double"])):
        leaf = nn.Variable.from_numpy_array(x, need_grad=True)
        y = F.transpose(leaf, axes)
        leaf.grad.zero()
        before = nn.fallback_report()
        y.forward()
        value = y.d.copy()
        y.backward(dy)
        assert nn.fallback_report() == before
    bits = np.dtype(f"i{x.itemsize}")
    np.testing.assert_array_equal(value.view(bits), np.ascontiguousarray(np.transpose(x, axes)).view(bits))
    np.testing.assert_array_equal(leaf.g, np.transpose(dy, np.argsort(axes)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((1, 5), (1, 0)), ((3, 300, 70), (0, 2, 1)), ((2, 9, 4, 40), (0, 2, 3, 1)), ((2, 3, 5000), (0, 2, 1))]
)
def test_transposes_beside_element_wise_functions(shape: tuple[int, ...], axes: Sequence[int], dtype: str) -> None:
    """They run tile by tile together, wherever the plan puts their results."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    turned = np.transpose(x, axes)
    dy, back = rng.standard_normal(turned.shape).astype(dtype), np.argsort(axes)
    with nn.context_scope(nn.Context(["cpu:float" if dtype == "float32" else "cpu:double"])):
        leaf, other = nn.Variable.from_numpy_array(x, need_grad=True), nn.Variable.from_numpy_array(dy)
        cases = [
            (F.transpose(leaf, axes) * 2, 2 * turned, np.transpose(2 * dy, back)),
            (F.transpose(leaf * 2, axes), 2 * turned, 2 * np.transpose(dy, back)),
            (F.transpose(leaf * 2, axes) + other, 2 * turned + dy, 2 * np.transpose(dy, back)),
            (F.transpose(F.transpose(-leaf, axes) * 2, back) - leaf, -3 * x, None),
            (F.relu(F.transpose(F.relu(leaf), axes)) * other, np.maximum(turned, 0) * dy, None),
        ]
        for y, value, gradient in cases:
            for _ in range(3):  # at once, and as a plan
                leaf.grad.zero()
                y.forward(clear_no_need_grad=True)
                np.testing.assert_array_equal(y.d, value)
                y.backward(dy if y.shape == dy.shape else x, clear_buffer=True)
                if gradient is not None:
                    np.testing.assert_array_equal(leaf.g, gradient)
            before = [v.d.copy() for v in (leaf, other)]
            y.forward(clear_buffer=True)
            np.testing.assert_array_equal(y.d, value)
            for v, held in zip((leaf, other), before, strict=True):
                np.testing.assert_array_equal(v.d, held)
