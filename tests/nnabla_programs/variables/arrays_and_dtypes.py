"""NdArrays: casts, shared memory, arithmetic, and what Variables do with them."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

a = nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3))
print(a.shape, a.size, a.ndim, a.size_from_axis(1), list(a.strides), a.dtype)
b = a.cast(np.int32)
print(type(b).__name__, b.dtype, b.tolist(), a.dtype)
a.cast(np.float64)
print(a.dtype, a.data.dtype)
c = a + a * 2 - 1
c += 1
c *= nn.NdArray.from_numpy_array(np.full((2, 3), 0.5, np.float32))
print(type(c).__name__, c.data.tolist(), (c / 2).data.tolist(), (2 ** c).data[0].tolist(), (-c).data[0].tolist())
d = nn.NdArray((2, 3))
d.copy_from(c)
d.fill(7)
d.zero()
print(d.zeroing, d.data.sum(), d.zeroing)
v = nn.Variable((2, 3))
v.data = c
c.data[0, 0] = 100
print(v.d[0, 0], v.data == c)
w = v.reshape((3, 2))
u = v.reshape((6,))
print(w.shape, w.d[0, 0], u.shape)
v.d[...] = 5
print(w.d.ravel().tolist())
e = F.relu(nn.NdArray.from_numpy_array(np.array([-1.0, 2.0])))
print(type(e).__name__, e.data.tolist())
x = nn.Variable.from_numpy_array(np.ones((2, 2)), np.full((2, 2), 3.0), True)
print(x.d.tolist(), x.g.tolist(), x.need_grad, x.parent)
y = F.identity(x)
print(y.shape)
n = nn.NdArray.from_numpy_array(np.array([[3, 1, 2]], np.float32))
print([r.data.tolist() for r in F.sort(n, axis=1, with_index=True)], F.max(n, axis=1, only_index=True).data.tolist())
print(a.narrow(0, 1, 1).shape)
