"""Train one deep convolutional net twice: with a static graph, and with a graph that is built anew in each step.

    python examples/tutorials/static_versus_dynamic.py
    python examples/tutorials/static_versus_dynamic.py -c cudnn

A static graph is built once and run many times, so the work of preparing it is done once. A dynamic graph can differ
from step to step, for example by dropping layers at random; what is prepared for it is kept and found again while
functions, settings and shapes repeat. Here both have the same layers, so that the two can be compared.
"""

import sys
import time

import numpy as np
from tiny_digits import data_iterator_tiny_digits, load_digits
from tutorial import expect, start

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S

BATCH_SIZE = 16
"""Images in a batch."""
N_LAYERS = 4
"""Inner convolutions; ten make the net deeper than these images deserve."""
N_MAPS = 16
"""Maps of the first convolution; the inner ones have twice as many, the last one eight times."""
N_STEPS = 224
"""Training steps, about two epochs."""


def layer(x, n_maps):
    """Return a convolution with batch normalization: (B, C, 8, 8) -> (B, n_maps, 8, 8)."""
    return F.tanh(PF.batch_normalization(PF.convolution(x, n_maps, (3, 3), pad=(1, 1))))


def cnn(x):
    """Scores: (B, 1, 8, 8) -> (B, 10)."""
    with nn.parameter_scope("cnn"):
        with nn.parameter_scope("conv1"):
            h = layer(x, N_MAPS)
        for i in range(N_LAYERS):
            with nn.parameter_scope(f"conv{i + 2}"):
                h = layer(h, 2 * N_MAPS)
        with nn.parameter_scope("conv_last"):
            h = F.average_pooling(layer(h, 8 * N_MAPS), (2, 2))
        with nn.parameter_scope("fc"):
            h = F.tanh(PF.affine(h, 16 * N_MAPS))
        with nn.parameter_scope("classifier"):
            return PF.affine(h, 10)


def batches(digits):
    """Return the same batches in the same order, whoever asks."""
    return data_iterator_tiny_digits(digits, batch_size=BATCH_SIZE, shuffle=True, rng=np.random.RandomState(0))


def train_static(digits):
    """Build the graph once; returns the losses."""
    nn.seed(0)
    data = batches(digits)
    x = nn.Variable((BATCH_SIZE, 1, 8, 8))
    t = nn.Variable((BATCH_SIZE, 1))
    loss = F.mean(F.softmax_cross_entropy(cnn(x), t))
    solver = S.Adam(alpha=1e-3)
    solver.set_parameters(nn.get_parameters())
    losses = []
    for _ in range(N_STEPS):
        x.d, t.d = data.next()
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
    return losses


def train_dynamic(digits):
    """Build the graph in each step; returns the losses."""
    nn.seed(0)
    data = batches(digits)
    x = nn.Variable((BATCH_SIZE, 1, 8, 8))
    t = nn.Variable((BATCH_SIZE, 1))
    solver = S.Adam(alpha=1e-3)
    losses = []
    for _ in range(N_STEPS):
        x.d, t.d = data.next()
        with nn.auto_forward():
            loss = F.mean(F.softmax_cross_entropy(cnn(x), t))
        # Layers that appear later bring parameters; those that the solver knows already keep their state.
        solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        losses.append(float(loss.d))
    return losses


def main():
    """Train both ways and compare."""
    start(__doc__)
    digits = load_digits()
    results = {}
    for name, train in (("static", train_static), ("dynamic", train_dynamic)):
        nn.clear_parameters()
        begin = time.perf_counter()
        results[name] = train(digits)
        seconds = time.perf_counter() - begin
        epochs = [np.mean(part) for part in np.array_split(results[name], 2)]
        print(f"{name:7}: {seconds:5.1f} s, mean loss of each half:", *(f"{loss:.4f}" for loss in epochs))
    for name, losses in results.items():
        expect(f"mean loss of the last 56 {name} steps", np.mean(losses[-56:]), high=0.4)
    expect("difference of the first losses", abs(results["static"][0] - results["dynamic"][0]), high=1e-4)


if __name__ == "__main__":
    sys.exit(main())
