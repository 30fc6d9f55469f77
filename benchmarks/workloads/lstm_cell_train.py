"""The LSTM of lstm_train, made of 20 cells; a static graph."""

import numpy as np

from benchmarks.workloads.lstm_train import BATCH, INPUTS, STATES, jax_step, static, torch_step


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S

    return static(nn, F, S, lambda x: _network(nn, F, PF, x))


def nnabla():
    """Build a static graph."""
    import nnabla as nn
    import nnabla.functions as F
    import nnabla.parametric_functions as PF
    import nnabla.solvers as S

    return static(nn, F, S, lambda x: _network(nn, F, PF, x))


def _network(nn, F, PF, x):
    h, c = (nn.Variable.from_numpy_array(np.zeros((BATCH, STATES), np.float32)) for _ in range(2))
    outputs = []
    for inputs in F.split(x, axis=0):
        h, c = PF.lstm_cell(inputs, h, c, STATES, name="cell")
        outputs.append(h)
    return F.stack(*outputs, axis=0)


def torch():
    """Eager."""
    import torch as th

    return torch_step(th, _torch_network(th))


def torch_compile():
    """Compile the network."""
    import torch as th

    return torch_step(th, th.compile(_torch_network(th)))


def _torch_network(th):
    class Cells(th.nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = th.nn.LSTMCell(INPUTS, STATES)

        def forward(self, x):
            state, outputs = None, []
            for inputs in x:
                state = self.cell(inputs, state)
                outputs.append(state[0])
            return th.stack(outputs), state

    return Cells()


def jax():
    """One jitted function for the whole step; the cells are unrolled."""
    import jax.numpy as jnp

    def unrolled(cell, state, x):
        outputs = []
        for inputs in x:
            state, h = cell(state, inputs)
            outputs.append(h)
        return jnp.stack(outputs)

    return jax_step(unrolled, jnp)
