"""Causal attention of 8 heads over 2,048 tokens with 64 features, forward and backward; a static graph."""

import numpy as np

SHAPE = (1, 8, 2048, 64)


def data():
    """Random queries, keys and values."""
    rng = np.random.RandomState(0)
    return [rng.randn(*SHAPE).astype(np.float32) for _ in range(3)]


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F

    variables = [nn.Variable.from_numpy_array(array, need_grad=True) for array in data()]
    y = F.scaled_dot_product_attention(*variables, is_causal=True)

    def step():
        y.forward(clear_no_need_grad=True)
        for variable in variables:
            variable.grad.zero()
        y.backward(clear_buffer=True)

    return step


def torch():
    """Eager; `torch.nn.functional.scaled_dot_product_attention` chooses its kernel."""
    import torch as th

    return _torch(th, lambda function: function)


def torch_compile():
    """Compile the call."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    tensors = [th.from_numpy(array).requires_grad_() for array in data()]

    def attend(q, k, v):
        return th.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    prepared, start = prepare(attend), th.ones(SHAPE)

    def step():
        for tensor in tensors:
            tensor.grad = None
        prepared(*tensors).backward(start)

    return step


def jax():
    """One jitted gradient of the sum of `jax.nn.dot_product_attention`."""
    import jax as jx
    import jax.numpy as jnp

    arrays = [jnp.asarray(np.swapaxes(array, 1, 2)) for array in data()]  # JAX has the heads after the tokens

    def total(q, k, v):
        return jx.nn.dot_product_attention(q, k, v, is_causal=True).sum()

    compiled = jx.jit(jx.value_and_grad(total, argnums=(0, 1, 2)))

    def step():
        jx.block_until_ready(compiled(*arrays))

    return step
