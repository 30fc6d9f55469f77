"""NdArray: making, casting, filling, copying, viewing, arithmetic at once."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

a = nn.NdArray((2, 3))
a.data = np.arange(6).reshape(2, 3)
print("shape", a.shape, a.size, a.ndim, a.size_from_axis(1), list(a.strides))
print("data", a.data.tolist(), a.dtype == np.float32)

b = nn.NdArray.from_numpy_array(np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32))
print("int", b.data.tolist(), b.dtype == np.int32)
b.cast(np.float32)
print("cast", b.data.tolist(), b.dtype == np.float32)

print("add", (a + b).data.tolist())
print("mixed", (a * 2 - b / 2).data.tolist())
print("right", (10 - a).data.tolist(), (2 ** a).data.tolist())
print("negative", (-a).data.tolist())
c = F.exp(a * 0.1)
print("function", type(c).__name__, np.round(c.data, 5).tolist())
print("sum", float(F.sum(c).data), F.mean(c, axis=0).data.tolist())

a += 1
print("inplace", a.data.tolist())
a *= b
print("inplace mul", a.data.tolist())

d = nn.NdArray((2, 3))
d.fill(2.5)
print("fill", d.data.tolist())
d.zero()
print("zero", d.data.tolist(), d.zeroing)
d.copy_from(b)
print("copy", d.data.tolist())

v = b.view((3, 2))
print("view", v.shape, v.data.tolist())
v.data[0, 0] = 100
print("view shares", float(b.data[0, 0]))
n = b.narrow(0, 1, 1)
print("narrow", n.shape, n.data.tolist())
n.fill(-3)
print("narrow shares", b.data.tolist())

print("index", b[0].data.tolist(), b[:, 1].data.tolist(), b[1, 2].data.tolist())
b[0, 1] = 42
print("assign", b.data.tolist())
e = nn.NdArray.from_numpy_array(np.array([[True, False, True], [False, True, False]]))
f = nn.NdArray.from_numpy_array(np.ones((2, 3), np.float32))
f.masked_fill(e, 8)
print("masked", f.data.tolist())
print("comparison", F.greater_scalar(b, 0).data.astype(int).tolist())
x = nn.Variable((2, 3))
x.data = b
b.fill(1.25)
print("shared with variable", x.d.tolist())
