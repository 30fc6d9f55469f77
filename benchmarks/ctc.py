"""Time of the CTC loss of nn-ext-contrib beside PyTorch's, forward and backward from scores before softmax.

    python -m benchmarks.ctc

Milliseconds of processor time of one thread, best of the rounds; the two take turns, so that both see the same machine.
"""

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

import nn_core as nn
import nn_core.functions as F

ROUNDS = 9
#: Steps, samples, classes, labels.
SIZES = ((50, 32, 30, 10), (100, 16, 40, 20), (200, 32, 50, 40), (400, 16, 1000, 60), (150, 1, 30, 20))


def ours(x: np.ndarray, target: np.ndarray) -> tuple[Callable[[], object], Callable[[], object]]:
    """Forward alone, and both passes, of a static graph."""
    scores = nn.Variable.from_numpy_array(x, need_grad=True)
    loss = F.sum(F.ctc_loss(scores, nn.Variable.from_numpy_array(target)))

    def both() -> None:
        loss.forward()
        scores.grad.zero()
        loss.backward()

    return loss.forward, both


def of_torch(x: np.ndarray, target: np.ndarray) -> tuple[Callable[[], object], Callable[[], object]]:
    """The same in PyTorch."""
    import torch

    torch.set_num_threads(1)
    scores, labels = torch.tensor(x, requires_grad=True), torch.tensor(target)
    steps, lengths = (torch.full((x.shape[1],), n) for n in (x.shape[0], target.shape[1]))

    def forward() -> torch.Tensor:
        return torch.nn.functional.ctc_loss(scores.log_softmax(2), labels, steps, lengths, reduction="sum")

    def both() -> None:
        scores.grad = None
        forward().backward()

    return forward, both


def best(steps: tuple[Callable[[], object], ...]) -> list[float]:
    """The best time of each in milliseconds."""
    times = [[] for _ in steps]
    for _ in range(ROUNDS + 1):
        for step, found in zip(steps, times, strict=True):
            start = time.process_time()
            step()
            found.append(1e3 * (time.process_time() - start))
    return [min(found[1:]) for found in times]


def main() -> None:
    """Print a table."""
    has_torch = find_spec("torch") is not None
    print("| T, B, K, L | forward | both |" + (" PyTorch forward | both |" if has_torch else ""))
    print("|---|---|---|" + ("---|---|" if has_torch else ""))
    for steps, samples, classes, labels in SIZES:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(steps, samples, classes)).astype(np.float32)
        target = rng.integers(1, classes, (samples, labels))
        calls = (*ours(x, target), *(of_torch(x, target) if has_torch else ()))
        print(f"| {steps}, {samples}, {classes}, {labels} | " + " | ".join(f"{ms:.1f}" for ms in best(calls)) + " |")


if __name__ == "__main__":
    main()
