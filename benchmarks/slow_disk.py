"""Measure how much slower steps of training are while a checkpoint is written to a slow disk.

    OMP_NUM_THREADS=1 python -m benchmarks.slow_disk
    OMP_NUM_THREADS=1 python -m benchmarks.slow_disk --mb-per-s 10 --synchronous

A perceptron is trained with Adam; parameters and states are about 60 MB. Blocks of as many steps take turns: at the beginning
of every other one a checkpoint is saved to a file whose writes sleep, as those of a slow disk do, and which is complete before
the block ends. The cost is the time of a block with a checkpoint over that of its neighbour without one: by the wall clock,
which other programs disturb, and by the processor time of the thread that trains, which they do not.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import contextmanager

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.files import formats
from nn_core.training import Checkpoint, Trainer, Updater, every
from nn_core.utils.data_iterator import data_iterator_simple

_PIECE = 1 << 20
_WIDTH, _BATCH = 1536, 64


class Throttled:
    """A file that takes so many bytes a second.

    Args:
        file: The file.
        bytes_per_s: How many.
    """

    def __init__(self, file, bytes_per_s):
        self._file = file
        self._rate = bytes_per_s
        self.n_bytes = 0

    def write(self, content):
        """Write in pieces, with a pause after each."""
        view = memoryview(content).cast("B")
        for start in range(0, len(view), _PIECE):
            piece = view[start : start + _PIECE]
            self._file.write(piece)
            self.n_bytes += len(piece)
            time.sleep(len(piece) / self._rate)
        return len(view)

    def __getattr__(self, name):
        return getattr(self._file, name)


@contextmanager
def slow_disk(bytes_per_s):
    """Let all files of nn_core be written slowly; yields their sizes and the seconds that they took."""
    before, seen = formats.atomic_writer, []

    @contextmanager
    def writer(target, n_bytes=0):
        start = time.perf_counter()
        with before(target, n_bytes) as file:
            throttled = Throttled(file, bytes_per_s)
            yield throttled
        seen.append((throttled.n_bytes, time.perf_counter() - start))

    formats.atomic_writer = writer
    try:
        yield seen
    finally:
        formats.atomic_writer = before


class Clocks:
    """The times of blocks of steps, saves included: an extension that is called last."""

    phase = "save"
    every = every(1)

    def __init__(self, length):
        self.length = length
        self.times = []
        self._last = None

    def __call__(self, trainer):
        if trainer.iteration % self.length == 0:
            now = np.array([time.perf_counter(), time.thread_time()])
            if self._last is not None:
                self.times.append(now - self._last)
            self._last = now


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb-per-s", type=float, default=20, help="what the disk takes")
    parser.add_argument("--steps", type=int, default=150, help="steps of a block")
    parser.add_argument("--blocks", type=int, default=8, help="pairs of blocks")
    parser.add_argument("--synchronous", action="store_true", help="wait for each file")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    images, labels = rng.standard_normal((512, _WIDTH), np.float32), rng.integers(0, 10, (512, 1))
    x, t = nn.Variable((_BATCH, _WIDTH)), nn.Variable((_BATCH, 1))
    h = F.relu(PF.affine(F.relu(PF.affine(x, _WIDTH, name="a")), _WIDTH, name="b"))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 10, name="c"), t))
    solver = S.Adam()
    solver.set_parameters(nn.get_parameters())
    steps, clocks = options.steps, Clocks(options.steps)
    with (
        tempfile.TemporaryDirectory() as folder,
        slow_disk(options.mb_per_s * 1e6) as seen,
        data_iterator_simple(lambda i: (images[i], labels[i]), 512, _BATCH) as data,
    ):
        saving = Checkpoint(keep=1, asynchronous=not options.synchronous)
        trainer = Trainer(Updater(data, [x, t], loss, solver), every(steps * (2 * options.blocks + 1)), folder)
        # the clocks are read before a save, so that it belongs to the block that begins
        trainer.extend(clocks)
        trainer.extend(saving, every=lambda trainer: trainer.iteration % (2 * steps) == steps)
        trainer.run()
    pairs = np.array(clocks.times[: 2 * options.blocks]).reshape(-1, 2, 2)
    n_bytes, seconds = (statistics.median(row[place] for row in seen) for place in range(2))
    print(
        f"{len(pairs)} pairs of blocks of {steps} steps; {n_bytes / 1e6:.0f} MB at {options.mb_per_s:g} MB/s, {seconds:.1f} s"
    )
    for name, column in (("wall clock", 0), ("processor time of the thread that trains", 1)):
        costs = pairs[:, 0, column] / pairs[:, 1, column] - 1
        without = statistics.median(pairs[:, 1, column])
        print(f"{name}: {100 * statistics.median(costs):.1f} % of a block of {without:.1f} s without a checkpoint")


if __name__ == "__main__":
    main()
