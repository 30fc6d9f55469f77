"""2-4-8-4-2-1 tanh multi-layer perceptron, batch 100, squared error, Adam; a static graph of tiny functions."""

import itertools

import numpy as np

from benchmarks.peers.same_names import modules

SIZES = (4, 8, 4, 2)
BATCH = 100


def data():
    """Points in the square and their distances from the origin."""
    x = np.random.RandomState(0).uniform(-1, 1, (BATCH, 2)).astype(np.float32)
    return x, np.sqrt((x**2).sum(axis=1, keepdims=True))


def nn_core():
    """Build a static graph."""
    return _vocabulary_of_nnabla(*modules("nn_core"))


def nnabla():
    """Build a static graph."""
    return _vocabulary_of_nnabla(*modules("nnabla"))


def _vocabulary_of_nnabla(nn, F, PF, S):
    points, distances = data()
    x, t = nn.Variable((BATCH, 2)), nn.Variable((BATCH, 1))
    h = x
    for i, size in enumerate(SIZES):
        h = F.tanh(PF.affine(h, size, name=f"fc{i}"))
    loss = F.reduce_mean(F.squared_error(PF.affine(h, 1, name="fc"), t))
    solver = S.Adam(alpha=0.01)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = points, distances
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net)


def torch_compile():
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    layers, n_inputs = [], 2
    for size in SIZES:
        layers += [th.nn.Linear(n_inputs, size), th.nn.Tanh()]
        n_inputs = size
    net = prepare(th.nn.Sequential(*layers, th.nn.Linear(n_inputs, 1)))
    optimizer = th.optim.Adam(net.parameters(), 0.01)
    x, t = (th.from_numpy(array) for array in data())

    def step():
        optimizer.zero_grad()
        th.nn.functional.mse_loss(net(x), t).backward()
        optimizer.step()

    return step


def jax():
    """One jitted function for the whole step."""
    import jax.numpy as jnp

    from benchmarks.peers.jax_training import adam, training_step, weights

    rng = np.random.default_rng(0)
    parameters = [(weights(rng, a, b), jnp.zeros(b)) for a, b in itertools.pairwise((2, *SIZES, 1))]
    points, distances = (jnp.asarray(array) for array in data())

    def loss(parameters, _):
        h = points
        for w, b in parameters[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = parameters[-1]
        return jnp.mean((h @ w + b - distances) ** 2), ()

    return training_step(loss, parameters, adam(0.01))
