"""Recomputation in the backward pass changes no number."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

rng = np.random.RandomState(7)
data = rng.randn(3, 4).astype(np.float32)


def block(h, name):
    with nn.parameter_scope(name):
        h = PF.affine(h, 5)
        h = F.sigmoid(h)
        h = F.exp(h * 0.3)
        return F.sin(h) * h


def gradients(build):
    for _, p in sorted(nn.get_parameters().items()):
        p.grad.zero()
    x = nn.Variable.from_numpy_array(data)
    loss = build(x)
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * (i + 1.0)).reshape(p.shape) * 0.5
        p.grad.zero()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    return ["%.6f" % loss.d] + ["%.6f" % np.abs(p.g).sum() for _, p in sorted(nn.get_parameters().items())]


def plain(x):
    return F.sum(block(block(x, "one"), "two"))


def within(x):
    with nn.recompute():
        h = block(x, "one")
    return F.sum(block(h, "two"))


@nn.recompute_fn()
def decorated(h):
    return block(h, "one")


def by_decorator(x):
    h = decorated(x)
    with nn.recompute(False):
        return F.sum(block(h, "two"))


print("plain", gradients(plain))
print("within", gradients(within))
print("decorated", gradients(by_decorator))

x = nn.Variable((2, 2), need_grad=True)
with nn.recompute():
    h = F.exp(x)
    with nn.recompute(False):
        g = F.exp(h)
print("flags", x.recompute, h.recompute, g.recompute, F.exp(g).recompute)
g.recompute = True
print("set", g.recompute)
nn.set_global_recompute(True)
print("global", F.exp(x).recompute)
nn.set_global_recompute(False)
print("global", F.exp(x).recompute)
