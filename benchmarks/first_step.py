"""Time of building a network and of its first step, in milliseconds of processor time, compared with PyTorch's eager mode.

    OMP_NUM_THREADS=1 python -m benchmarks.first_step
    OMP_NUM_THREADS=1 python -m benchmarks.first_step einsum maml mlp_tiny

Each figure is a median of processes of their own, in which the frameworks take turns. A process imports the framework and
computes tanh and its gradient first, which loads the libraries: what is left is what this network needs, from its first
function to the end of its first step. The second step is shown for comparison. Programs are those below and the workloads.
"""

import argparse
import importlib
import importlib.util
import itertools
import json
import os
import pkgutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

FRAMEWORKS = ("nn_core", "torch")
Step = Callable[[], object]


class Einsum:
    """Attention written as Einstein sums, forward and backward."""

    SHAPE = (4, 16, 4, 8)

    def nn_core(self) -> Step:
        """Build the graph at each step, which computes at once."""
        import nn_core as nn
        import nn_core.functions as F

        q, k, v = (nn.Variable(self.SHAPE, need_grad=True) for _ in range(3))
        for number, variable in enumerate((q, k, v)):
            variable.d = 0.1 * (number + 1)

        def step() -> None:
            with nn.auto_forward():
                scores = F.softmax(F.einsum(q, k, equation="bihd,bjhd->bhij"), axis=3)
                y = F.sum(F.einsum(scores, v, equation="bhij,bjhd->bihd"))
                y.backward()

        return step

    def torch(self) -> Step:
        """Compute eagerly."""
        import torch

        q, k, v = (torch.full(self.SHAPE, 0.1 * (number + 1), requires_grad=True) for number in range(3))

        def step() -> None:
            scores = torch.softmax(torch.einsum("bihd,bjhd->bhij", q, k), 3)
            torch.einsum("bhij,bjhd->bihd", scores, v).sum().backward()

        return step


class Maml:
    """Second-order MAML: two tasks, two inner steps of a small net, the gradient through both of them."""

    SIZES, RATE, TASKS, INNER = (1, 40, 40, 1), 0.01, 2, 2

    def nn_core(self) -> Step:
        """Build a static graph that contains the inner gradients."""
        import nn_core as nn
        import nn_core.functions as F

        weights = [nn.Variable((n, m), need_grad=True) for n, m in itertools.pairwise(self.SIZES)]
        for w in weights:
            w.d = 0.1
        x, t = nn.Variable((10, 1)), nn.Variable((10, 1))
        x.d, t.d = 0.5, 0.25

        def loss_of(weights: list[nn.Variable]) -> nn.Variable:
            h = x
            for w in weights[:-1]:
                h = F.tanh(F.affine(h, w))
            return F.mean(F.squared_error(F.affine(h, weights[-1]), t))

        def adapted() -> nn.Variable:
            fast = weights
            for _ in range(self.INNER):
                fast = [w - self.RATE * g for w, g in zip(fast, nn.grad([loss_of(fast)], fast), strict=True)]
            return loss_of(fast)

        loss = adapted()
        for _ in range(self.TASKS - 1):
            loss = loss + adapted()

        def step() -> None:
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)

        return step

    def torch(self) -> Step:
        """Compute eagerly."""
        import torch

        weights = [torch.full((n, m), 0.1, requires_grad=True) for n, m in itertools.pairwise(self.SIZES)]
        x, t = torch.full((10, 1), 0.5), torch.full((10, 1), 0.25)

        def loss_of(weights: list[torch.Tensor]) -> torch.Tensor:
            h = x
            for w in weights[:-1]:
                h = torch.tanh(h @ w)
            return torch.nn.functional.mse_loss(h @ weights[-1], t)

        def adapted() -> torch.Tensor:
            fast = weights
            for _ in range(self.INNER):
                gradients = torch.autograd.grad(loss_of(fast), fast, create_graph=True)
                fast = [w - self.RATE * g for w, g in zip(fast, gradients, strict=True)]
            return loss_of(fast)

        def step() -> None:
            loss = adapted()
            for _ in range(self.TASKS - 1):
                loss = loss + adapted()
            loss.backward()

        return step


PROGRAMS = {"einsum": Einsum(), "maml": Maml()}


def load(framework: str) -> None:
    """Compute something, so that the framework's libraries are loaded."""
    if framework == "torch":
        import torch

        torch.set_num_threads(1)
        x = torch.ones(2, 3, requires_grad=True)
        torch.tanh(x).sum().backward()
        torch.optim.SGD([x], 0.1)  # imports the compiler
        return
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions
    import nn_core.solvers

    x = nn.Variable((2, 3), need_grad=True)
    y = F.sum(F.tanh(x))
    y.forward()
    y.backward()


def measure(program: str, framework: str) -> list[float]:
    """Return milliseconds of processor time of building with the first step, and of the second step."""
    module = PROGRAMS.get(program) or importlib.import_module(f"benchmarks.workloads.{program}")
    load(framework)
    times = [time.process_time()]
    step = getattr(module, framework)()
    step()
    times.append(time.process_time())
    step()
    times.append(time.process_time())
    return [1e3 * (end - start) for start, end in itertools.pairwise(times)]


def measured_alone(program: str, framework: str) -> list[float]:
    """Measure in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.first_step", program, "--only", framework]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NN_CORE_NUM_THREADS": "1"}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return json.loads(output.splitlines()[-1])


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=FRAMEWORKS, help="print the figures of one as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.programs[0], options.only)))
        return
    workloads = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent / "workloads")])]
    frameworks = [name for name in FRAMEWORKS if importlib.util.find_spec(name)]
    print("| program | " + " | ".join(f"{name}, first | second" for name in frameworks) + " | ratio |")
    print("|---" * (2 * len(frameworks) + 2) + "|")
    for program in options.programs or [*PROGRAMS, *workloads]:
        if program in workloads and not hasattr(importlib.import_module(f"benchmarks.workloads.{program}"), "torch"):
            continue
        rounds = [[measured_alone(program, name) for name in frameworks] for _ in range(options.rounds + 1)][1:]
        medians = [[statistics.median(times) for times in zip(*runs, strict=True)] for runs in zip(*rounds, strict=True)]
        cells = [f"{value:.2f}" for times in medians for value in times]
        ratio = f"{medians[0][0] / medians[1][0]:.2f}" if len(medians) > 1 else "-"
        print(f"| {program} | " + " | ".join(cells) + f" | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
