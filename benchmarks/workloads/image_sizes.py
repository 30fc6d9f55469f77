"""Three convolutions over images whose height and width change in each step, batch 8, SGD.

Height and width are drawn from 24 to 55, so nearly every batch has a shape that was not there before.
"""

import random

import numpy as np

from benchmarks.peers.same_names import dynamic_step, modules

BATCH, CHANNELS, CLASSES, LENGTHS = 8, (16, 32, 32), 10, range(24, 56)


def sample(chance):
    """Images (8, 3, H, W) of a random size, and their classes (8,)."""
    shape = (BATCH, 3, chance.choice(LENGTHS), chance.choice(LENGTHS))
    images = np.random.RandomState(chance.randrange(1000)).rand(*shape).astype(np.float32)
    return images, np.array([chance.randrange(CLASSES) for _ in range(BATCH)])


def nn_core():
    """Dynamic graph."""
    return _dynamic(*modules("nn_core"))


def nnabla():
    """Dynamic graph."""
    return _dynamic(*modules("nnabla"))


def _dynamic(nn, F, PF, S):
    chance = random.Random(0)

    def network(images, labels):
        h = nn.Variable.from_numpy_array(images)
        for i, channels in enumerate(CHANNELS):
            h = F.relu(PF.convolution(h, channels, (3, 3), pad=(1, 1), stride=(2, 2), name=f"conv{i}"))
        y = PF.affine(F.mean(h, axis=(2, 3)), CLASSES, name="out")
        return F.mean(F.softmax_cross_entropy(y, nn.Variable.from_numpy_array(labels.reshape(-1, 1))))

    network(*sample(random.Random(1)))
    return dynamic_step(nn, S.Sgd(lr=1e-2), lambda: network(*sample(chance)))


def torch():
    """Eager."""
    import torch as th

    chance = random.Random(0)
    layers, n_inputs = [], 3
    for channels in CHANNELS:
        layers += [th.nn.Conv2d(n_inputs, channels, 3, stride=2, padding=1), th.nn.ReLU()]
        n_inputs = channels
    net, out = th.nn.Sequential(*layers), th.nn.Linear(n_inputs, CLASSES)
    optimizer = th.optim.SGD([*net.parameters(), *out.parameters()], 1e-2)

    def step():
        images, labels = (th.from_numpy(array) for array in sample(chance))
        optimizer.zero_grad()
        th.nn.functional.cross_entropy(out(net(images).mean(dim=(2, 3))), labels).backward()
        optimizer.step()

    return step
