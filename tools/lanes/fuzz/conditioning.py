"""Whether a function carries rounding errors far where it is used: programs are made of uses where it does not.

A normalization of constant channels divides rounding errors by the root of `eps`; ``ceil`` of a whole number depends on
the last bit. In such places no backend can be right or wrong, and a fuzzer that meets many of them needs tolerances
so wide that it no longer sees faults.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from nn_core.engine.graph.node import Node, Storage
from nn_core.errors import NNCoreError

from .noise import PRECISIONS, Noise, shaken
from .oracle import gradients_of, key_of, run_kernel
from .program import Array

#: The relative size of the noise.
NOISE: Final = PRECISIONS["float32"].noise
#: How many times larger a relative error may become, as a part of the largest result.
AMPLIFICATION: Final = 40.0
#: The same for a single element: below it, most of its digits were lost by cancellation.
VANISHING: Final = 1500.0
#: The error of a kernel in float32, as a part of the largest result: some units in the last place.
SINGLE: Final = 5e-6


def amplifies(node: Node, values: Mapping[Storage, Array], after: Mapping[Storage, Array]) -> bool:
    """Return whether a small change of the inputs, or computing in float32, changes values or gradients much.

    `values` are those before the function has run, `after` those afterwards.
    """
    if node.spec.has("view"):
        return False
    inputs = [None if value is None else values[value.storage] for value in node.inputs]
    if not any(array is not None and array.dtype.kind == "f" and array.size for array in inputs):
        return False
    noise = Noise(change=shaken(3))
    nearby = [None if array is None else noise.disturbed(array, node) for array in inputs]
    try:
        results = run_kernel(node, nearby, key_of(node, 0))[: len(node.storages)]
        single = run_kernel(node, inputs, key_of(node, 0), "float32")[: len(node.storages)]
    except NNCoreError:
        return True
    exact = [after[storage] for storage in node.storages]
    if any(_far(a, b, AMPLIFICATION * NOISE, VANISHING * NOISE) for a, b in zip(exact, results, strict=True)):
        return True
    if any(_far(a, b, SINGLE, np.inf) for a, b in zip(exact, single, strict=True)):
        return True
    return node.need_grad and node.spec.differentiable and _steep(node, (inputs, exact), (nearby, results))


def _steep(node: Node, here: tuple[Sequence[Any], Sequence[Any]], there: tuple[Sequence[Any], Sequence[Any]]) -> bool:
    n_visible = len(here[1]) - sum(entry.aux for entry in node.spec.outputs)
    rng = np.random.default_rng(1)
    arriving = [rng.uniform(0.5, 1.5, np.shape(y)) * rng.choice([-1, 1], np.shape(y)) for y in here[1][:n_visible]]
    first, second = (gradients_of(node, inputs, outputs, arriving) for inputs, outputs in (here, there))
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(first, second, strict=True) if a is not None]
    return any(_far(a, b, AMPLIFICATION * NOISE, np.inf) for a, b in pairs)


def _far(exact: Array, other: Array, limit: float, limit_of_elements: float) -> bool:
    """Return whether arrays differ by more than parts of the largest magnitude, or of that of each element."""
    if exact.dtype.kind != "f":
        return not np.array_equal(exact, other)
    if not exact.size:
        return False
    with np.errstate(invalid="ignore"):
        magnitude, change = np.abs(exact), np.abs(exact - other)
        near = change <= limit * np.max(magnitude) + 1e-30
        return not np.all(near & ((change <= limit_of_elements * magnitude) | (limit_of_elements == np.inf)))
