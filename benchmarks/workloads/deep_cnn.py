"""Thirteen convolutions with batch normalization and tanh on 8 x 8 images, batch 16, Adam; a static graph."""

import numpy as np

from benchmarks.peers.same_names import modules

BATCH = 16
MAPS = (64, *(128,) * 10, 512)


def data():
    """Images (B, 1, 8, 8) and labels (B, 1)."""
    rng = np.random.RandomState(0)
    return rng.rand(BATCH, 1, 8, 8).astype(np.float32), rng.randint(0, 10, (BATCH, 1))


def nn_core():
    """Build a static graph."""
    return static(*modules("nn_core"))


def nnabla():
    """Build a static graph."""
    return static(*modules("nnabla"))


def network(nn, F, PF, x):
    """Class scores (B, 10)."""
    h = x
    for i, maps in enumerate(MAPS):
        with nn.parameter_scope(f"conv{i}"):
            h = F.tanh(PF.batch_normalization(PF.convolution(h, maps, (3, 3), pad=(1, 1))))
    h = F.average_pooling(h, (2, 2))
    with nn.parameter_scope("fc"):
        h = F.tanh(PF.affine(h, 1024))
    with nn.parameter_scope("classifier"):
        return PF.affine(h, 10)


def static(nn, F, PF, S):
    """Build once, run many times."""
    images, labels = data()
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    loss = F.mean(F.softmax_cross_entropy(network(nn, F, PF, x), t))
    solver = S.Adam(alpha=1e-3)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = images, labels
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()

    return step


def dynamic(nn, F, PF, S):
    """Build anew in each step."""
    images, labels = data()
    x, t = nn.Variable(images.shape), nn.Variable(labels.shape)
    network(nn, F, PF, x)
    solver = S.Adam(alpha=1e-3)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = images, labels
        with nn.auto_forward():
            loss = F.mean(F.softmax_cross_entropy(network(nn, F, PF, x), t))
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
    layers, n_maps = [], 1
    for maps in MAPS:
        layers += [th.nn.Conv2d(n_maps, maps, 3, padding=1), th.nn.BatchNorm2d(maps), th.nn.Tanh()]
        n_maps = maps
    layers += [
        th.nn.AvgPool2d(2),
        th.nn.Flatten(),
        th.nn.Linear(n_maps * 16, 1024),
        th.nn.Tanh(),
        th.nn.Linear(1024, 10),
    ]
    net = prepare(th.nn.Sequential(*layers))
    optimizer = th.optim.Adam(net.parameters(), 1e-3)
    images, labels = data()
    x, t = th.from_numpy(images), th.from_numpy(labels[:, 0])

    def step():
        optimizer.zero_grad()
        th.nn.functional.cross_entropy(net(x), t).backward()
        optimizer.step()

    return step


def jax():
    """One jitted function for the whole step."""
    import jax.numpy as jnp

    from benchmarks.peers import jax_training as T

    rng = np.random.default_rng(0)
    layers, statistics, n_maps = [], [], 1
    for maps in MAPS:
        norm, running = T.normalization(maps)
        layers.append((T.weights(rng, 3, 3, n_maps, maps), jnp.zeros(maps), norm))
        statistics.append(running)
        n_maps = maps
    ends = [(T.weights(rng, *sizes), jnp.zeros(sizes[1])) for sizes in ((n_maps * 16, 1024), (1024, 10))]
    images, labels = data()
    x, t = jnp.asarray(images.transpose(0, 2, 3, 1)), jnp.asarray(labels[:, 0])

    def loss(parameters, statistics):
        (layers, ends), h, new = parameters, x, []
        for (w, b, norm), old in zip(layers, statistics, strict=True):
            h, running = T.batch_normalization(T.convolution(h, w) + b, norm, old)
            h = jnp.tanh(h)
            new.append(running)
        h = h.reshape(BATCH, 4, 2, 4, 2, n_maps).mean((2, 4)).reshape(BATCH, -1)
        (w, b), (last_w, last_b) = ends
        return T.cross_entropy(jnp.tanh(h @ w + b) @ last_w + last_b, t), new

    return T.training_step(loss, (layers, ends), T.adam(1e-3), statistics)
