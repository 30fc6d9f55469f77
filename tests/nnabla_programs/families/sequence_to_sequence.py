"""Translation of digits to their reverse: GRU cells by hand, additive attention, teacher forcing, masks."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(11)
B, T, D, WORDS = 4, 5, 8, 7


def gru_cell(x, h, name):
    with nn.parameter_scope(name):
        gates = F.sigmoid(PF.affine(F.concatenate(x, h, axis=1), 2 * D, name="gates"))
        r, u = gates[:, :D], gates[:, D:]
        new = F.tanh(PF.affine(F.concatenate(x, r * h, axis=1), D, name="new"))
        return u * h + (1 - u) * new


def encode(tokens, mask):
    h = F.constant(0, (B, D))
    states = []
    words = F.split(PF.embed(tokens, WORDS, D, name="source"), axis=1)
    for t, word in enumerate(words):
        fresh = gru_cell(word, h, "encoder")
        keep = mask[:, t:t + 1]
        h = fresh * keep + h * (1 - keep)
        states.append(h)
    return F.stack(*states, axis=1), h


def attend(memory, h, mask):
    keys = PF.affine(memory, D, base_axis=2, name="keys", with_bias=False)
    query = F.reshape(PF.affine(h, D, name="query"), (B, 1, D))
    energy = F.reshape(PF.affine(F.tanh(keys + F.broadcast(query, keys.shape)), 1, base_axis=2, with_bias=False, name="energy"), (B, T))
    weights = F.softmax(energy + (mask - 1) * 1e3)
    context = F.sum(memory * F.reshape(weights, (B, T, 1)), axis=1)
    return context, weights


def decode(memory, h, mask, words):
    outs = []
    for word in words:
        context, weights = attend(memory, h, mask)
        h = gru_cell(F.concatenate(word, context, axis=1), h, "decoder")
        outs.append(PF.affine(h, WORDS, name="out"))
    return F.stack(*outs, axis=1), weights


source, mask, previous, target = nn.Variable((B, T)), nn.Variable((B, T)), nn.Variable((B, T)), nn.Variable((B, T, 1))
memory, h = encode(source, mask)
words = F.split(PF.embed(previous, WORDS, D, name="target"), axis=1)
logits, weights = decode(memory, h, mask, words)
weights.persistent = True
costs = F.reshape(F.softmax_cross_entropy(logits, target, axis=2), (B, T))
loss = F.sum(costs * mask) / F.sum(mask)
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.3
solver = S.Adam(1e-2)
solver.set_parameters(nn.get_parameters())
for step in range(6):
    n = rng.randint(2, T + 1, B)
    mask.d = np.arange(T)[None] < n[:, None]
    source.d = rng.randint(1, WORDS, (B, T)) * mask.d
    reverse = np.zeros((B, T))
    for i in range(B):
        reverse[i, :n[i]] = source.d[i, :n[i]][::-1]
    target.d = reverse[..., None]
    previous.d = np.concatenate([np.zeros((B, 1)), reverse[:, :-1]], axis=1)
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    print("step", step, n.tolist(), "%.5f" % loss.d)
print("weights", np.round(weights.d[:2], 4).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
