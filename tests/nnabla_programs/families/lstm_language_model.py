"""Truncated backpropagation through an LSTM whose state is carried from piece to piece; perplexity."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

B, T, D, WORDS = 3, 4, 9, 12
rng = np.random.RandomState(12)
corpus = np.cumsum(rng.randint(0, 3, (B, 41)), axis=1) % WORDS

x, t = nn.Variable((B, T)), nn.Variable((B, T))
h0, c0 = nn.Variable((B, D)), nn.Variable((B, D))
with nn.parameter_scope("rnnlm"):
    words = F.split(PF.embed(x, WORDS, D), axis=1)
    targets = F.split(t, axis=1)
    h, c = h0, c0
    costs = []
    for word, target in zip(words, targets):
        h, c = PF.lstm_cell(word, h, c, D, name="lstm")
        score = PF.affine(h, WORDS, name="out")
        costs.append(F.mean(F.softmax_cross_entropy(score, F.reshape(target, (B, 1)))))
loss = sum(costs) / T
h.persistent = c.persistent = True
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.uniform(-0.4, 0.4, p.shape)
    print(name, p.shape)
solver = S.Sgd(0.5)
solver.set_parameters(nn.get_parameters())
for epoch in range(2):
    h0.data.zero()
    c0.data.zero()
    total = 0.0
    for k in range(0, 40, T):
        x.d, t.d = corpus[:, k:k + T], corpus[:, k + 1:k + T + 1]
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.weight_decay(1e-5)
        solver.clip_grad_by_norm(0.25)
        solver.update()
        total += float(loss.d)
        h0.d, c0.d = h.d, c.d
    print("epoch", epoch, "perplexity %.4f" % np.exp(total / 10))
    solver.set_learning_rate(solver.learning_rate() * 0.5)
print("state %.5f %.5f" % (np.abs(h0.d).sum(), np.abs(c0.d).sum()))
for name, p in sorted(nn.get_parameters().items()):
    print(name, "%.5f %.5f" % (np.linalg.norm(p.d), np.linalg.norm(p.g)))
