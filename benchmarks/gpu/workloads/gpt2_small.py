"""The blocks of GPT-2 small (Radford et al., 2019): 12 of width 768 with 12 heads, 8 sequences of 1024 tokens, Adam.

Attention is causal; embeddings and the head are left out, the outputs are compared with targets. A static graph.
"""

import contextlib
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Sizes:
    """Sizes of the sequences and of the network."""

    blocks: int = 12
    batch: int = 8
    tokens: int = 1024
    width: int = 768
    heads: int = 12


SIZES = Sizes()


def shrink():
    """Make it small enough for a trial on a CPU."""
    global SIZES  # noqa: PLW0603 -- chosen once in a process of its own
    SIZES = replace(SIZES, blocks=1, batch=2, tokens=8, width=16, heads=2)


def data():
    """Tokens (B, T, D) and what the outputs shall be."""
    rng = np.random.RandomState(0)
    return tuple(rng.randn(SIZES.batch, SIZES.tokens, SIZES.width).astype(np.float32) for _ in range(2))


def nn_core():
    """Build a static graph."""
    import nn_core as nn
    import nn_core.functions as F
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S

    tokens, targets = data()
    x, t = nn.Variable(tokens.shape), nn.Variable(targets.shape)
    x.d, t.d = tokens, targets
    loss = F.mean(F.squared_error(network(nn, F, PF, x), t))
    solver = S.Adam(alpha=1e-4)
    solver.set_parameters(nn.get_parameters())

    def step():
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
        return loss

    return step


def network(nn, F, PF, x):
    """Return the blocks: (B, T, D) -> (B, T, D)."""
    batch, tokens, width, heads = SIZES.batch, SIZES.tokens, SIZES.width, SIZES.heads

    def attention(h):
        qkv = F.reshape(PF.affine(h, 3 * width, base_axis=2, name="qkv"), (batch, tokens, 3, heads, width // heads))
        query, key, value = F.split(F.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        mixed = F.transpose(F.scaled_dot_product_attention(query, key, value, is_causal=True), (0, 2, 1, 3))
        return PF.affine(F.reshape(mixed, (batch, tokens, width)), width, base_axis=2, name="output")

    h = x
    for i in range(SIZES.blocks):
        with nn.parameter_scope(f"block{i}"):
            h = h + attention(PF.layer_normalization(h, batch_axis=(0, 1), name="before_attention"))
            wide = PF.layer_normalization(h, batch_axis=(0, 1), name="before_feed_forward")
            wide = F.gelu(PF.affine(wide, 4 * width, base_axis=2, name="widen"))
            h = h + PF.affine(wide, width, base_axis=2, name="narrow")
    return h


def torch(scope=contextlib.nullcontext):
    """Eager."""
    import torch as th

    return _torch(th, lambda net: net, scope)


def torch_compile(scope=contextlib.nullcontext):
    """Compile the network."""
    import torch as th

    return _torch(th, th.compile, scope)


def _torch(th, prepare, scope):
    width, heads = SIZES.width, SIZES.heads

    class Block(th.nn.Module):
        def __init__(self):
            super().__init__()
            self.before_attention, self.before_feed_forward = th.nn.LayerNorm(width), th.nn.LayerNorm(width)
            self.qkv, self.output = th.nn.Linear(width, 3 * width), th.nn.Linear(width, width)
            self.widen, self.narrow = th.nn.Linear(width, 4 * width), th.nn.Linear(4 * width, width)

        def forward(self, x):
            n_sequences, n_tokens, _ = x.shape
            qkv = self.qkv(self.before_attention(x)).view(n_sequences, n_tokens, 3, heads, width // heads)
            query, key, value = qkv.permute(2, 0, 3, 1, 4)
            mixed = th.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.output(mixed.transpose(1, 2).reshape(x.shape))
            wide = self.widen(self.before_feed_forward(x))
            return x + self.narrow(th.nn.functional.gelu(wide, approximate="tanh"))

    net = prepare(th.nn.Sequential(*[Block() for _ in range(SIZES.blocks)]))
    optimizer = th.optim.Adam(net.parameters(), 1e-4, fused=True)
    x, t = (th.from_numpy(array) for array in data())

    def step():
        optimizer.zero_grad()
        with scope():
            loss = th.nn.functional.mse_loss(net(x), t)
        loss.backward()
        optimizer.step()
        return loss

    return step
