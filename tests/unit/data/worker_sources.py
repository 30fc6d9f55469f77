"""Functions that worker processes import."""

import json
import os
import random
import signal
import threading
import time

import numpy as np


def numbers(index):
    """A small sample."""
    return np.array([index]), index * 10


def images(index):
    """A sample that is large enough for shared memory."""
    return np.full((3, 64, 64), index, np.float32), index


def bad(index):
    """Samples 3 and 11 cannot be read."""
    if index in (3, 11):
        raise OwnError(index, "cannot be read")
    return np.array([index]), index * 10


def deadly(index):
    """Sample 2 ends the process."""
    if index == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return (index,)


def ragged(index):
    return (np.zeros(1 + index % 2),)


def careless(index):
    """Draws from the generators of the process."""
    return index, np.random.rand(), random.random()


def endless(index):
    signal.pause()


def augment(rng, x, y):
    return x + rng.random(), y


def mixed(rng, x, y):
    weight = rng.random()
    return weight * x + (1 - weight) * x[::-1], y


class OwnError(Exception):
    """Its constructor takes two arguments, and its pickle gives it one."""

    def __init__(self, index, text):
        super().__init__(f"sample {index} {text}")


def sequences(index):
    """A sequence and a grid whose lengths depend on the index, and the length."""
    length = 1 + index % 4
    return np.arange(length, dtype=np.int32), np.full((length, 2 * length), length, np.float32), length


def failing(rng, x, y):
    """A transformation that fails for the batches with an odd number in front."""
    if x.ravel()[0] % 2:
        raise OwnError(int(x.ravel()[0]), "an odd batch")
    return x, y


def failing_at_times(rng, x, y):
    """A transformation that fails for one batch of eight."""
    noise = rng.random()
    if noise < 0.125:
        raise OwnError(0, "an odd batch")
    return x + noise, y


def length_of(content):
    return len(content)


def label_of(content):
    return json.loads(content)["label"]


#: Ends the wait of `hanging` in threads of this process.
release = threading.Event()


def hanging(index):
    """Hang at sample 7."""
    if index == 7:
        release.wait(60)
    return np.array([index]), index


def hanging_batch(rng, x, y):
    if x.ravel()[0] == 2:
        release.wait(60)
    return x, y


def slow(index):
    time.sleep(0.1)
    return np.array([index]), index
