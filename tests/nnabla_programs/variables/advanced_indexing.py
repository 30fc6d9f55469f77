"""Subscripts of Variables: slices, ellipsis, None, arrays, and assignment."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable((3, 4, 5), need_grad=True)
x.d = np.arange(60).reshape(3, 4, 5)
keys = {
    "int": 1, "neg": -1, "slice": slice(1, None), "step": slice(None, None, 2), "back": slice(None, None, -1), "ellipsis": (Ellipsis, 2),
    "mix": (0, slice(1, 3), slice(None, None, 2)), "lists": ([0, 2], [1, 3]),
}
for name, key in keys.items():
    y = x[key]
    x.grad.zero()
    y.forward()
    y.backward()
    print(name, y.shape, y.d.ravel()[:6].tolist(), x.g.sum(), np.nonzero(x.g.ravel())[0][:5].tolist())
i = nn.Variable.from_numpy_array(np.array([[0, 2], [1, 2]]))
y = x[i]
y.forward()
print("variable", y.shape, y.d.ravel().tolist())
mask = nn.Variable.from_numpy_array((np.arange(12).reshape(3, 4) % 2).astype(np.float32))
y = F.bool_gather(x, mask)
y.forward()
print("mask", y.shape, y.d[:, 0].tolist())
y = F.identity(x)
y[1:, 0] = -1
y[..., -1] = nn.Variable.from_numpy_array(np.full((3, 4), 7.0))
y.forward()
print("set", y.d[1, 0].tolist(), y.d[0].tolist())
with nn.auto_forward():
    z = x * 1
    z[0] = 0
    z[1, 2] += 100
    print("dynamic", z.d[0].sum(), z.d[1, 2].tolist())
a = nn.NdArray.from_numpy_array(np.arange(12.0).reshape(3, 4))
print(a[1:, ::2].data.tolist())
a[0] = 9
print(a.data[0].tolist())
for j, row in enumerate(x):
    print(j, row.shape)
    if j == 2:
        break
