"""Rate of single functions beside the peak of the machine: GFLOP/s of a large matrix product, GB/s of a large copy.

    python -m benchmarks.operators
    python -m benchmarks.operators convolution softmax

Bytes are those that a function cannot avoid: each input, output and gradient that it has to read or write, once; small
arrays may be faster than memory because they stay in cache. Where PyTorch is installed, "torch" is our time divided by
PyTorch's: below 1 we are faster ("view": PyTorch moves nothing, its gradients are views of the one it got). A row ends
with the functions that ran on a reference kernel for want of a native one.
"""

import argparse
import importlib
import importlib.util
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
from benchmarks.threads import threads

ROUNDS, SECONDS_A_ROUND = 5, 0.2


@dataclass(frozen=True)
class Row:
    """A function on inputs of these shapes; an integer type draws labels below `high`. `flops`: of the forward pass."""

    call: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    labels: dict[int, int] | None = None  # position of an input -> number of classes
    fixed: tuple[int, ...] = ()  # positions of inputs that are not trained, such as running statistics
    flops: float = 0.0


IMAGE = (16, 64, 56, 56)
ROWS = {
    "affine": Row(F.affine, ((1024, 1024), (1024, 1024), (1024,)), flops=2 * 1024**3),
    "batch_matmul": Row(F.batch_matmul, ((64, 128, 64), (64, 64, 128)), flops=2 * 64 * 128 * 64 * 128),
    "convolution 1x1": Row(F.convolution, (IMAGE, (64, 64, 1, 1)), flops=2 * math.prod(IMAGE) * 64),
    "convolution 3x3": Row(
        lambda x, w: F.convolution(x, w, pad=(1, 1)), (IMAGE, (64, 64, 3, 3)), flops=2 * math.prod(IMAGE) * 64 * 9
    ),
    "convolution depthwise": Row(
        lambda x, w: F.convolution(x, w, pad=(1, 1), group=64), (IMAGE, (64, 1, 3, 3)), flops=2 * math.prod(IMAGE) * 9
    ),
    "lstm": Row(
        lambda x, h, c, w: F.lstm(x, h, c, w)[0],
        ((20, 32, 128), (1, 1, 32, 256), (1, 1, 32, 256), (1, 4, 256, 384)),
        flops=2 * 20 * 32 * 4 * 256 * 384,
    ),
    "add2": Row(F.add2, (IMAGE, IMAGE)),
    "add2 broadcast": Row(F.add2, (IMAGE, (1, 64, 1, 1))),
    "tanh": Row(F.tanh, (IMAGE,)),
    "gelu": Row(F.gelu, (IMAGE,)),
    "relu": Row(F.relu, (IMAGE,)),
    "softmax": Row(lambda x: F.softmax(x, axis=1), ((4096, 1000),)),
    "softmax_cross_entropy": Row(F.softmax_cross_entropy, ((4096, 1000), (4096, 1)), {1: 1000}),
    "layer_normalization": Row(
        lambda x, b, g: F.layer_normalization(x, b, g, batch_axis=(0,)), ((4096, 1024), (1, 1024), (1, 1024))
    ),
    "group_normalization": Row(lambda x, b, g: F.group_normalization(x, b, g, 8), (IMAGE, (1, 64, 1, 1), (1, 64, 1, 1))),
    "batch_normalization": Row(F.batch_normalization, (IMAGE, *((1, 64, 1, 1),) * 4), fixed=(3, 4)),
    "max_pooling": Row(lambda x: F.max_pooling(x, (2, 2)), (IMAGE,)),
    "average_pooling": Row(lambda x: F.average_pooling(x, (2, 2)), (IMAGE,)),
    "sum": Row(lambda x: F.sum(x, axis=(0, 2, 3)), (IMAGE,)),
    "max": Row(lambda x: F.max(x, axis=1), ((4096, 1000),)),
    "transpose": Row(lambda x: F.transpose(x, (0, 2, 3, 1)), (IMAGE,)),
    "concatenate": Row(lambda x, y: F.concatenate(x, y, axis=1), (IMAGE, IMAGE)),
    "embed": Row(F.embed, ((8192,), (30000, 256)), {0: 30000}),
    "dropout": Row(F.dropout, (IMAGE,)),
    "prelu": Row(F.prelu, (IMAGE, (64,))),
    "where": Row(F.where, (IMAGE, IMAGE, IMAGE)),
    "cumsum": Row(lambda x: F.cumsum(x, axis=1), ((4096, 1000),)),
    "cumprod": Row(lambda x: F.cumprod(x, axis=1), ((4096, 1000),)),
    "tan": Row(F.tan, (IMAGE,)),
    "atan": Row(F.atan, (IMAGE,)),
    "pow_scalar": Row(lambda x: F.pow_scalar(x, 1.7), (IMAGE,)),
    "max_pooling 3x3": Row(lambda x: F.max_pooling(x, (3, 3), (2, 2), pad=(1, 1)), (IMAGE,)),
    "sort": Row(lambda x: F.sort(x, axis=1), ((4096, 1000),)),
    "top_k": Row(lambda x: F.top_k_data(x, 10), ((4096, 1000),)),
    "scatter_add": Row(lambda x, i, s: F.scatter_add(x, i, s, axis=1), ((4096, 1000), (4096, 500), (4096, 500)), {1: 1000}),
    "warp_by_grid": Row(F.warp_by_grid, ((4, 16, 64, 64), (4, 64, 64, 2))),
    "fft": Row(lambda x: F.fft(x, 1), ((512, 1024, 2),)),
    "stft": Row(lambda x: F.stft(x, 1024, 256, 1024)[0], ((8, 65536),)),
    "trilu": Row(F.trilu, ((64, 256, 256),)),
    "random_flip": Row(lambda x: F.random_flip(x, axes=(3,)), (IMAGE,)),
}


