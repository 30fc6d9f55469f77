"""Embeddings by triplets with the hardest partners of a batch, by contrast of pairs, and by an angular margin."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(22)
CLASSES, EACH, FEATURES, D = 4, 3, 6, 4
B = CLASSES * EACH
centres = rng.randn(CLASSES, FEATURES) * 1.5
labels = np.repeat(np.arange(CLASSES), EACH)
same = (labels[:, None] == labels[None]).astype(np.float32)


def embed(x):
    with nn.parameter_scope("net"):
        h = F.relu(PF.affine(x, 10, name="fc1"))
        return F.norm_normalization(PF.affine(h, D, name="fc2"), axes=1)


def distances(e):
    squares = F.sum(e ** 2, axis=1, keepdims=True)
    product = F.affine(e, F.transpose(e, (1, 0)))
    return F.maximum_scalar(squares + F.transpose(squares, (1, 0)) - 2 * product, 0.0)


x = nn.Variable((B, FEATURES))
e = embed(x)
mask, eye = nn.Variable.from_numpy_array(same), nn.Variable.from_numpy_array(np.eye(B, dtype=np.float32))
d = (distances(e) + 1e-6) ** 0.5
farthest = F.max(d * mask, axis=1)
nearest = F.min(d + 1e3 * mask, axis=1)
triplet = F.mean(F.relu(farthest - nearest + 0.3))
contrast = F.mean(mask * d ** 2 + (1 - mask) * F.relu(1.0 - d) ** 2)
with nn.parameter_scope("margin"):
    w = nn.parameter.get_parameter_or_create("W", (D, CLASSES))
cosine = F.affine(e, F.norm_normalization(w, axes=0))
angle = F.acos(F.clip_by_value(cosine, -0.999, 0.999))
target = nn.Variable.from_numpy_array(labels[:, None])
marked = F.cos(angle + 0.2 * F.one_hot(target, (CLASSES,)))
margin = F.mean(F.softmax_cross_entropy(8.0 * marked, target))
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.4
start = {name: p.d.copy() for name, p in nn.get_parameters().items()}
for kind, loss in (("triplet", triplet), ("contrast", contrast), ("margin", margin)):
    for name, p in nn.get_parameters().items():
        p.d = start[name]
    solver = S.Adam(1e-2)
    solver.set_parameters(nn.get_parameters())
    draw = np.random.RandomState(5)
    for step in range(6):
        x.d = centres[labels] + draw.randn(B, FEATURES) * 0.5
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        if step % 2 == 0:
            print(kind, step, "%.5f" % loss.d)
    d.forward()
    order = np.argsort(d.d + 1e3 * np.eye(B), axis=1)[:, 0]
    print(kind, "recall %.3f" % (labels[order] == labels).mean())
    for name, p in sorted(nn.get_parameters().items()):
        print("  ", name, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
