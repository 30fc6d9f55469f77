"""The growth of time with threads, with depth, with the batch and with the width.

    python -m benchmarks.scaling
    python -m benchmarks.scaling depth batch
    python -m benchmarks.scaling native deep_cnn lstm_train

"native": workloads with one and with several native threads. "python": inference of separate graphs in two Python
threads with one native thread each, compared with the same work in one Python thread. "depth", "batch", "width": time per
unit of arithmetic on one thread, which must not grow.
"""

import argparse
import gc
import os
import statistics
import sys
import threading
import time

from benchmarks.measure import Worker
from benchmarks.threads import VARIABLES

PARTS = ("native", "python", "depth", "batch", "width")
WORKLOADS = ("deep_cnn", "resnet18_train", "resnet18_infer", "transformer_train", "lstm_train", "elementwise_chain")
ROUNDS, SECONDS_A_ROUND = 5, 0.3


def seconds(step):
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


def native(workloads):
    """Each workload on 1, 2, 4 ... native threads, as far as there are CPUs."""
    n_cpus = len(os.sched_getaffinity(0))
    counts = [2**k for k in range(n_cpus.bit_length()) if 2**k <= n_cpus]
    print("native threads: median ms a step" + "".join(f"{count:>10d}" for count in counts))
    for workload in workloads:
        workers = [Worker(sys.executable, workload, "nn_core", count) for count in counts]
        for _ in range(ROUNDS):
            for worker in workers:
                worker.measure()
        for worker in workers:
            worker.stop()
        cells = "".join(f"{worker.median_ms():10.2f}" for worker in workers)
        speedup = workers[0].median_ms() / workers[-1].median_ms()
        print(f"  {workload:30s}{cells}   {speedup:.2f} times as fast on {counts[-1]}", flush=True)


def python_threads():
    """Throughput of two Python threads, each with a graph of its own, beside one."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    from benchmarks.workloads.resnet18_train import network

    def resnet():
        x = nn.Variable((1, 3, 112, 112))
        return x, network(nn, F, PF, x, batch_stat=False)

    def perceptron(batch, width):
        x = h = nn.Variable((batch, width))
        for k in range(8):
            h = F.relu(PF.affine(h, width, name=f"fc{k}"))
        return x, h

    def lstm():
        x, h, c = (nn.Variable(shape) for shape in ((20, 8, 128), (1, 1, 8, 256), (1, 1, 8, 256)))
        return x, PF.lstm(x, h, c)[0]

    networks = {
        "resnet18 of 112 x 112": resnet,
        "perceptron, 512 wide, batch 64": lambda: perceptron(64, 512),
        "perceptron, 16 wide, batch 4": lambda: perceptron(4, 16),
        "lstm, 20 steps, batch 8": lstm,
    }
    print("Python threads with one native thread each: ms a pass in one, throughput of two")
    for name, make in networks.items():
        steps = []
        for number in range(2):
            with nn.parameter_scope(f"{name}/{number}"):
                x, y = make()
            x.d = 0.5
            steps.append(lambda y=y: y.forward(clear_buffer=True))
        alone = seconds(steps[0])
        steps[1]()
        steps[1]()
        repeats = max(2, int(SECONDS_A_ROUND / alone))
        together = statistics.median(_together(steps, repeats) for _ in range(ROUNDS))
        print(f"  {name:32s}{1e3 * alone:8.3f} ms {2 * alone * repeats / together:8.2f} times", flush=True)


def _together(steps, repeats):
    """Seconds until each step has run `repeats` times in a thread of its own."""

    def work(step):
        for _ in range(repeats):
            step()

    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def depth():
    """Microseconds a function that a chain costs, from its construction to its end."""
    import nn_core as nn
    import nn_core.functions as F

    def took(work, *arguments, **settings):
        gc.collect()
        start = time.perf_counter()
        result = work(*arguments, **settings)
        return result, time.perf_counter() - start

    def build(count):
        h = x
        for _ in range(count // 2):
            h = F.tanh(F.affine(h, w))
        return h

    def build_dynamic(count):
        with nn.auto_forward():
            return build(count)

    x, w = (nn.Variable((8, 8), need_grad=True) for _ in range(2))
    x.d, w.d = 0.5, 0.1
    columns = ("build", "first forward", "forward", "first backward", "backward", "free", "dynamic", "its backward")
    print("depth: microseconds a function\n" + " " * 10 + "".join(f"{column:>15s}" for column in columns))
    for count in (100, 1000, 5000):
        rounds = []
        for _ in range(3):
            y, built = took(build, count)
            times = [built, took(y.forward, clear_no_need_grad=True)[1]]
            y.forward(clear_no_need_grad=True)
            times.append(took(y.forward, clear_no_need_grad=True)[1])
            for variable in (x, w):
                variable.grad.zero()
            times.append(took(y.backward, clear_buffer=True)[1])
            for _ in range(3):
                for variable in (x, w):
                    variable.grad.zero()
                y.forward(clear_no_need_grad=True)
                last = took(y.backward, clear_buffer=True)[1]
            graph = [y]
            del y
            times += [last, took(graph.clear)[1]]
            y, built = took(build_dynamic, count)
            for variable in (x, w):
                variable.grad.zero()
            times += [built, took(y.backward, clear_buffer=True)[1]]
            rounds.append(times)
        best = [1e6 * min(column) / count for column in zip(*rounds, strict=True)]
        print(f"{count:>10d}" + "".join(f"{value:15.2f}" for value in best), flush=True)


def _arithmetic(title, sizes):
    """Time of forward and backward passes of affine layers, beside their multiplications and additions."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF

    print(f"{title}: milliseconds a pass forward and backward, picoseconds an operation")
    for batch, width in sizes:
        x = h = nn.Variable((batch, width), need_grad=True)
        x.d = 0.5
        with nn.parameter_scope(f"{title}/{batch}/{width}"):
            for k in range(4):
                h = F.relu(PF.affine(h, width, name=f"fc{k}"))
            parameters = nn.get_parameters().values()

        def step(x=x, y=h, parameters=parameters):
            y.forward(clear_no_need_grad=True)
            for variable in (x, *parameters):
                variable.grad.zero()
            y.backward(clear_buffer=True)

        took, operations = seconds(step), 4 * 3 * 2 * batch * width**2
        label = f"{batch if title == 'batch' else width:10d}"
        print(f"{label}{1e3 * took:15.3f}{1e12 * took / operations:15.2f}", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS, *WORKLOADS], default=[], help="parts, workloads")
    options = parser.parse_args()
    workloads = [name for name in options.parts if name in WORKLOADS] or WORKLOADS
    parts = [name for name in options.parts if name in PARTS] or (PARTS if workloads is WORKLOADS else ["native"])
    if "native" in parts:
        native(workloads)
    os.environ.update(dict.fromkeys(VARIABLES, "1"))  # before the native library reads it
    if "python" in parts:
        python_threads()
    if "depth" in parts:
        depth()
    if "batch" in parts:
        _arithmetic("batch", [(batch, 512) for batch in (1, 4, 16, 64, 256, 1024, 4096)])
    if "width" in parts:
        _arithmetic("width", [(256, width) for width in (64, 128, 256, 512, 1024, 2048)])


if __name__ == "__main__":
    main()
