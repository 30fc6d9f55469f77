"""Five times y <- tanh(1.01 y + 0.1) * sigmoid(y) on 2^20 numbers, forward and backward; a static graph."""

import numpy as np

SIZE, DEPTH = 2**20, 5


def data():
    """Random numbers."""
    return np.random.RandomState(0).randn(SIZE).astype(np.float32)


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F

    return _static(nn, F)


def nnabla():
    """Build a static graph."""
    import nnabla as nn
    import nnabla.functions as F

    return _static(nn, F)


def _static(nn, F):
    x = nn.Variable((SIZE,), need_grad=True)
    x.d = data()
    y = x
    for _ in range(DEPTH):
        y = F.tanh(y * 1.01 + 0.1) * F.sigmoid(y)
    y = F.mean(y)

    def step():
        y.forward(clear_no_need_grad=True)
        x.grad.zero()
        y.backward(clear_buffer=True)

    return step


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda function: function)


def torch_compile():
    """Compile the chain."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    x = th.from_numpy(data()).requires_grad_()

    def chain(y):
        for _ in range(DEPTH):
            y = th.tanh(y * 1.01 + 0.1) * th.sigmoid(y)
        return y.mean()

    prepared = prepare(chain)

    def step():
        x.grad = None
        prepared(x).backward()

    return step


def jax():
    """One jitted gradient."""
    import jax as jx
    import jax.numpy as jnp

    x = jnp.asarray(data())

    def chain(y):
        for _ in range(DEPTH):
            y = jnp.tanh(y * 1.01 + 0.1) * jx.nn.sigmoid(y)
        return y.mean()

    compiled = jx.jit(jx.value_and_grad(chain))

    def step():
        jx.block_until_ready(compiled(x))

    return step
