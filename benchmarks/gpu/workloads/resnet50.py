"""ResNet-50 (He et al., 2015) for 1000 classes, 64 images of 3 x 224 x 224, momentum; a static graph."""

import contextlib
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """Sizes of the images and of the network."""

    batch: int = 64
    image: int = 224
    classes: int = 1000
    stages: tuple[tuple[int, int], ...] = ((64, 3), (128, 4), (256, 6), (512, 3))


SIZES = Sizes()


def shrink():
    """Make it small enough for a trial on a CPU."""
    global SIZES  # noqa: PLW0603 -- chosen once in a process of its own
    SIZES = replace(SIZES, batch=2, image=32, classes=10, stages=((8, 1), (16, 1)))


def data():
    """Images (B, 3, H, W) and labels (B, 1)."""
    rng = np.random.RandomState(0)
    images = rng.randn(SIZES.batch, 3, SIZES.image, SIZES.image).astype(np.float32)
    return images, rng.randint(0, SIZES.classes, (SIZES.batch, 1))


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S

    images, labels = data()
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    x.d, t.d = images, labels
    loss = F.mean(F.softmax_cross_entropy(network(nn, F, PF, x), t))
    solver = S.Momentum(lr=0.01, momentum=0.9)
    solver.set_parameters(nn.get_parameters())

    def step():
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        return loss

    return step


def network(nn, F, PF, x):
    """Class scores (B, K)."""

    def convolution(h, maps, kernel, stride, name):
        pad = (kernel // 2,) * 2
        return PF.convolution(h, maps, (kernel,) * 2, pad=pad, stride=(stride,) * 2, with_bias=False, name=name)

    def block(h, maps, stride):
        shortcut = h
        if h.shape[1] != 4 * maps:
            shortcut = convolution(h, 4 * maps, 1, stride, "shortcut")
            shortcut = PF.batch_normalization(shortcut, name="shortcut")
        h = PF.fused_batch_normalization(convolution(h, maps, 1, 1, "narrow"), name="narrow")
        h = PF.fused_batch_normalization(convolution(h, maps, 3, stride, "middle"), name="middle")
        return PF.fused_batch_normalization(convolution(h, 4 * maps, 1, 1, "wide"), shortcut, name="wide")

    h = PF.fused_batch_normalization(convolution(x, SIZES.stages[0][0], 7, 2, "stem"), name="stem")
    h = F.max_pooling(h, (3, 3), stride=(2, 2), pad=(1, 1))
    for i, (maps, n_blocks) in enumerate(SIZES.stages):
        for j in range(n_blocks):
            with nn.parameter_scope(f"stage{i}/block{j}"):
                h = block(h, maps, 2 if i > 0 and j == 0 else 1)
    return PF.affine(F.global_average_pooling(h), SIZES.classes, name="classifier")


def torch(scope=contextlib.nullcontext):
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net, scope)


def torch_compile(scope=contextlib.nullcontext):
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile, scope)


def _torch(th, prepare, scope):
    def convolution(inputs, maps, kernel, stride):
        return [th.nn.Conv2d(inputs, maps, kernel, stride, kernel // 2, bias=False), th.nn.BatchNorm2d(maps)]

    class Block(th.nn.Module):
        def __init__(self, inputs, maps, stride):
            super().__init__()
            relu = th.nn.ReLU(inplace=True)
            narrow, middle = convolution(inputs, maps, 1, 1), convolution(maps, maps, 3, stride)
            self.main = th.nn.Sequential(*narrow, relu, *middle, relu, *convolution(maps, 4 * maps, 1, 1))
            changes = inputs != 4 * maps
            self.shortcut = th.nn.Sequential(*(convolution(inputs, 4 * maps, 1, stride) if changes else []))

        def forward(self, x):
            return th.nn.functional.relu(self.main(x) + self.shortcut(x), inplace=True)

    inputs = SIZES.stages[0][0]
    layers = [*convolution(3, inputs, 7, 2), th.nn.ReLU(inplace=True), th.nn.MaxPool2d(3, 2, 1)]
    for i, (maps, n_blocks) in enumerate(SIZES.stages):
        for j in range(n_blocks):
            layers.append(Block(inputs, maps, 2 if i > 0 and j == 0 else 1))
            inputs = 4 * maps
    layers += [th.nn.AdaptiveAvgPool2d(1), th.nn.Flatten(), th.nn.Linear(inputs, SIZES.classes)]
    net = prepare(th.nn.Sequential(*layers).to(memory_format=th.channels_last))
    optimizer = th.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    images, labels = data()
    x, t = th.from_numpy(images).contiguous(memory_format=th.channels_last), th.from_numpy(labels[:, 0])

    def step():
        optimizer.zero_grad()
        with scope():
            loss = th.nn.functional.cross_entropy(net(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return step
