"""Graph convolution and graph attention on a ring of communities, with a mask of known labels."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(17)
N, FEATURES, CLASSES = 12, 5, 3
groups = np.arange(N) // 4
chance = np.where(groups[:, None] == groups[None], 0.8, 0.1)
upper = np.triu(rng.rand(N, N) < chance, 1)
adjacency = (upper | upper.T).astype(np.float32) + np.eye(N, dtype=np.float32)
degree = adjacency.sum(axis=1)
normal = nn.Variable.from_numpy_array(adjacency / np.sqrt(degree[:, None] * degree[None]))
closed = nn.Variable.from_numpy_array(np.where(adjacency > 0, 0.0, -1e4).astype(np.float32))


def convolution(h, maps, name):
    with nn.parameter_scope(name):
        return F.affine(normal, PF.affine(h, maps, with_bias=False)) + nn.parameter.get_parameter_or_create("bias", (1, maps))


def attention(h, maps, heads, name):
    outs = []
    for head in range(heads):
        with nn.parameter_scope("%s/%d" % (name, head)):
            w = PF.affine(h, maps, with_bias=False, name="w")
            left, right = PF.affine(w, 1, with_bias=False, name="l"), PF.affine(w, 1, with_bias=False, name="r")
            e = F.leaky_relu(F.broadcast(left, (N, N)) + F.broadcast(F.transpose(right, (1, 0)), (N, N)), 0.2)
            outs.append(F.affine(F.softmax(e + closed, axis=1), w))
    return F.concatenate(*outs, axis=1) if heads > 1 else outs[0]


def accuracy(y):
    return float((y.d.argmax(axis=1) == groups).mean())


x = nn.Variable.from_numpy_array((np.eye(CLASSES)[groups] @ rng.randn(CLASSES, FEATURES) + rng.randn(N, FEATURES)).astype(np.float32))
labels = nn.Variable.from_numpy_array(groups.reshape(N, 1))
known = nn.Variable.from_numpy_array((np.arange(N) % 2 == 0).astype(np.float32).reshape(N, 1))
networks = {
    "convolution": convolution(F.relu(convolution(x, 6, "c1")), CLASSES, "c2"),
    "attention": attention(F.elu(attention(x, 3, 2, "a1")), CLASSES, 1, "a2"),
}
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.4
for kind, y in networks.items():
    y.persistent = True
    loss = F.sum(F.softmax_cross_entropy(y, labels) * known) / F.sum(known)
    params = {k: p for k, p in nn.get_parameters().items() if k[0] == kind[0]}
    solver = S.Nesterov(0.1, 0.9)
    solver.set_parameters(params)
    for step in range(8):
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(5e-4)
        solver.update()
        if step % 2 == 0:
            print(kind, step, "%.5f %.3f" % (loss.d, accuracy(y)))
    for name, p in sorted(params.items()):
        print(name, p.shape, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
