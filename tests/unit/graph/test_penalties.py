"""Gradients inside of a loss, through what discriminators compute, against differences in float64."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


def discriminator(x, w, v):
    """Return a convolution, the standard deviation over the batch as one more map, and another convolution."""
    h = F.leaky_relu(F.convolution(x, w, pad=(1, 1)) * 0.3, 0.2) * np.sqrt(2)
    groups = F.reshape(h, (2, -1, 1, *h.shape[1:]))
    spread = F.mean((groups - F.mean(groups, axis=0, keepdims=True)) ** 2.0, axis=0, keepdims=True)
    spread = F.mean((spread + 1e-8) ** 0.5, axis=(2, 3, 4, 5), keepdims=True)
    shown = F.reshape(F.broadcast(spread, (2, spread.shape[1], 1, 1, *h.shape[2:])), (h.shape[0], 1, *h.shape[2:]))
    return F.sum(F.tanh(F.convolution(F.concatenate(h, shown, axis=1), v, pad=(1, 1))), axis=(1, 2, 3))


@pytest.mark.parametrize("n_samples", [2, 4])
def test_a_gradient_and_its_penalty_agree_with_differences(n_samples):
    rng = np.random.default_rng(n_samples)
    with nn.context_scope(nn.Context(["reference:double"])):
        x = nn.Variable.from_numpy_array(rng.normal(size=(n_samples, 3, 4, 4)), need_grad=True)
        w = nn.Variable.from_numpy_array(rng.normal(size=(5, 3, 3, 3)), need_grad=True)
        v = nn.Variable.from_numpy_array(rng.normal(size=(2, 6, 3, 3)), need_grad=True)
        y = F.sum(discriminator(x, w, v))
        (dx,) = nn.grad([y], [x])
        penalty = F.sum(dx**2)
        for variable in (x, w, v):
            variable.grad.zero()
        penalty.forward()
        penalty.backward()
        require_slope(y, x, dx.d)
        for variable in (x, w, v):
            require_slope(penalty, variable, variable.g)


def require_slope(value, variable, gradient):
    """Check a gradient against a central difference in a random direction."""
    old, gradient = variable.d.copy(), gradient.copy()
    way = np.random.default_rng(0).normal(size=old.shape)
    values = []
    for sign in (1, -1):
        variable.d = old + sign * 1e-6 * way
        value.forward()
        values.append(value.d.item())
    variable.d = old
    np.testing.assert_allclose((values[0] - values[1]) / 2e-6, (gradient * way).sum(), rtol=1e-5)
