"""The source of the numbers that seeded functions start from: one seed for the process, one counter per draw."""

import os
import threading
from collections.abc import Iterable, Sequence

import numpy as np

from nn_core.engine.graph.node import Node, Value, forward_order
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import ArgumentError

_lock = fork_safe(threading.Lock())


class FunctionSeed:
    """Seed and counter of the random functions that have no seed of their own."""

    def __init__(self) -> None:
        self.seed = int.from_bytes(os.urandom(7), "little")
        self.counter = 0

    def set(self, seed: int) -> None:
        """Start the sequence of `seed`: the same program then draws the same numbers."""
        with _lock:
            self.seed = int(seed)
            self.counter = 0

    def get(self) -> tuple[int, int]:
        """Seed and counter of the latest draw."""
        with _lock:
            return self.seed, self.counter

    def restore(self, seed: int, counter: int) -> None:
        """Continue the sequence of `seed` after the draw called `counter`."""
        with _lock:
            self.seed = int(seed)
            self.counter = int(counter)

    def draw(self) -> tuple[int, int]:
        """Seed and counter for one run of one function."""
        with _lock:
            # under the lock: two runs with one key would draw the same numbers
            self.counter += 1
            return self.seed, self.counter


FUNCTION_SEED = FunctionSeed()


def set_function_seed(seed_value: int) -> None:
    """Make the random functions without a seed of their own start the sequence of `seed_value`."""
    FUNCTION_SEED.set(seed_value)


def keys_of(roots: Iterable[Value]) -> list[tuple[int, int]]:
    """Seed and counter of each random function that `roots` depend on, in forward order; (0, 0) before its first run."""
    return [(0, 0) if node.key is None else (int(node.key[0]), int(node.key[1])) for node in _random_nodes(roots)]


def require_keys(roots: Iterable[Value], keys: Sequence[Sequence[int]]) -> None:
    """Refuse keys that are not those of as many random functions as `roots` depend on.

    Raises:
        ArgumentError: when their numbers differ.
    """
    count = len(_random_nodes(roots))
    if len(keys) != count:
        raise ArgumentError(f"set_state: there must be a key for each of the {count} random functions, got {len(keys)}")


def set_keys(roots: Iterable[Value], keys: Sequence[Sequence[int]]) -> None:
    """Set what `keys_of` gave, in place: plans are bound to the arrays of the keys."""
    for node, (seed, counter) in zip(_random_nodes(roots), keys, strict=True):
        if node.key is None:
            node.key = np.zeros(2, np.uint64)
        node.key[:] = (seed, counter)


def _random_nodes(roots: Iterable[Value]) -> list[Node]:
    return [node for node in forward_order(roots) if node.spec.has("seeded")]
