"""Gradients that a kernel adds to what is there: weights that are shared, inputs that are read twice, passes that add up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext import ArrayDesc
from nn_ext_cpu import _native


def normal(*shape: int) -> np.ndarray[Any, Any]:
    """Random numbers that do not depend on the order of tests."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def shared_weights(x: nn.Variable, w: nn.Variable, b: nn.Variable) -> nn.Variable:
    """Three layers with one weight."""
    for _ in range(3):
        x = F.tanh(F.affine(x, w, b))
    return x


def read_twice(x: nn.Variable, w: nn.Variable, b: nn.Variable) -> nn.Variable:
    """Two layers that read one intermediate value, beside a way around them."""
    h = F.tanh(x)
    return h + F.affine(h, w, b) * F.affine(h, w)


def both_operands(x: nn.Variable, w: nn.Variable, b: nn.Variable) -> nn.Variable:
    """A matrix that is multiplied with itself."""
    return F.affine(F.affine(w, w, b), w) + F.sum(x)


@pytest.mark.parametrize("function", [shared_weights, read_twice, both_operands])
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("auto", [False, True])
def test_gradients_add_up(function: Callable[..., nn.Variable], passes: int, auto: bool) -> None:
    arrays, start = [normal(40, 48), normal(48, 48), normal(48)], normal(48 if function is both_operands else 40, 48)
    results = []
    for backend in ("cpu:float", "reference:double"):
        with nn.context_scope(nn.Context([backend])):
            inputs = [nn.Variable.from_numpy_array(array * 0.1, need_grad=True) for array in arrays]
            for x in inputs:
                x.grad.zero()
            for _ in range(passes):
                with nn.auto_forward(auto):
                    y = function(*inputs)
                if not auto:
                    y.forward(clear_no_need_grad=True)
                y.backward(start, clear_buffer=True)
            results.append([x.g.copy() for x in inputs])
    for got, true in zip(*results, strict=True):
        np.testing.assert_allclose(got, true, rtol=1e-4, atol=1e-5 * np.abs(true).max())


def test_an_operation_that_cannot_add_says_so() -> None:
    desc = ArrayDesc((3, 4), "float32")
    copy = _native.prepare("pointwise", [desc, desc], program=[("copy", 1, [0], [])])
    assert copy.accumulating([1]) is None
    with pytest.raises(ValueError, match="places must be those of arrays of the operation, got 2"):
        copy.accumulating([2])
