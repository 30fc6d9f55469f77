"""The source of the numbers that seeded functions start from: one seed for the process, one counter per draw."""

import os
import threading

_lock = threading.Lock()


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

    def draw(self) -> tuple[int, int]:
        """Seed and counter for one run of one function."""
        with _lock:
            self.counter += 1
            return self.seed, self.counter


FUNCTION_SEED = FunctionSeed()


def set_function_seed(seed_value: int) -> None:
    """Make the random functions without a seed of their own start the sequence of `seed_value`."""
    FUNCTION_SEED.set(seed_value)
