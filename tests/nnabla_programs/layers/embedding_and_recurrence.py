"""Embedding, recurrent cells and recurrent networks unrolled in time."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF


def fill():
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * 0.31 + i).reshape(p.shape) * 0.4
        p.grad.zero()


def report(name, loss):
    fill()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    print(name, "%.6f" % loss.d)
    for n, p in sorted(nn.get_parameters().items()):
        print("   ", n, p.shape, "%.5f" % np.abs(p.g).sum())
    nn.clear_parameters()


words = nn.Variable.from_numpy_array(np.array([[1, 4, 2], [0, 4, 4]]))
e = PF.embed(words, 6, 5)
print("embed", e.shape)
report("embed", F.sum(F.tanh(e)))

e = PF.embed(words, 6, 5, initializer=lambda shape: np.arange(30).reshape(shape))
e.forward()
print("rows", e.d[1, 1].tolist())
nn.clear_parameters()

h = c = None
state = nn.Variable.from_numpy_array(np.zeros((2, 4), np.float32))
cell = nn.Variable.from_numpy_array(np.zeros((2, 4), np.float32))
for step in range(3):
    token = F.reshape(PF.embed(F.reshape(words[:, step:step + 1], (2,)), 6, 5), (2, 5))
    state, cell = PF.lstm_cell(token, state, cell, 4)
report("lstm cell", F.sum(state * cell))

x = nn.Variable.from_numpy_array(np.sin(np.arange(3 * 2 * 5)).reshape(3, 2, 5).astype(np.float32))
h = nn.Variable.from_numpy_array(np.full((1, 1, 2, 4), 0.1, np.float32))
y, hn = PF.rnn(x, h, training=True)
print("rnn", y.shape, hn.shape)
report("rnn", F.sum(y) + F.sum(hn * 2))
c = nn.Variable.from_numpy_array(np.full((1, 1, 2, 4), -0.1, np.float32))
y, hn, cn = PF.lstm(x, h, c, training=True)
print("lstm", y.shape, hn.shape, cn.shape)
report("lstm", F.sum(y * y) + F.sum(cn))
h2 = nn.Variable.from_numpy_array(np.full((2, 2, 2, 4), 0.2, np.float32))
y, hn = PF.gru(x, h2, num_layers=2, bidirectional=True, training=False)
fill()
nn.forward_all([y, hn])
print("gru", y.shape, hn.shape, "%.5f %.5f" % (y.d.sum(), hn.d.sum()))
state = nn.Variable.from_numpy_array(np.full((2, 4), 0.3, np.float32))
