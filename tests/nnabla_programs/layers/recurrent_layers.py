"""Recurrent layers: shapes, values with given weights, gradients and packed sequences."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
from nnabla.utils.rnn import pack_padded_sequence, pad_sequence

w = lambda shape: 0.2 * np.sin(np.arange(np.prod(shape))).reshape(shape)
T, B, I, H = 4, 2, 3, 5
x = nn.Variable((T, B, I), need_grad=True)
x.d = np.cos(np.arange(T * B * I)).reshape(x.shape)
for name, layer, states in (("rnn", PF.rnn, 1), ("gru", PF.gru, 1), ("lstm", PF.lstm, 2)):
    for bidirectional in (False, True):
        nn.clear_parameters()
        d = 2 if bidirectional else 1
        h = [nn.Variable.from_numpy_array(np.zeros((1, d, B, H), np.float32)) for _ in range(states)]
        outs = layer(x, *h, training=False, bidirectional=bidirectional, w0_init=w, w_init=w, b_init=w)
        outs[0].forward()
        print(name, bidirectional, [o.shape for o in outs], "%.5f" % outs[0].d.sum(), sorted((k, v.shape) for k, v in nn.get_parameters().items()))
cell = nn.Variable((B, I), need_grad=True)
cell.d = x.d[0]
nn.clear_parameters()
h = c = nn.Variable.from_numpy_array(np.zeros((B, H), np.float32))
lstm = PF.LSTMCell(B, H, name="cell")
for t in range(3):
    out = lstm(cell, w_init=w, b_init=w)
loss = F.sum(out)
for p in nn.get_parameters().values():
    p.grad.zero()
loss.forward()
loss.backward()
print("cell", "%.5f" % loss.d, {k: "%.4f" % np.abs(p.g).sum() for k, p in nn.get_parameters().items()}, [v.shape for v in (lstm.h, lstm.c)])
sequences = [nn.Variable.from_numpy_array(np.full((n, 2), n, np.float32)) for n in (3, 2, 1)]
padded = pad_sequence(sequences, padding_value=-1)
padded.forward()
print("padded", padded.shape, padded.d[:, :, 0].tolist())
packed = pack_padded_sequence(padded, nn.Variable.from_numpy_array(np.array([3, 2, 1])))
print(type(packed).__name__, packed.data.shape)
