"""Training steps in JAX: gradients and update together in one jitted function, whose old state is given up.

A rule is ``(start, update)``: ``start(parameters)`` makes its state, ``update(parameters, grads, state)`` gives the new
parameters and the new state.
"""

import jax
import jax.numpy as jnp
import numpy as np


def sgd(rate):
    """Plain gradient descent."""
    return lambda _: (), lambda parameters, grads, _: (jax.tree.map(lambda p, g: p - rate * g, parameters, grads), ())


def momentum(rate, factor):
    """Gradient descent with momentum."""

    def update(parameters, grads, velocity):
        velocity = jax.tree.map(lambda v, g: factor * v + g, velocity, grads)
        return jax.tree.map(lambda p, v: p - rate * v, parameters, velocity), velocity

    return lambda parameters: jax.tree.map(jnp.zeros_like, parameters), update


def adam(rate):
    """Adam with the usual settings."""

    def start(parameters):
        return jnp.zeros(()), *(jax.tree.map(jnp.zeros_like, parameters) for _ in range(2))

    def update(parameters, grads, state):
        t, m, v = state
        t = t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        scale = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return jax.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), parameters, m, v), (t, m, v)

    return start, update


def training_step(loss_of, parameters, rule, statistics=()):
    """Return a step that trains ``loss_of(parameters, statistics) -> (loss, new statistics)`` and returns the loss."""
    start, update = rule

    def train(state):
        parameters, statistics, of_rule, _ = state
        (loss, statistics), grads = jax.value_and_grad(loss_of, has_aux=True)(parameters, statistics)
        parameters, of_rule = update(parameters, grads, of_rule)
        return parameters, statistics, of_rule, loss

    compiled = jax.jit(train, donate_argnums=0)
    holder = [(parameters, statistics, start(parameters), jnp.zeros(()))]

    def step():
        holder[0] = jax.block_until_ready(compiled(holder[0]))
        return holder[0][-1]

    return step


def weights(rng, *shape):
    """Random weights for as many inputs as the product of all lengths but the last."""
    return jnp.asarray(rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1])), jnp.float32)


def convolution(x, w, stride=1):
    """Of images (N, H, W, C) with weights (KH, KW, C, M); padded so that stride 1 keeps the size."""
    pad = [(length // 2, length // 2) for length in w.shape[:2]]
    return jax.lax.conv_general_dilated(x, w, (stride, stride), pad, dimension_numbers=("NHWC", "HWIO", "NHWC"))


def normalization(maps):
    """Parameters and running statistics of a batch normalization."""
    return (jnp.ones(maps), jnp.zeros(maps)), (jnp.zeros(maps), jnp.ones(maps))


def batch_normalization(x, parameters, statistics, batch_stat=True):
    """Return the normalized x (N, H, W, C), and the new running statistics."""
    gamma, beta = parameters
    if not batch_stat:
        mean, variance = statistics
        return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * gamma) + beta, statistics
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    new = tuple(0.9 * old + 0.1 * now for old, now in zip(statistics, (mean, variance), strict=True))
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * gamma) + beta, new


def cross_entropy(scores, labels):
    """Mean over the batch; labels (N,)."""
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()
