"""The ResNet-18 of the workloads in JAX, images channels-last."""

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.peers.jax_training import batch_normalization, convolution, normalization, weights
from benchmarks.workloads.resnet18_train import CLASSES, STAGES

#: (inputs, maps, stride) of each block
BLOCKS = [
    (STAGES[max(i - 1, 0)] if j == 0 else maps, maps, 2 if i > 0 and j == 0 else 1)
    for i, maps in enumerate(STAGES)
    for j in range(2)
]


def start():
    """Parameters and running statistics: of each convolution in the order of use, then of the classifier."""
    shapes = [(7, 7, 3, STAGES[0])]
    for inputs, maps, _ in BLOCKS:
        shapes += [(1, 1, inputs, maps)] * (inputs != maps) + [(3, 3, inputs, maps), (3, 3, maps, maps)]
    rng = np.random.default_rng(0)
    norms = [normalization(shape[-1]) for shape in shapes]
    layers = [(weights(rng, *shape), norm) for shape, (norm, _) in zip(shapes, norms, strict=True)]
    return (layers, (weights(rng, STAGES[-1], CLASSES), jnp.zeros(CLASSES))), [running for _, running in norms]


def apply(parameters, statistics, x, batch_stat):
    """Class scores (B, 1000) of images (B, H, W, 3), and the new running statistics."""
    layers, (last_w, last_b) = parameters
    rest, new = iter(zip(layers, statistics, strict=True)), []

    def convolved(x, stride):
        (w, norm), old = next(rest)
        y, running = batch_normalization(convolution(x, w, stride), norm, old, batch_stat)
        new.append(running)
        return y

    h = jax.nn.relu(convolved(x, 2))
    around = [(0, 0), (1, 1), (1, 1), (0, 0)]
    h = jax.lax.reduce_window(h, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), around)
    for inputs, maps, stride in BLOCKS:
        shortcut = h if inputs == maps else convolved(h, stride)
        h = jax.nn.relu(convolved(h, stride))
        h = jax.nn.relu(convolved(h, 1) + shortcut)
    return h.mean((1, 2)) @ last_w + last_b, new
