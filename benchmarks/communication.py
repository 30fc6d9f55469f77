"""The cost of collectives beside copies of memory and MPI itself, and a model of the step time that is made of it.

    nn-core launch -n 2 -m benchmarks.communication
    nn-core launch -n 2 -m benchmarks.communication --mb 10 --markdown
    nn-core launch -n 2 -m benchmarks.communication --small

What is compared runs in turns, so that both sides see the same load of the machine, and the ratios of the turns count, not the
times. Times include waiting for other programs on the same cores.
"""

import argparse
import statistics
import time
from typing import NamedTuple

import numpy as np

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

SMALL = (4, 1024, 16384, 65536, 262144)
#: Parameters of ResNet-50, and bytes per second that are left of 1 Gbit/s after headers (taken, not measured).
RESNET50, BYTES_OF_GBIT = 25_557_032, 0.11e9


class Row(NamedTuple):
    """A measurement: median and smallest time, and the median ratio of the turns to those of another row."""

    name: str
    time_s: float
    best_s: float
    against: str
    ratio: float


def in_turns(comm, calls, rounds, repeats):
    """Rows of `calls`, (name, call, name to compare with), which all ranks make together, one after the other."""
    times = {name: [] for name, _, _ in calls}
    for turn in range(rounds + 1):
        for name, call, _ in calls:
            comm.barrier()
            start = time.perf_counter()
            for _ in range(repeats):
                call()
            if turn:  # the first one touches fresh memory
                times[name].append((time.perf_counter() - start) / repeats)
    rows = []
    for name, _, against in calls:
        ratios = [own / other for own, other in zip(times[name], times[against or name], strict=True)]
        rows.append(Row(name, statistics.median(times[name]), min(times[name]), against, statistics.median(ratios)))
    return rows


