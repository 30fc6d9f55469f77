"""The workloads in JAX, each one jitted function; images are channels-last, as XLA prefers them on CPUs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nn_core.cli.bench.workloads import DEMO_CLASSES, DEMO_MAPS, DROPOUT, LEARNING_RATE, Programs, Sizes, Step


def programs(package: str, sizes: Sizes) -> Programs:
    """XLA takes the number of threads from the CPUs that the process may use."""

    def matmul() -> Step:
        return _jitted(jnp.matmul, *sizes.matrices())

    def convolution() -> Step:
        x, w = sizes.convolution()
        return _jitted(_convolution, x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0))

    def inference() -> Step:
        images, _ = sizes.digits()

        def predict(x: Any, parameters: Any, statistics: Any) -> Any:
            return jax.nn.softmax(_network(x, parameters, statistics)[0])

        return _jitted(predict, images.transpose(0, 2, 3, 1), *_start())

    def training() -> Step:
        images, labels = sizes.digits()
        x, t = jnp.asarray(images.transpose(0, 2, 3, 1)), jnp.asarray(labels)
        parameters, statistics = _start()
        moments = [jax.tree.map(jnp.zeros_like, parameters) for _ in range(2)]
        state = [(parameters, statistics, moments, jnp.zeros(()), jax.random.key(0), jnp.zeros(()))]
        compiled = jax.jit(lambda old: _train(old, x, t), donate_argnums=0)

        def step() -> object:
            state[0] = jax.block_until_ready(compiled(state[0]))
            return state[0][-1]

        return step

    return {"matmul": matmul, "convolution": convolution, "training": training, "inference": inference}


def _jitted(function: Any, *values: Any) -> Step:
    compiled, arrays = jax.jit(function), jax.tree.map(jnp.asarray, values)
    return lambda: jax.block_until_ready(compiled(*arrays))


def _convolution(x: Any, w: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def _start() -> tuple[Any, Any]:
    """Parameters and running statistics of the network."""
    rng, inputs, layers, statistics = np.random.default_rng(0), 1, [], []
    for maps in DEMO_MAPS:
        w = rng.standard_normal((3, 3, inputs, maps)) / np.sqrt(9 * inputs)
        layers.append((jnp.asarray(w, jnp.float32), jnp.ones(maps), jnp.zeros(maps)))
        statistics.append((jnp.zeros(maps), jnp.ones(maps)))
        inputs = maps
    w = rng.standard_normal((inputs * 4, DEMO_CLASSES)) / np.sqrt(inputs * 4)
    return (layers, (jnp.asarray(w, jnp.float32), jnp.zeros(DEMO_CLASSES))), statistics


def _network(h: Any, parameters: Any, statistics: Any, key: Any = None) -> tuple[Any, Any]:
    """Scores (B, 10) and new running statistics; with a key for dropout as in training."""
    layers, (last_w, last_b) = parameters
    updated = []
    for i, ((w, gamma, beta), running) in enumerate(zip(layers, statistics, strict=True)):
        h = _convolution(h, w)
        mean, variance = running if key is None else (h.mean((0, 1, 2)), h.var((0, 1, 2)))
        updated.append(jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, running, (mean, variance)))
        h = jax.nn.relu((h - mean) * (jax.lax.rsqrt(variance + 1e-5) * gamma) + beta)
        if i > 0:
            h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = h.reshape(len(h), -1)
    if key is not None:
        h = jnp.where(jax.random.bernoulli(key, 1 - DROPOUT, h.shape), h / (1 - DROPOUT), 0)
    return h @ last_w + last_b, updated


def _train(state: Any, x: Any, t: Any) -> Any:
    """One step of Adam."""
    parameters, statistics, (m, v), count, key, _ = state
    key, drawn = jax.random.split(key)

    def loss_of(parameters: Any) -> tuple[Any, Any]:
        scores, updated = _network(x, parameters, statistics, drawn)
        return -jnp.take_along_axis(jax.nn.log_softmax(scores), t, 1).mean(), updated

    (loss, statistics), grads = jax.value_and_grad(loss_of, has_aux=True)(parameters)
    count = count + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    rate = LEARNING_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    parameters = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), parameters, m, v)
    return parameters, statistics, [m, v], count, key, loss
