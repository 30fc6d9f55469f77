"""Twenty times affine 32 and relu, batch 32, SGD; a graph of small functions that is built anew in each step."""

import numpy as np

from benchmarks.peers.same_names import dynamic_step, modules

DEPTH, WIDTH, BATCH = 20, 32, 32


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

    def network():
        x.d = values
        h = x
        for i in range(DEPTH):
            h = F.relu(PF.affine(h, WIDTH, name=f"fc{i}"))
        return F.mean(h)

    network()
    return dynamic_step(nn, S.Sgd(lr=1e-3), network)


def torch():
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net)


def torch_compile():
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile)


def _torch(th, prepare):
    layers = []
    for _ in range(DEPTH):
        layers += [th.nn.Linear(WIDTH, WIDTH), th.nn.ReLU()]
    net = prepare(th.nn.Sequential(*layers))
    optimizer = th.optim.SGD(net.parameters(), 1e-3)
    x = th.from_numpy(data())

    def step():
        optimizer.zero_grad()
        net(x).mean().backward()
        optimizer.step()

    return step


def jax():
    """One jitted function for the whole step."""
    import jax as jx
    import jax.numpy as jnp

    from benchmarks.peers.jax_training import sgd, training_step, weights

    rng = np.random.default_rng(0)
    parameters = [(weights(rng, WIDTH, WIDTH), jnp.zeros(WIDTH)) for _ in range(DEPTH)]
    x = jnp.asarray(data())

    def loss(parameters, _):
        h = x
        for w, b in parameters:
            h = jx.nn.relu(h @ w + b)
        return jnp.mean(h), ()

    return training_step(loss, parameters, sgd(1e-3))
