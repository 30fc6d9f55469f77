"""Time of the CTC loss of nn-ext-contrib beside PyTorch's, forward and backward from scores before softmax.

    python -m benchmarks.ctc
    python -m benchmarks.ctc --processor-time      on a machine that others use too: one thread each, and ratios only

Milliseconds, best of the rounds. The two take turns, so that both see the same machine: PyTorch with one thread and with two,
nn_core with the one that it uses.
"""

import argparse
import platform
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import torch

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

#: Steps, samples, classes, labels; and rounds.
SIZES = (
    ((10, 1, 10, 3), 400),
    ((20, 1, 10, 5), 400),
    ((50, 4, 30, 10), 200),
    ((150, 1, 30, 20), 200),
    ((50, 32, 30, 10), 50),
    ((100, 16, 40, 20), 50),
    ((200, 32, 50, 40), 15),
    ((400, 16, 1000, 60), 10),
    ((500, 32, 100, 100), 7),
)
TORCH_THREADS = (1, 2)


def ours(x: np.ndarray, target: np.ndarray) -> Callable[[], object]:
    """Both passes of a static graph."""
    with nn.context_scope(get_extension_context("cpu")):
        scores = nn.Variable.from_numpy_array(x, need_grad=True)
        loss = F.sum(F.contrib.ctc_loss(scores, nn.Variable.from_numpy_array(target)))

    def step() -> np.ndarray:
        loss.forward(clear_no_need_grad=True)
        scores.grad.zero()
        loss.backward(clear_buffer=True)
        return scores.g

    return step


def of_torch(x: np.ndarray, target: np.ndarray, threads: int) -> Callable[[], object]:
    """Return the same in PyTorch."""
    scores, labels = torch.tensor(x, requires_grad=True), torch.tensor(target)
    steps, lengths = (torch.full((x.shape[1],), n) for n in (x.shape[0], target.shape[1]))

    def step() -> np.ndarray:
        torch.set_num_threads(threads)
        scores.grad = None
        torch.nn.functional.ctc_loss(scores.log_softmax(2), labels, steps, lengths, reduction="sum").backward()
        return scores.grad.numpy()

    return step


def best(steps: list[Callable[[], object]], rounds: int, clock: Callable[[], float]) -> list[float]:
    """Return the best time of each in milliseconds."""
    times = [[] for _ in steps]
    for _ in range(rounds + 1):
        for step, found in zip(steps, times, strict=True):
            start = clock()
            step()
            found.append(1e3 * (clock() - start))
    return [min(found[1:]) for found in times]


def row(sizes: tuple[int, ...], rounds: int, is_busy: bool) -> list[str]:
    """Return times and ratios for one size; ratios of processor time where others use the machine."""
    n_steps, n_samples, n_classes, n_labels = sizes
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_steps, n_samples, n_classes)).astype(np.float32)
    target = rng.integers(1, n_classes, (n_samples, n_labels))
    calls = [ours(x, target), *(of_torch(x, target, n) for n in (TORCH_THREADS[:1] if is_busy else TORCH_THREADS))]
    np.testing.assert_allclose(calls[0](), calls[1](), atol=5e-3)  # PyTorch is that far from float64 after 500 steps
    own, *others = best(calls, rounds, time.process_time if is_busy else time.perf_counter)
    if is_busy:
        return [f"{own / others[0]:.2f}"]
    return [f"{own:.3f}", *(cell for other in others for cell in (f"{other:.3f}", f"{own / other:.2f}"))]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processor-time", action="store_true", help="ratios of processor time, for busy machines")
    is_busy = parser.parse_args().processor_time
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, PyTorch {version('torch')}\n")
    columns = [name for n in TORCH_THREADS for name in (f"PyTorch, {n} thread{'s' * (n > 1)}", "ratio")]
    columns = ["nn_core / PyTorch, processor time of one thread"] if is_busy else ["nn_core", *columns]
    print("| T, B, K, L | " + " | ".join(columns) + " |")
    print("|---" * (1 + len(columns)) + "|")
    for sizes, rounds in SIZES:
        print(f"| {', '.join(map(str, sizes))} | " + " | ".join(row(sizes, rounds, is_busy)) + " |", flush=True)


if __name__ == "__main__":
    main()