def seconds(step: Callable[[], object]) -> float:
    """Best of the rounds: the time of ``step()``."""
    step()
    start = time.perf_counter()
    step()
    repeats = max(1, int(SECONDS_A_ROUND / max(time.perf_counter() - start, 1e-7)))
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        rounds.append((time.perf_counter() - start) / repeats)
    return min(rounds)


def peak_gflops() -> float:
    """Of a large product of matrices, by NumPy or by the function `affine`, whichever is faster."""
    n = 2048
    a, b = (np.random.RandomState(k).rand(n, n).astype(np.float32) for k in range(2))
    x, w = nn.Variable(a.shape), nn.Variable(b.shape)
    x.d, w.d = a, b
    y = F.affine(x, w)
    return 2e-9 * n**3 / min(seconds(lambda: a @ b), seconds(y.forward))


def peak_gbytes() -> float:
    """Of copying 256 MB, one piece a thread; reading and writing count."""
    source = np.ones((threads(), 2**26 // threads()), np.float32)
    target = np.empty_like(source)
    with ThreadPoolExecutor(threads()) as pool:
        return 2e-9 * source.nbytes / seconds(lambda: list(pool.map(np.copyto, target, source)))


def variables(row: Row) -> list[nn.Variable]:
    """Return the inputs of a row; those that are neither labels nor fixed need a gradient."""
    rng, labels = np.random.RandomState(0), row.labels or {}
    inputs = []
    for position, shape in enumerate(row.shapes):
        x = nn.Variable(shape, need_grad=position not in labels and position not in row.fixed)
        x.d = rng.randint(0, labels[position], shape) if position in labels else rng.rand(*shape).astype(np.float32)
        inputs.append(x)
    return inputs


def megabytes(y: nn.Variable) -> tuple[float, float]:
    """Return the megabytes that the forward and the backward pass of the function of `y` have to move."""
    function = y.parent
    assert function is not None
    spec, inputs, outputs = function.node.spec, function.inputs, function.results
    read = [v for v, entry in zip(inputs, spec.inputs, strict=False) if entry.name in spec.backward.needs]
    read += [v for v, entry in zip(outputs, spec.outputs, strict=False) if entry.name in spec.backward.needs]
    written = [v for v in inputs if v.need_grad]
    return 4e-6 * sum(v.size for v in inputs + outputs), 4e-6 * sum(v.size for v in [*read, *outputs, *written])


def backward(y: nn.Variable, inputs: list[nn.Variable]) -> None:
    """Overwrite the gradients of the inputs."""
    for x in inputs:
        x.grad.zero()
    y.backward(None)


def ratio(ours: float, step: Callable[[], object]) -> str:
    """Our time divided by that of ``step()``."""
    found = ours / seconds(step)
    return "view" if found > 50 else f"{found:.2f}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", help="beginnings of the names of the rows to run")
    options = parser.parse_args()
    flops, gbytes = peak_gflops(), peak_gbytes()
    print(f"peak: {flops:.0f} GFLOP/s, {gbytes:.1f} GB/s")
    peer = importlib.import_module("benchmarks.peers.torch_operators") if importlib.util.find_spec("torch") else None
    print(f"{'':24s}{'forward':>22s}{'torch':>7s}{'backward':>22s}{'torch':>7s}   (of the peak)")
    for name, row in ROWS.items():
        if options.functions and not name.startswith(tuple(options.functions)):
            continue
        known = set(nn.fallback_report())
        inputs = variables(row)
        y = row.call(*inputs)
        y.grad.fill(1.0)
        times = seconds(y.forward), seconds(partial(backward, y, inputs))
        if row.flops:
            n_gradients = sum(x.size > 1e4 for x in inputs)
            rates = [1e-9 * row.flops / times[0], 1e-9 * n_gradients * row.flops / times[1]]
        else:
            rates = [1e-3 * size / took for size, took in zip(megabytes(y), times, strict=True)]
        peak, unit = (flops, "GFLOP/s") if row.flops else (gbytes, "GB/s")
        cells = [f"{rate:9.1f} {unit:7s} {100 * rate / peak:3.0f}%" for rate in rates]
        fallbacks = ", ".join(fallback.function for fallback in nn.fallback_report() if fallback not in known)
        theirs = peer.steps(name, [x.d.copy() for x in inputs]) if peer else None
        ratios = [ratio(ours, step) for ours, step in zip(times, theirs, strict=True)] if theirs else ["", ""]
        line = "".join(f"{cell:>22s}{text:>7s}" for cell, text in zip(cells, ratios, strict=True))
        print(f"{name:24s}{line}   {fallbacks}".rstrip(), flush=True)


if __name__ == "__main__":
    main()
