"""Arrays shared by variables: data and gradients replaced, views, narrowed parts, copies."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

base = nn.NdArray.from_numpy_array(np.arange(8).astype(np.float32))
v = nn.Variable((8,), need_grad=True)
v.data = base
y = F.sum(v * v)
y.forward()
v.grad.zero()
y.backward()
print("whole", float(y.d), v.g.tolist())
base.fill(2)
y.forward()
print("after fill", float(y.d))

a, b = nn.Variable((2, 2), need_grad=True), nn.Variable((2, 2), need_grad=True)
a.d, b.d = 1, 3
b.data = a.data
a.d = 5
print("shared data", b.d.tolist())
z = F.sum(a * b)
z.forward()
a.grad.zero()
b.grad.zero()
z.backward()
print("gradients", float(z.d), a.g.tolist(), b.g.tolist())

w = nn.Variable.from_numpy_array(np.arange(6).reshape(2, 3).astype(np.float32), need_grad=True)
u = w.get_unlinked_variable()
t = F.sum(u * 2 + w)
t.forward()
w.grad.zero()
t.backward()
print("unlinked shares gradients", w.g.tolist(), u.need_grad)
w.g = 7
print("seen there", u.g.tolist())
c = nn.NdArray((2, 3))
c.copy_from(w.data)
w.data.zero()
print("copy", c.data.tolist(), float(np.abs(w.d).sum()))
w.data.copy_from(c)
print("back", w.d.tolist())
r = w.reshape((6,), unlink=True)
r.d[2] = 100
print("reshaped", w.d.tolist())
big = nn.NdArray.from_numpy_array(np.arange(12).reshape(4, 3).astype(np.float32))
part = big.narrow(0, 1, 2)
part.data[:] *= 10
print("narrow", big.data.tolist())
part.copy_from(nn.NdArray.from_numpy_array(np.ones((2, 3), np.float32)))
print("copied into", big.data.tolist())
print("exp", np.round(F.exp(part * 0.1).data, 5).tolist())
g = nn.NdArray((2, 2))
g.fill(0.5)
a.grad = g
s = F.sum(a * 3)
s.forward()
s.backward()
print("into a given gradient", a.g.tolist(), g.data.tolist())
