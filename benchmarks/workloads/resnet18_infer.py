"""ResNet-18 with its running statistics on one image of 3 x 224 x 224; a static graph."""

import numpy as np

from benchmarks.workloads.resnet18_train import network, torch_network


def data():
    """One image."""
    return np.random.RandomState(0).randn(1, 3, 224, 224).astype(np.float32)


def nn_core():
    """Static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF

    return _static(nn, F, PF)


def nnabla():
    """Static graph."""
    import nnabla as nn
    import nnabla.functions as F
    import nnabla.parametric_functions as PF

    return _static(nn, F, PF)


def _static(nn, F, PF):
    image = data()
    x = nn.Variable(image.shape)
    y = network(nn, F, PF, x, batch_stat=False)

    def step():
        x.d = image
        y.forward(clear_buffer=True)
        return y

    return step


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net)


def torch_compile():
    """The network compiled."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    net = prepare(torch_network(th).eval())
    x = th.from_numpy(data())

    def step():
        with th.inference_mode():
            return net(x)

    return step
