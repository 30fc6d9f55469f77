"""Imperative mode: functions of NdArrays are computed at once and keep no graph."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

rng = np.random.RandomState(5)
x = nn.NdArray.from_numpy_array(rng.randn(4, 3).astype(np.float32))
w = nn.NdArray.from_numpy_array(rng.randn(3, 2).astype(np.float32))
b = nn.NdArray.from_numpy_array(rng.randn(2).astype(np.float32))

y = F.affine(x, w, b)
print("affine", type(y).__name__, y.shape, "%.6f" % y.data.sum())
z = F.softmax(F.relu(y))
print("softmax", np.round(z.data, 6).tolist())
m, v = F.mean(z, axis=0), F.sum(z ** 2, axis=0, keepdims=True)
print("reductions", np.round(m.data, 6).tolist(), np.round(v.data, 6).tolist(), v.shape)
parts = F.split(F.reshape(x, (2, 2, 3)), axis=1)
print("split", len(parts), [p.shape for p in parts], "%.6f" % parts[1].data.sum())
c = F.concatenate(x, x * 2, axis=1)
print("concatenate", c.shape, "%.6f" % c.data.sum())
top, index = F.max(x, axis=1, with_index=True)
print("max", np.round(top.data, 6).tolist(), index.data.astype(int).tolist())
out = nn.NdArray((4, 3))
F.add2(x, x, outputs=[out])
print("outputs", "%.6f" % out.data.sum(), "%.6f" % x.data.sum())
F.assign(out, x)
print("assign", "%.6f" % out.data.sum())

p = PF.affine(x, 2, w_init=lambda shape: np.full(shape, 0.5), b_init=lambda shape: np.arange(shape[0]), name="p")
print("layer", type(p).__name__, np.round(p.data, 5).tolist(), sorted(nn.get_parameters()))
u = nn.Variable.from_numpy_array(rng.rand(4, 3).astype(np.float32), need_grad=True)
r = x * u.data
print("with data", type(r).__name__, "%.6f" % r.data.sum())
mu = F.mean(x)
for _ in range(3):
    x = x - 0.1 * F.sign(x - float(mu.data))
print("loop", "%.6f" % x.data.sum(), "%.6f" % F.norm(x).data)
print("dot", np.round(F.dot(x, w).data, 5).tolist())
