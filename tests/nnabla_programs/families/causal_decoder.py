"""A language model with causal attention and tied embeddings; warm-up and cosine; greedy text."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S
from nnabla.utils.learning_rate_scheduler import CosineScheduler, LinearWarmupScheduler

TEXT = "the cat sat on the mat and the dog sat on the log "
CHARS = sorted(set(TEXT))
T, D, HEADS = 10, 12, 3
rng = np.random.RandomState(10)


def block(h):
    b, t, _ = h.shape
    x = PF.layer_normalization(h, batch_axis=(0, 1), name="ln1")
    qkv = PF.affine(x, 3 * D, base_axis=2, name="qkv")
    q, k, v = F.split(F.transpose(F.reshape(qkv, (b, t, 3, HEADS, D // HEADS)), (2, 0, 3, 1, 4)), axis=0)
    mask = F.constant(0, (t, t)) + nn.Variable.from_numpy_array(np.triu(np.full((t, t), -1e9, np.float32), 1))
    w = F.softmax(F.batch_matmul(q, k, transpose_b=True) * (HEADS / D) ** 0.5 + F.reshape(mask, (1, 1, t, t)))
    out = F.reshape(F.transpose(F.batch_matmul(w, v), (0, 2, 1, 3)), (b, t, D))
    h = h + PF.affine(out, D, base_axis=2, with_bias=False, name="proj")
    x = PF.layer_normalization(h, batch_axis=(0, 1), name="ln2")
    return h + PF.affine(F.swish(PF.affine(x, 2 * D, base_axis=2, name="up")), D, base_axis=2, name="down")


def model(tokens):
    table = nn.parameter.get_parameter_or_create("table", (len(CHARS), D))
    places = nn.parameter.get_parameter_or_create("places", (T, D))
    h = F.embed(tokens, table) + F.reshape(places[:tokens.shape[1]], (1, tokens.shape[1], D))
    for i in range(2):
        with nn.parameter_scope("block%d" % i):
            h = block(h)
    h = PF.layer_normalization(h, batch_axis=(0, 1), name="last")
    return F.affine(h, F.transpose(table, (1, 0)), base_axis=2)


ids = np.array([CHARS.index(c) for c in TEXT])
x, t = nn.Variable((4, T)), nn.Variable((4, T, 1))
logits = model(x)
loss = F.mean(F.softmax_cross_entropy(logits, t, axis=2))
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b", "table", "places"):
        p.d = rng.randn(*p.shape) * 0.2
solver = S.Adam(1e-2)
solver.set_parameters(nn.get_parameters())
schedule = LinearWarmupScheduler(CosineScheduler(1e-2, 12), warmup_iter=3)
for step in range(10):
    starts = rng.randint(0, len(ids) - T - 1, 4)
    x.d = np.stack([ids[s:s + T] for s in starts])
    t.d = np.stack([ids[s + 1:s + T + 1] for s in starts])[..., None]
    solver.set_learning_rate(schedule.get_learning_rate(step))
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    norm = np.sqrt(sum((p.g ** 2).sum() for p in nn.get_parameters().values()))
    solver.clip_grad_by_norm(5.0)
    solver.update()
    print("step", step, "%.6f" % solver.learning_rate(), "%.5f %.4f" % (loss.d, norm))
text = "the "
with nn.auto_forward(), nn.no_grad():
    for _ in range(8):
        recent = np.array([[CHARS.index(c) for c in text[-T:]]])
        y = model(nn.Variable.from_numpy_array(recent))
        text += CHARS[int(np.argmax(y.d[0, -1]))]
print(repr(text))
