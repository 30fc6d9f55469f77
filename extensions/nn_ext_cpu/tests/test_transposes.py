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
