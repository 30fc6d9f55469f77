"""Larger images: residual blocks, pixels moved from channels, a loss of edges, and the quality."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(35)
B, LOW, R, MAPS = 2, 6, 2, 6


def residual(x, name):
    with nn.parameter_scope(name):
        h = F.prelu(PF.convolution(x, MAPS, (3, 3), pad=(1, 1), name="c1"), nn.parameter.get_parameter_or_create("slope", (1,), np.array([0.25])))
        return x + 0.5 * PF.convolution(h, MAPS, (3, 3), pad=(1, 1), name="c2")


def shuffle(x):
    n, c, h, w = x.shape
    x = F.transpose(F.reshape(x, (n, c // R ** 2, R, R, h, w)), (0, 1, 4, 2, 5, 3))
    return F.reshape(x, (n, c // R ** 2, h * R, w * R))


def enlarge(x):
    body = head = PF.convolution(F.pad(x, (1, 1, 1, 1), mode="reflect"), MAPS, (3, 3), name="head")
    for i in range(2):
        body = residual(body, "block%d" % i)
    body = head + PF.convolution(body, MAPS, (3, 3), pad=(1, 1), apply_w=lambda w: F.weight_standardization(w, 0), name="tail")
    y = shuffle(PF.convolution(body, 3 * R ** 2, (3, 3), pad=(1, 1), name="up"))
    return y + F.interpolate(x, scale=(R, R), mode="linear", align_corners=False)


def quality(a, b):
    return -10 * np.log10(np.mean((np.clip(a, 0, 1) - np.clip(b, 0, 1)) ** 2))


x, y = nn.Variable((B, 3, LOW, LOW)), nn.Variable((B, 3, LOW * R, LOW * R))
made = enlarge(x)
made.persistent = True
edges = F.mean(F.abs((made - y)[:, :, 1:] - (made - y)[:, :, :-1]))
loss = F.mean(F.pow_scalar(F.squared_error(made, y) + 1e-6, 0.5)) + 0.1 * edges
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.1
        print(name, p.shape)
solver = S.Lamb(1e-2)
solver.set_parameters(nn.get_parameters())
angles = rng.uniform(0, 2 * np.pi, 3)
for step in range(6):
    grid = np.arange(LOW * R)[None, None, :, None] * rng.uniform(0.2, 0.6, (B, 3, 1, 1))
    grid = grid + np.arange(LOW * R)[None, None, None] * rng.uniform(0.2, 0.6, (B, 3, 1, 1)) + angles[None, :, None, None]
    y.d = 0.5 + 0.4 * np.sin(grid)
    x.d = y.d.reshape(B, 3, LOW, R, LOW, R).mean(axis=(3, 5))
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, "%.5f quality %.3f" % (loss.d, quality(made.d, y.d)))
for name, p in sorted(nn.get_parameters().items()):
    print(name, "%.5f" % np.linalg.norm(p.d))
