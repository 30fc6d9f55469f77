"""Cost of deterministic mode: forward and backward of functions with the mode off and on.

    python -m benchmarks.deterministic [repeats]

The modes are measured in turns; the least time counts.
"""

import sys
import time

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_core.settings import set_deterministic

#: The functions to call, and the shapes of their operands: sums that are cut by the number of threads, and two that are not.
CALLS = {
    "convolution 3x3, 64 channels": (lambda x, w: F.convolution(x, w, pad=(1, 1)), (4, 64, 28, 28), (64, 64, 3, 3)),
    "convolution 1x1, 128 channels": (F.convolution, (4, 128, 28, 28), (128, 128, 1, 1)),
    "affine 512 to 512, batch 64": (F.affine, (64, 512), (512, 512)),
    "layer_normalization": (F.layer_normalization, (512, 512), (1, 512), (1, 512)),
    "softmax": (F.softmax, (512, 512)),
    "tanh": (F.tanh, (512, 512)),
}


def step_of(function, *shapes):
    """Return a forward and backward pass of a graph of one function."""
    rng = np.random.default_rng(0)
    inputs = [nn.Variable.from_numpy_array(rng.normal(size=shape).astype(np.float32), need_grad=True) for shape in shapes]
    y = function(*inputs)

    def step():
        y.forward()
        for x in inputs:
            x.grad.zero()
        y.backward()

    return step


def least_ms(function, shapes, repeats):
    """Milliseconds with the mode off and on: the least of `repeats` turns."""
    steps = {}
    for mode in (False, True):
        set_deterministic(mode)
        steps[mode] = step_of(function, *shapes)
        steps[mode]()
    least = dict.fromkeys(steps, float("inf"))
    for _ in range(repeats):
        for mode, step in steps.items():
            set_deterministic(mode)
            step()  # what depends on the mode is prepared anew
            start = time.perf_counter()
            step()
            least[mode] = min(least[mode], 1e3 * (time.perf_counter() - start))
    set_deterministic(False)
    return least[False], least[True]


def main():
    """Print a table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print("| function, forward and backward | threads | ms | ms, deterministic | ratio |\n|---|---|---|---|---|")
    with nn.context_scope(get_extension_context("cpu")):
        for name, (function, *shapes) in CALLS.items():
            for threads in (1, 2):
                nn.set_num_threads(threads)
                off, on = least_ms(function, shapes, repeats)
                print(f"| {name} | {threads} | {off:.2f} | {on:.2f} | {on / off:.2f} |", flush=True)


if __name__ == "__main__":
    main()
