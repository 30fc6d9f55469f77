"""A one-layer LSTM over 20 steps of 32 samples, 128 inputs and 256 states, squared error, Adam; a static graph."""

import numpy as np

STEPS, BATCH, INPUTS, STATES = 20, 32, 128, 256


def data():
    """Sequences (T, B, I) and what the outputs (T, B, H) shall be."""
    rng = np.random.RandomState(0)
    return rng.randn(STEPS, BATCH, INPUTS).astype(np.float32), rng.rand(STEPS, BATCH, STATES).astype(np.float32)


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S

    return static(nn, F, S, lambda x: _network(nn, PF, x))


def nnabla():
    """Build a static graph."""
    import nnabla as nn
    import nnabla.functions as F
    import nnabla.parametric_functions as PF
    import nnabla.solvers as S

    return static(nn, F, S, lambda x: _network(nn, PF, x))


def _network(nn, PF, x):
    h, c = (nn.Variable.from_numpy_array(np.zeros((1, 1, BATCH, STATES), np.float32)) for _ in range(2))
    return PF.lstm(x, h, c)[0]


def static(nn, F, S, network):
    """Build ``network(x) -> y`` once, run a step many times."""
    sequences, targets = data()
    x, t = nn.Variable(sequences.shape), nn.Variable(targets.shape)
    loss = F.mean(F.squared_error(network(x), t))
    solver = S.Adam(alpha=1e-3)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = sequences, targets
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        return loss

    return step


def torch():
    """Eager."""
    import torch as th

    return torch_step(th, th.nn.LSTM(INPUTS, STATES))


def torch_compile():
    """Compile the network."""
    import torch as th

    return torch_step(th, th.compile(th.nn.LSTM(INPUTS, STATES)))


def torch_step(th, net):
    """Return a step of a module that returns a tuple whose first member is y."""
    optimizer = th.optim.Adam(net.parameters(), 1e-3)
    x, t = (th.from_numpy(array) for array in data())

    def step():
        optimizer.zero_grad()
        loss = th.nn.functional.mse_loss(net(x)[0], t)
        loss.backward()
        optimizer.step()
        return loss

    return step


def jax():
    """One jitted function for the whole step; the cells are scanned."""
    import jax as jx
    import jax.numpy as jnp

    return jax_step(lambda cell, state, x: jx.lax.scan(cell, state, x)[1], jnp)


def jax_step(run, jnp):
    """Return a step whose cells `run` applies to the sequence: ``run(cell, state, x) -> y``."""
    import jax as jx

    from benchmarks.peers.jax_training import adam, training_step, weights

    rng = np.random.default_rng(0)
    parameters = weights(rng, INPUTS, 4 * STATES), weights(rng, STATES, 4 * STATES), jnp.zeros(4 * STATES)
    x, t = (jnp.asarray(array) for array in data())

    def loss(parameters, _):
        w, u, b = parameters
        gates_of_x = x @ w + b

        def cell(state, gates):
            h, c = state
            i, f, g, o = jnp.split(gates + h @ u, 4, axis=1)
            c = jx.nn.sigmoid(f) * c + jx.nn.sigmoid(i) * jnp.tanh(g)
            h = jx.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((BATCH, STATES))
        return jnp.mean((run(cell, (zeros, zeros), gates_of_x) - t) ** 2), ()

    return training_step(loss, parameters, adam(1e-3))
