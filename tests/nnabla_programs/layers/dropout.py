"""Dropout: what holds for every stream of random numbers."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.ones((100, 100), np.float32), need_grad=True)
y = F.dropout(x, p=0.25)
y.forward()
kept = y.d != 0
print("kept", abs(kept.mean() - 0.75) < 0.03, np.unique(np.round(y.d, 5)).tolist())
x.grad.zero()
y.backward()
print("gradient", np.array_equal(x.g != 0, kept), np.unique(np.round(x.g, 5)).tolist())
first = y.d.copy()
y.forward()
print("new each time", np.array_equal(first, y.d))
a, b = F.dropout(x, p=0.5, seed=7), F.dropout(x, p=0.5, seed=7)
nn.forward_all([a, b])
print("seeded", np.array_equal(a.d, b.d))
again = F.dropout(x, p=0.5, seed=7)
again.forward()
print("seeded again", np.array_equal(again.d, a.d))
h = F.dropout(F.relu(x * 2), p=0.1)
z = F.mean(h)
z.forward(clear_no_need_grad=True)
x.grad.zero()
z.backward(clear_buffer=True)
print("chain", abs(float(z.d) - 2) < 0.05, abs(float(x.g.sum()) - 2) < 0.05)


def network(v, test):
    h = F.tanh(v)
    return h if test else F.dropout(h, 0.5)


t = network(x, test=True)
t.forward()
print("test %.6f" % t.d.mean())
u = network(x, test=False)
u.forward()
print("train", sorted(set(np.round(u.d.ravel(), 4).tolist())))
n = F.dropout(nn.NdArray.from_numpy_array(np.full((50, 50), 2.0, np.float32)), p=0.5)
print("array", np.unique(n.data).tolist())
