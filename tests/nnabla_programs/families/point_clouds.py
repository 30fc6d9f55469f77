"""Sets of points: a learned rotation, shared layers over points, the maximum, an orthogonality penalty, farthest points."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(18)
B, POINTS = 4, 16


def shared(x, maps, name, no_bias=False):
    return F.relu(PF.batch_normalization(PF.convolution(x, maps, (1,), with_bias=False, name=name), name=name + "_bn", decay_rate=0.5, no_bias=no_bias))


def rotation(x):
    with nn.parameter_scope("rotation"):
        h = shared(x, 6, "s1")
        h = F.max(h, axis=2)
        h = PF.affine(h, 9, w_init=I.ConstantInitializer(0.01), b_init=np.eye(3).ravel(), name="fc")
        return F.reshape(h, (B, 3, 3))


def network(x):
    turn = rotation(x)
    h = F.batch_matmul(turn, x)
    h = shared(h, 8, "s2")
    local = h
    h = F.max(shared(h, 12, "s3", no_bias=True), axis=2, keepdims=True)
    h = F.concatenate(local, F.broadcast(h, (B, 12, POINTS)), axis=1)
    h = F.max(shared(h, 10, "s4"), axis=2)
    return PF.affine(h, 3, name="head"), turn


def farthest(points, n):
    chosen = [0]
    for _ in range(n - 1):
        gaps = ((points[:, None] - points[None, chosen]) ** 2).sum(axis=2).min(axis=1)
        chosen.append(int(gaps.argmax()))
    return chosen


def cloud(kind):
    p = rng.randn(3, POINTS)
    if kind == 0:
        p /= np.linalg.norm(p, axis=0)
    elif kind == 1:
        p[2] = 0
    return p


x, t = nn.Variable((B, 3, POINTS)), nn.Variable((B, 1))
logits, turn = network(x)
eye = nn.Variable.from_numpy_array(np.tile(np.eye(3, dtype=np.float32), (B, 1, 1)))
penalty = F.mean((F.batch_matmul(turn, turn, transpose_b=True) - eye) ** 2)
penalty.persistent = True
loss = F.mean(F.softmax_cross_entropy(logits, t)) + 0.1 * penalty
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b") and not name.startswith("rotation/fc"):
        p.d = rng.randn(*p.shape) * 0.4
solver = S.Adam(5e-3)
solver.set_parameters(nn.get_parameters())
for step in range(6):
    kinds = rng.randint(0, 3, B)
    x.d, t.d = np.stack([cloud(k) for k in kinds]), kinds[:, None]
    nn.forward_all([loss, penalty])
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, kinds.tolist(), "%.5f %.6f" % (loss.d, penalty.d))
print("farthest", farthest(x.d[0].T, 5))
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
