"""Speech without alignments: one-dimensional convolutions over frames, and the CTC loss as a sum over paths by hand."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(14)
B, MEL, T, SYMBOLS = 2, 6, 12, 5


def network(x):
    h = F.relu(PF.batch_normalization(PF.convolution(x, 8, (3,), pad=(1,), with_bias=False, name="c1"), name="b1"))
    h = h + F.relu(PF.batch_normalization(PF.convolution(h, 8, (3,), pad=(2,), dilation=(2,), with_bias=False, name="c2"), name="b2"))
    h = F.reshape(F.max_pooling(F.reshape(h, (B, 8, 1, T)), (1, 2)), (B, 8, T // 2))
    return F.transpose(PF.convolution(h, SYMBOLS, (1,), name="c3"), (0, 2, 1))


def ctc(logits, target):
    """Minus the log of the probability of all paths that give `target`; symbol 0 is the blank."""
    extended = [0]
    for symbol in target:
        extended += [symbol, 0]
    log_p = F.log_softmax(logits, axis=1)
    n = len(extended)
    chosen = F.stack(*[log_p[:, s] for s in extended], axis=1)
    skip = [0.0 if i >= 2 and extended[i] != 0 and extended[i] != extended[i - 2] else -1e4 for i in range(n)]
    skip = nn.Variable.from_numpy_array(np.array(skip, np.float32))
    closed = nn.Variable.from_numpy_array(np.full((2,), -1e4, np.float32))
    begin = nn.Variable.from_numpy_array(np.array([0.0, 0.0] + [-1e4] * (n - 2), np.float32))
    alpha = chosen[0] + begin
    for t in range(1, logits.shape[0]):
        one = F.concatenate(closed[:1], alpha[:-1], axis=0)
        two = F.concatenate(closed, alpha[:-2], axis=0) + skip
        ways = F.stack(alpha, one, two, axis=0)
        top = F.max(ways, axis=0)
        alpha = top + F.log(F.sum(F.exp(ways - F.broadcast(F.reshape(top, (1, n)), (3, n))), axis=0)) + chosen[t]
    last = alpha[n - 2:]
    top = F.max(last, axis=0)
    return -(top + F.log(F.sum(F.exp(last - F.broadcast(F.reshape(top, (1,)), (2,))))))


x = nn.Variable((B, MEL, T))
logits = network(x)
logits.persistent = True
targets = [[1, 2, 2], [3, 4]]
losses = [ctc(logits[b], target) for b, target in enumerate(targets)]
loss = (losses[0] + losses[1]) / B
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.3
solver = S.Adam(2e-2)
solver.set_parameters(nn.get_parameters())
x.d = rng.randn(*x.shape)
for step in range(10):
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    if step % 3 == 0:
        print("step", step, "%.5f" % loss.d)
print("greedy", logits.d.argmax(axis=2).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
