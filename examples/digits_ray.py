"""Train the net of digits_demo.py on a Ray cluster; killed workers and other numbers of workers change no bit.

    pip install nn-ext-ray
    python examples/digits_ray.py                    up to two workers, on a cluster of this machine
    python examples/digits_ray.py --kill 30          kill a worker in iteration 30: the others wait, and all start again
    RAY_ADDRESS=auto python examples/digits_ray.py --workers 1 4 --out /shared/digits     on the cluster of this machine

Prints the held-out accuracy and a digest of the parameters.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

import numpy as np
from digits_demo import accuracy, load_images, network
from digits_parallel import digest

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.data import data_iterator_simple
from nn_core.ext_utils import get_extension_context
from nn_core.training import Checkpoint, Log, Trainer, Updater, every
from nn_ext_ray import train

SHARDS, SHARD_SIZE = 4, 16


def program(out, context, epochs, kill_at):
    """Train as one of the workers; gives the number of workers, the held-out accuracy and a digest."""
    ctx = get_extension_context(context)
    nn.set_default_context(ctx)
    comm = C.MultiProcessCommunicator(ctx)
    comm.init()
    nn.seed(0)
    images, held_out_images, labels, held_out_labels = load_images()
    x, t = nn.Variable((SHARD_SIZE, 1, 8, 8)), nn.Variable((SHARD_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    solver = S.Adam(alpha=2e-3)
    solver.set_parameters(nn.get_parameters())
    rng = np.random.RandomState(0)
    with data_iterator_simple(
        lambda i: (images[i], labels[i]), len(images), SHARDS * SHARD_SIZE, shuffle=True, rng=rng
    ) as data:
        updater = Updater(data, [x, t], loss, solver, comm=comm, shards=SHARDS)
        trainer = Trainer(updater, every(epochs, "epoch"), out, [Log(), Checkpoint()])
        mark = Path(out, "killed")
        if kill_at and comm.rank == comm.size - 1 and not mark.exists():

            @trainer.on(every(kill_at))
            def die(trainer):
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

        trainer.run(resume=True)
    return comm.size, accuracy(held_out_images, held_out_labels), digest()


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--context", default="cpu", help="backend: cpu, reference, ...")
    parser.add_argument("-e", "--epochs", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs=2, default=(1, 2), help="smallest and largest number")
    parser.add_argument("--out", default="digits_ray", help="folder of checkpoints, shared by all machines")
    parser.add_argument("--kill", type=int, default=0, help="iteration in which a worker kills itself, once")
    options = parser.parse_args()
    out = str(Path(options.out).resolve())
    Path(out).mkdir(parents=True, exist_ok=True)
    arguments = (out, options.context, options.epochs, options.kill)
    deterministic = {"NN_CORE_DETERMINISTIC": "1"}  # whatever the number of threads of a machine
    results = train(program, arguments, workers=tuple(options.workers), shards=SHARDS, variables=deterministic)
    size, found, text = results[0]
    print(f"{size} workers: held-out accuracy {found:.2%}, digest {text}", flush=True)
    if any(other != (size, found, text) for other in results):
        sys.exit(f"expected the same from all workers, got {results}")


if __name__ == "__main__":
    main()
