"""Word vectors by negative samples: two tables, a unigram distribution, updates of rows, neighbours."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.utils.data_iterator import data_iterator_simple

rng = np.random.RandomState(15)
WORDS, D, NEGATIVE, BATCH = 14, 6, 3, 10
text = np.concatenate([np.arange(i, i + 4) % WORDS for i in rng.randint(0, WORDS, 40)])
counts = np.bincount(text, minlength=WORDS) ** 0.75
frequency = counts / counts.sum()
pairs = [(text[i], text[i + d]) for i in range(2, len(text) - 2) for d in (-2, -1, 1, 2)]


def load(i):
    centre, near = pairs[i]
    return np.array([centre]), np.array([near])


batches = data_iterator_simple(load, len(pairs), BATCH, shuffle=False, with_memory_cache=False, with_file_cache=False)
centre, near, far = nn.Variable((BATCH, 1)), nn.Variable((BATCH, 1)), nn.Variable((BATCH, NEGATIVE))
v = PF.embed(centre, WORDS, D, name="inner")
with nn.parameter_scope("outer"):
    table = nn.parameter.get_parameter_or_create("W", (WORDS, D))
positive = F.sum(v * F.embed(near, table), axis=2)
negative = F.sum(F.broadcast(v, (BATCH, NEGATIVE, D)) * F.embed(far, table), axis=2)
loss = F.mean(F.sum(F.softplus(-positive), axis=1) + F.sum(F.softplus(negative), axis=1))
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.uniform(-0.5, 0.5, p.shape) / D * 4
    print(name, p.shape)
solver = S.Sgd(0.3)
solver.set_parameters(nn.get_parameters())
total = 0.0
for step in range(60):
    centre.d, near.d = batches.next()
    far.d = rng.choice(WORDS, (BATCH, NEGATIVE), p=frequency)
    solver.set_learning_rate(0.3 * (1 - step / 60.0))
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    total += float(loss.d)
    if step % 20 == 19:
        print("step", step, "%.5f" % (total / 20))
        total = 0.0
batches.close()
vectors = nn.get_parameters()["inner/embed/W"].d
unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
print("nearest", (unit @ unit.T - 2 * np.eye(WORDS)).argmax(axis=1).tolist())
print("norms", np.round(np.linalg.norm(vectors, axis=1), 4).tolist())
