"""The cost of a trainer over a hand-written loop, with eight extensions that have nothing to do, in processor time."""

import statistics
import tempfile
import time

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.training import Trainer, Updater, every

STEPS = 2000
ROUNDS = 25


class _Same:
    """One batch, for ever."""

    def __init__(self) -> None:
        random = np.random.RandomState(0)
        self.batch = (random.randn(8, 16).astype(np.float32), random.randint(0, 4, (8, 1)))

    def next(self) -> tuple[np.ndarray, np.ndarray]:
        return self.batch


def _network() -> tuple[list[nn.Variable], nn.Variable, S.Sgd]:
    nn.clear_parameters()
    nn.seed(1)
    x, t = nn.Variable((8, 16)), nn.Variable((8, 1))
    h = F.relu(PF.affine(x, 16, name="first"))
    loss = F.mean(F.softmax_cross_entropy(PF.affine(h, 4, name="second"), t))
    solver = S.Sgd(0.0)  # no progress: tiny gradients would slow down the arithmetic of later steps
    solver.set_parameters(nn.get_parameters())
    return [x, t], loss, solver


def by_hand() -> float:
    """Microseconds a step of the loop that a program writes."""
    (x, t), loss, solver = _network()
    data = _Same()
    start = time.process_time()
    for _ in range(STEPS):
        x.d, t.d = data.next()
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
    return (time.process_time() - start) / STEPS * 1e6


def by_trainer(extensions: int) -> float:
    """Microseconds a step of a trainer with idle extensions."""
    inputs, loss, solver = _network()
    with tempfile.TemporaryDirectory() as out:
        trainer = Trainer(Updater(_Same(), inputs, loss, solver), every(STEPS), out)
        for _ in range(extensions):
            trainer.extend(lambda trainer: None, every=every(10 * STEPS))
        start = time.process_time()
        trainer.run()
        return (time.process_time() - start) / STEPS * 1e6


def measured() -> dict[str, list[float]]:
    """Microseconds a step; the programs take turns, so that a change of the machine's speed meets all of them."""
    times: dict[str, list[float]] = {"by hand": [], "trainer": [], "trainer and 8 extensions": []}
    for _ in range(ROUNDS):
        times["by hand"].append(by_hand())
        times["trainer"].append(by_trainer(0))
        times["trainer and 8 extensions"].append(by_trainer(8))
    return times


def main() -> None:
    """Print the medians."""
    for name, values in measured().items():
        print(f"{name:26} {statistics.median(values):6.1f} us a step, least {min(values):6.1f}")


if __name__ == "__main__":
    main()
