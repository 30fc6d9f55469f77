"""The cost of collectives, compared with copying memory, on the ranks that the program is started with.

    nn-core launch -n 2 -m benchmarks.communication
    nn-core launch -n 2 -m benchmarks.communication --mb 10

Small sums are set against those of MPI itself, large ones against a copy of the same array by all ranks at once.
"""

import argparse
import statistics
import time

import numpy as np

import nn_core as nn
import nn_core.communicators as C

ROUNDS = 7


def seconds(comm, call, repeats):
    """Median over rounds of the time of one call, which all ranks begin together."""
    call()
    rounds = []
    for _ in range(ROUNDS):
        comm.barrier()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        rounds.append((time.perf_counter() - start) / repeats)
    return statistics.median(rounds)


def rows(comm, n_bytes):
    """Names, times in microseconds, and what each is set against."""
    small, flat = np.ones(1, np.float32), np.ones(n_bytes // 4, np.float32)
    target = np.empty_like(flat)
    array = nn.NdArray.from_numpy_array(small)
    circle = comm.circle("benchmark", "world")
    waiting = circle.wait
    yield "4 B: engine", seconds(comm, lambda: waiting(comm.engine.all_reduce(small, "sum")), 200), None
    yield "4 B: Communicator.all_reduce", seconds(comm, lambda: comm.all_reduce(array, inplace=True), 200), "4 B: engine"
    yield "copy", seconds(comm, lambda: np.copyto(target, flat), 1), None
    yield "engine", seconds(comm, lambda: waiting(comm.engine.all_reduce(flat, "sum")), 1), "copy"
    tree, scratch = C.tree.tree_all_reduce, {}
    exchanged = seconds(comm, lambda: tree(comm.engine, [flat], comm.size, waiting, None, scratch), 1)
    yield "fixed order", exchanged, "engine"


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=100, help="size of the large array")
    options = parser.parse_args()
    comm = C.MultiProcessCommunicator(nn.Context(), timeout_s=60)
    comm.init()
    found = {}
    for name, time_s, against in rows(comm, int(options.mb * 1e6)):
        found[name] = time_s
        ratio = f"{time_s / found[against]:8.2f} x {against}" if against else ""
        if comm.rank == 0:
            print(f"{name:30}{1e6 * time_s:12.1f} us{ratio}", flush=True)


if __name__ == "__main__":
    main()