def small_sums(comm, rounds, repeats=300):
    """Return sums of few bytes: the library's own, and the communicator's, which agrees on what is summed first."""
    from mpi4py import MPI

    world, rows = MPI.COMM_WORLD.Dup(), []
    for n_bytes in SMALL:
        raw = np.zeros(n_bytes // 4, np.float32)
        array = nn.NdArray.from_numpy_array(raw.copy())
        own = f"MPI_Allreduce, {n_bytes} B"
        calls = [
            (own, lambda raw=raw: world.Allreduce(MPI.IN_PLACE, raw, MPI.SUM), ""),
            (f"all_reduce, {n_bytes} B", lambda array=array: comm.all_reduce(array, inplace=True), own),
        ]
        rows += in_turns(comm, calls, rounds, repeats if n_bytes < 100_000 else max(repeats // 10, 1))
    return rows


def large_sums(comm, n_bytes, rounds):
    """Return sums of one large array: a copy by all ranks at once, the library's sum, and the one in a fixed order."""
    from mpi4py import MPI

    world, flat = MPI.COMM_WORLD.Dup(), np.zeros(n_bytes // 4, np.float32)
    target, scratch, waiting = np.empty_like(flat), {}, comm.circle("benchmark", "world").wait
    tree = C.tree.tree_all_reduce
    calls = [
        ("copy", lambda: np.copyto(target, flat), ""),
        ("MPI_Allreduce", lambda: world.Allreduce(MPI.IN_PLACE, flat, MPI.SUM), "copy"),
        ("fixed order", lambda: tree(comm.engine, [flat], comm.size, waiting, None, scratch), "copy"),
        ("fixed order, beside MPI", lambda: tree(comm.engine, [flat], comm.size, waiting, None, scratch), "MPI_Allreduce"),
    ]
    return in_turns(comm, calls, rounds, 1)


def steps(comm, rounds):
    """Return a step of training of a perceptron: a batch on one rank, the same batch shared, and the sum of its gradients."""
    batch, sizes = 256, (784, 1024, 1024, 10)

    def network(n_samples):
        x, t = nn.Variable((n_samples, sizes[0])), nn.Variable((n_samples, 1))
        x.d, t.d, h = 0.1, 0, x
        for number, size in enumerate(sizes[1:]):
            h = PF.affine(F.relu(h) if number else h, size, name=f"layer{number}")
        return F.mean(F.softmax_cross_entropy(h, t))

    whole, part = network(batch), network(batch // comm.size)
    parameters = nn.get_parameters()
    solver = S.Momentum(1e-3)
    solver.set_parameters(parameters)
    buckets = C.Buckets(comm, parameters, loss=part)

    def step(loss, share):
        loss.forward(clear_no_need_grad=True)
        buckets.zero()
        loss.backward(clear_buffer=True)
        if share:
            buckets.all_reduce(division=True)
        solver.update()

    calls = [
        ("whole batch, one rank works", lambda: step(whole, share=False) if comm.rank == 0 else None, ""),
        ("part of the batch, no sum", lambda: step(part, share=False), "whole batch, one rank works"),
        ("part of the batch and sum", lambda: step(part, share=True), "whole batch, one rank works"),
        ("sum of the gradients", lambda: buckets.all_reduce(division=True), "part of the batch, no sum"),
    ]
    return in_turns(comm, calls, rounds, 3), 4 * sum(v.size for v in parameters.values())


def exchange_s(n_bytes, n_ranks, bytes_per_s):
    """Seconds of a sum over ranks that send and receive at once: each moves 2 (W - 1) / W of the array."""
    return 2 * (n_ranks - 1) / n_ranks * n_bytes / bytes_per_s


def model(comm, large, small, stepped, n_bytes, n_gradient_bytes):
    """Lines about the model: its constants, what it says of the measured step, and of ResNet-50 on networks."""
    times = {row.name: row.time_s for row in [*large, *small, *stepped]}
    bandwidth = 2 * (comm.size - 1) / comm.size * n_bytes / times["fixed order"]
    latency = times[f"all_reduce, {SMALL[0]} B"]
    told = times["part of the batch, no sum"] + latency + exchange_s(n_gradient_bytes, comm.size, bandwidth)
    seen = times["part of the batch and sum"]
    yield f"bandwidth {bandwidth / 1e9:.2f} GB/s, latency {1e6 * latency:.1f} us"
    yield f"step with {n_gradient_bytes / 1e6:.1f} MB of gradients: told {1e3 * told:.1f} ms, measured {1e3 * seen:.1f} ms"


def on_paper():
    """Rows of the cost of the gradients of ResNet-50, in milliseconds, which nobody has measured."""
    for gbit in (10, 100):
        for n_ranks in (2, 4, 8):
            values = [1e3 * exchange_s(width * RESNET50, n_ranks, gbit * BYTES_OF_GBIT) for width in (4, 2)]
            yield gbit, n_ranks, *values, values[0] * n_ranks / (n_ranks - 1)


def print_rows(rows, markdown):
    """Print measurements, and return the format of a row."""
    form = "| {} | {} | {} | {} |" if markdown else "{:32} {:>12} {:>12} {}"
    for row in rows:
        ratio = f"{row.ratio:.2f} x {row.against}" if row.against else ""
        print(form.format(row.name, f"{1e6 * row.time_s:.1f} us", f"{1e6 * row.best_s:.1f} us", ratio))
    return form


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=float, default=100, help="size of the large array")
    parser.add_argument("--rounds", type=int, default=15, help="number of turns")
    parser.add_argument("--small", action="store_true", help="small sums alone, in many short turns, for a busy machine")
    parser.add_argument("--markdown", action="store_true", help="print tables for benchmarks/results")
    options = parser.parse_args()
    comm = C.MultiProcessCommunicator(nn.Context(), timeout_s=120)
    comm.init()
    n_bytes = int(options.mb * 1e6) // 4 * 4
    if options.small:
        rows = small_sums(comm, 20 * options.rounds, 15)
        if not comm.rank:
            print_rows(rows, options.markdown)
        return
    small, large = small_sums(comm, options.rounds), large_sums(comm, n_bytes, options.rounds)
    stepped, n_gradient_bytes = steps(comm, options.rounds)
    if comm.rank:
        return
    form = print_rows([*small, *large, *stepped], options.markdown)
    for line in model(comm, large, small, stepped, n_bytes, n_gradient_bytes):
        print(line)
    for gbit, n_ranks, single, half, needed in on_paper():
        times = [f"{value:.0f} ms" for value in (single, half, needed)]
        print(form.format(f"ResNet-50, {gbit} Gbit/s, {n_ranks} ranks", *times))


if __name__ == "__main__":
    main()
