"""Twenty residual layers of affine 32 and tanh, of which each step skips about half at random, batch 32, SGD.

Nearly every graph has a structure that was not there before, so nothing that was compiled for one serves the next.
"""

import random

import numpy as np

from benchmarks.peers.same_names import dynamic_step, modules

DEPTH, WIDTH, BATCH, KEPT = 20, 32, 32, 0.5


def data():
    """Random inputs (B, 32)."""
    return np.random.RandomState(0).randn(BATCH, WIDTH).astype(np.float32)


def nn_core():
    """Dynamic graph."""
    return _dynamic(*modules("nn_core"))


def nnabla():
    """Dynamic graph."""
    return _dynamic(*modules("nnabla"))


def _dynamic(nn, F, PF, S):
    x = nn.Variable((BATCH, WIDTH))
    values = data()
    chance = random.Random(0)

    def network(taken):
        x.d = values
        h = x
        for i in taken:
            h = h + F.tanh(PF.affine(h, WIDTH, name=f"fc{i}"))
        return F.mean(h)

    network(range(DEPTH))
    return dynamic_step(nn, S.Sgd(lr=1e-3), lambda: network([i for i in range(DEPTH) if chance.random() < KEPT]))


def torch():
    """Eager."""
    import torch as th

    chance = random.Random(0)
    layers = th.nn.ModuleList([th.nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH)])
    optimizer = th.optim.SGD(layers.parameters(), 1e-3)
    x = th.from_numpy(data())

    def step():
        optimizer.zero_grad()
        h = x
        for layer in layers:
            if chance.random() < KEPT:
                h = h + th.tanh(layer(h))
        loss = h.mean()
        if loss.requires_grad:
            loss.backward()
            optimizer.step()

    return step
