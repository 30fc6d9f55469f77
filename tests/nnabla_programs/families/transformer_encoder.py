"""A classifier of sequences: embeddings, sines as positions, masked attention, a [CLS] token."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(9)
B, T, D, HEADS, WORDS = 3, 7, 8, 2, 11


def positions():
    angles = np.arange(T)[:, None] / np.power(100.0, np.arange(0, D, 2) / D)[None]
    table = np.zeros((T, D), np.float32)
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return nn.Variable.from_numpy_array(table[None])


def split_heads(h):
    return F.transpose(F.reshape(h, (B, T, HEADS, D // HEADS)), (0, 2, 1, 3))


def attention(h, mask):
    q, k, v = [split_heads(PF.affine(h, D, base_axis=2, name=n, with_bias=n != "k")) for n in ("q", "k", "v")]
    scores = F.batch_matmul(q, k, transpose_b=True) / np.sqrt(D // HEADS) + mask
    weights = F.softmax(scores, axis=3)
    out = F.reshape(F.transpose(F.batch_matmul(weights, v), (0, 2, 1, 3)), (B, T, D))
    return PF.affine(out, D, base_axis=2, name="o"), weights


def encoder(tokens, mask, layers=2):
    h = PF.embed(tokens, WORDS, D, name="words") * D ** 0.5 + positions()
    for i in range(layers):
        with nn.parameter_scope("layer%d" % i):
            a, weights = attention(PF.layer_normalization(h, batch_axis=(0, 1), name="ln1"), mask)
            h = h + a
            f = PF.affine(PF.layer_normalization(h, batch_axis=(0, 1), name="ln2"), 2 * D, base_axis=2, name="ff1")
            h = h + PF.affine(F.gelu(f), D, base_axis=2, name="ff2")
    return h, weights


tokens, lengths, labels = nn.Variable((B, T)), nn.Variable((B, 1, 1, T)), nn.Variable((B, 1))
h, weights = encoder(tokens, (1.0 - lengths) * -1e4)
weights.persistent = True
logits = PF.affine(h[:, 0], 4, name="head")
loss = F.mean(F.softmax_cross_entropy(logits, labels))
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.2
solver = S.Adam(5e-3)
solver.set_parameters(nn.get_parameters())
for step in range(6):
    n = rng.randint(3, T + 1, B)
    tokens.d, labels.d = rng.randint(0, WORDS, (B, T)), rng.randint(0, 4, (B, 1))
    lengths.d = (np.arange(T)[None] < n[:, None]).reshape(B, 1, 1, T)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.scale_grad(0.5)
    solver.update()
    print("step", step, n.tolist(), "%.5f" % loss.d)
print("weights", np.round(weights.d[0, 0, 0], 5).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
