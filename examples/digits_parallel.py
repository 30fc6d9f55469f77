"""Train the net of digits_demo.py on several processes; any number of them that divides 4 gives the same parameters.

    python examples/digits_parallel.py                        one process
    nn-core launch -n 2 examples/digits_parallel.py           two
    NN_CORE_DETERMINISTIC=1 before either                     the same bits, whatever the number of threads

Prints the held-out accuracy and a digest of the parameters.
"""

import argparse
import hashlib
import sys

import numpy as np
from digits_demo import accuracy, load_images, network

import nn_core as nn
import nn_core.communicators as C
import nn_core.functions as F
import nn_core.solvers as S
from nn_core.ext_utils import get_extension_context

SHARDS, SHARD_SIZE = 4, 16


def train(comm, images, labels, epochs):
    """Train from scratch; every rank ends with the same parameters."""
    x, t = nn.Variable((SHARD_SIZE, 1, 8, 8)), nn.Variable((SHARD_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(network(x), t))
    parameters = nn.get_parameters(grad_only=False)
    C.share_parameters(comm, parameters)
    solver = S.Adam(alpha=2e-3)
    solver.set_parameters(nn.get_parameters())
    shards = C.Shards(comm, parameters, SHARDS, loss=loss)
    batch_size = SHARDS * SHARD_SIZE
    n_steps = len(images) // batch_size
    for step in range(epochs * n_steps):
        epoch, place = divmod(step, n_steps)
        solver.set_learning_rate(2e-3 * 0.5 * (1 + np.cos(np.pi * epoch / epochs)))
        # The order of the images belongs to the epoch, and a part of each batch to a shard.
        batch = np.random.default_rng(epoch).permutation(len(images))[place * batch_size : (place + 1) * batch_size]
        for shard in shards.step(step):
            part = batch[shard * SHARD_SIZE : (shard + 1) * SHARD_SIZE]
            x.d, t.d = images[part], labels[part]
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
        solver.weight_decay(1e-4)
        solver.update()


def digest():
    """Return a digest of all parameters and running statistics."""
    values = [np.ascontiguousarray(v.d).tobytes() for v in nn.get_parameters(grad_only=False).values()]
    return hashlib.md5(b"".join(values)).hexdigest()


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-c", "--context", default="cpu", help="backend: cpu, reference, ...")
    parser.add_argument("-e", "--epochs", type=int, default=10)
    options = parser.parse_args()
    ctx = get_extension_context(options.context)
    nn.set_default_context(ctx)
    comm = C.MultiProcessCommunicator(ctx)
    comm.init()
    nn.seed(0)
    images, held_out_images, labels, held_out_labels = load_images()
    train(comm, images, labels, options.epochs)
    if comm.rank == 0:
        found = accuracy(held_out_images, held_out_labels)
        print(f"{comm.size} processes: held-out accuracy {found:.2%}, digest {digest()}", flush=True)
        if found < 0.97:
            sys.exit("expected at least 97 %")


if __name__ == "__main__":
    main()
