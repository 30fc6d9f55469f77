"""Two Transformer blocks, 8 sequences of 128 tokens of 256 features, 8 heads, squared error, Adam; a static graph.

Layer normalization precedes attention and the feed-forward part, which is four times as wide.
"""

import contextlib

import numpy as np

from benchmarks.peers.same_names import modules

BLOCKS, BATCH, TOKENS, WIDTH, HEADS = 2, 8, 128, 256, 8


def data():
    """Tokens (B, T, D) and what the outputs shall be."""
    rng = np.random.RandomState(0)
    return tuple(rng.randn(BATCH, TOKENS, WIDTH).astype(np.float32) for _ in range(2))


def nn_core():
    """Build a static graph."""
    return _static(*modules("nn_core"))


def nnabla():
    """Build a static graph."""
    return _static(*modules("nnabla"))


def _network(nn, F, PF, x):
    def heads(h, name):
        h = F.reshape(PF.affine(h, WIDTH, base_axis=2, name=name), (BATCH, TOKENS, HEADS, WIDTH // HEADS))
        return F.transpose(h, (0, 2, 1, 3))

    def attention(h):
        query, key, value = (heads(h, name) for name in ("query", "key", "value"))
        scores = F.batch_matmul(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        mixed = F.transpose(F.batch_matmul(F.softmax(scores, axis=3), value), (0, 2, 1, 3))
        return PF.affine(F.reshape(mixed, (BATCH, TOKENS, WIDTH)), WIDTH, base_axis=2, name="output")

    h = x
    for i in range(BLOCKS):
        with nn.parameter_scope(f"block{i}"):
            h = h + attention(PF.layer_normalization(h, batch_axis=(0, 1), name="before_attention"))
            wide = PF.layer_normalization(h, batch_axis=(0, 1), name="before_feed_forward")
            wide = F.gelu(PF.affine(wide, 4 * WIDTH, base_axis=2, name="widen"))
            h = h + PF.affine(wide, WIDTH, base_axis=2, name="narrow")
    return h


def _static(nn, F, PF, S):
    tokens, targets = data()
    x, t = nn.Variable(tokens.shape), nn.Variable(targets.shape)
    loss = F.mean(F.squared_error(_network(nn, F, PF, x), t))
    solver = S.Adam(alpha=1e-3)
    solver.set_parameters(nn.get_parameters())

    def step():
        x.d, t.d = tokens, targets
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


def train_torch(th, prepare, scope=contextlib.nullcontext):
    """Return a training step whose forward pass runs in `scope`."""
    block = th.nn.TransformerEncoderLayer(
        WIDTH, HEADS, 4 * WIDTH, 0.0, th.nn.GELU(approximate="tanh"), batch_first=True, norm_first=True
    )
    net = prepare(th.nn.TransformerEncoder(block, BLOCKS, enable_nested_tensor=False))
    optimizer = th.optim.Adam(net.parameters(), 1e-3)
    x, t = (th.from_numpy(array) for array in data())

    def step():
        optimizer.zero_grad()
        with scope():
            loss = th.nn.functional.mse_loss(net(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return step


def jax():
    """One jitted function for the whole step."""
    import jax as jx
    import jax.numpy as jnp

    from benchmarks.peers.jax_training import adam, training_step, weights

    def normalized(x):
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * jx.lax.rsqrt(variance + 1e-5)

    def affine(p, x):
        return x @ p["weight"] + p["bias"]

    def heads(x):
        return x.reshape(BATCH, TOKENS, HEADS, -1).transpose(0, 2, 1, 3)

    def network(parameters, x):
        for p in parameters:
            h = p["scale1"] * normalized(x) + p["shift1"]
            query, key, value = (heads(affine(p[name], h)) for name in ("query", "key", "value"))
            scores = jx.nn.softmax(query @ key.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5)
            x = x + affine(p["output"], (scores @ value).transpose(0, 2, 1, 3).reshape(x.shape))
            h = p["scale2"] * normalized(x) + p["shift2"]
            x = x + affine(p["narrow"], jx.nn.gelu(affine(p["widen"], h)))
        return x

    rng = np.random.default_rng(0)

    def layer(*sizes):
        return {"weight": weights(rng, *sizes), "bias": jnp.zeros(sizes[1])}

    layers = dict.fromkeys(("query", "key", "value", "output"), (WIDTH, WIDTH))
    layers |= {"widen": (WIDTH, 4 * WIDTH), "narrow": (4 * WIDTH, WIDTH)}
    parameters = [
        {
            **{name: layer(*sizes) for name, sizes in layers.items()},
            **{f"scale{k}": jnp.ones(WIDTH) for k in (1, 2)},
            **{f"shift{k}": jnp.zeros(WIDTH) for k in (1, 2)},
        }
        for _ in range(BLOCKS)
    ]
    tokens, targets = (jnp.asarray(array) for array in data())

    def loss(parameters, _):
        return jnp.mean((network(parameters, tokens) - targets) ** 2), ()

    return training_step(loss, parameters, adam(1e-3))
