"""ResNet-18 (He et al., 2015) for 1000 classes, 8 images of 3 x 112 x 112, momentum; a static graph."""

import contextlib

import numpy as np

from benchmarks.peers.same_names import modules

BATCH, SIZE, CLASSES = 8, 112, 1000
STAGES = (64, 128, 256, 512)


def data():
    """Images (B, 3, 112, 112) and labels (B, 1)."""
    rng = np.random.RandomState(0)
    return rng.randn(BATCH, 3, SIZE, SIZE).astype(np.float32), rng.randint(0, CLASSES, (BATCH, 1))


def nn_core():
    """Build a static graph."""
    return _static(*modules("nn_core"))


def nnabla():
    """Build a static graph."""
    return _static(*modules("nnabla"))


def network(nn, F, PF, x, batch_stat):
    """Class scores (B, 1000)."""

    def convolution(h, maps, kernel, stride, name):
        pad = (kernel // 2,) * 2
        return PF.convolution(h, maps, (kernel,) * 2, pad=pad, stride=(stride,) * 2, with_bias=False, name=name)

    def block(h, maps, stride):
        shortcut = h
        if h.shape[1] != maps:
            shortcut = convolution(h, maps, 1, stride, "shortcut")
            shortcut = PF.batch_normalization(shortcut, batch_stat=batch_stat, name="shortcut")
        h = convolution(h, maps, 3, stride, "first")
        h = PF.fused_batch_normalization(h, batch_stat=batch_stat, name="first")
        h = convolution(h, maps, 3, 1, "second")
        return PF.fused_batch_normalization(h, shortcut, batch_stat=batch_stat, name="second")

    h = convolution(x, STAGES[0], 7, 2, "stem")
    h = PF.fused_batch_normalization(h, batch_stat=batch_stat, name="stem")
    h = F.max_pooling(h, (3, 3), stride=(2, 2), pad=(1, 1))
    for i, maps in enumerate(STAGES):
        for j in range(2):
            with nn.parameter_scope(f"stage{i}/block{j}"):
                h = block(h, maps, 2 if i > 0 and j == 0 else 1)
    return PF.affine(F.global_average_pooling(h), CLASSES, name="classifier")


def _static(nn, F, PF, S):
    images, labels = data()
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    loss = F.mean(F.softmax_cross_entropy(network(nn, F, PF, x, batch_stat=True), t))
    solver = S.Momentum(lr=0.01, momentum=0.9)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = images, labels
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        return loss

    return step


def torch():
    """Eager."""
    import torch as th

    return train_torch(th, lambda net: net)


def torch_compile():
    """Compile the network."""
    import torch as th

    return train_torch(th, th.compile)


def torch_network(th):
    """Return the same network as a module."""

    def convolution(inputs, maps, kernel, stride):
        return [th.nn.Conv2d(inputs, maps, kernel, stride, kernel // 2, bias=False), th.nn.BatchNorm2d(maps)]

    class Block(th.nn.Module):
        def __init__(self, inputs, maps, stride):
            super().__init__()
            self.main = th.nn.Sequential(
                *convolution(inputs, maps, 3, stride), th.nn.ReLU(inplace=True), *convolution(maps, maps, 3, 1)
            )
            changes = inputs != maps
            self.shortcut = th.nn.Sequential(*(convolution(inputs, maps, 1, stride) if changes else []))

        def forward(self, x):
            return th.nn.functional.relu(self.main(x) + self.shortcut(x), inplace=True)

    layers = [*convolution(3, STAGES[0], 7, 2), th.nn.ReLU(inplace=True), th.nn.MaxPool2d(3, 2, 1)]
    inputs = STAGES[0]
    for i, maps in enumerate(STAGES):
        for j in range(2):
            layers.append(Block(inputs, maps, 2 if i > 0 and j == 0 else 1))
            inputs = maps
    return th.nn.Sequential(*layers, th.nn.AdaptiveAvgPool2d(1), th.nn.Flatten(), th.nn.Linear(inputs, CLASSES))


def train_torch(th, prepare, scope=contextlib.nullcontext):
    """Return a training step whose forward pass runs in `scope`."""
    net = prepare(torch_network(th))
    optimizer = th.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    images, labels = data()
    x, t = th.from_numpy(images), th.from_numpy(labels[:, 0])

    def step():
        optimizer.zero_grad()
        with scope():
            loss = th.nn.functional.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return step


def jax():
    """One jitted function for the whole step."""
    import jax.numpy as jnp

    from benchmarks.peers import jax_training as T
    from benchmarks.peers.jax_resnet18 import apply, start

    images, labels = data()
    x, t = jnp.asarray(images.transpose(0, 2, 3, 1)), jnp.asarray(labels[:, 0])
    parameters, statistics = start()

    def loss(parameters, statistics):
        scores, new = apply(parameters, statistics, x, batch_stat=True)
        return T.cross_entropy(scores, t), new

    return T.training_step(loss, parameters, T.momentum(0.01, 0.9), statistics)
