"""Assigning to parts of variables and arrays."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.zeros((3, 4), np.float32), need_grad=True)
y = F.identity(x)
y[1] = 5
y[:, 2] = nn.Variable.from_numpy_array(np.array([1, 2, 3], np.float32))
y.forward()
print("assigned", y.d.tolist())

with nn.auto_forward():
    a = nn.Variable.from_numpy_array(np.arange(12).reshape(3, 4).astype(np.float32))
    a[0, 1:3] = -1
    a[2] = 7
    a[1, ...] = nn.Variable.from_numpy_array(np.full(4, 0.5, np.float32))
    print("auto", a.d.tolist())

b = nn.NdArray.from_numpy_array(np.arange(12).reshape(3, 4).astype(np.float32))
b[0] = 100
b[:, 3] = nn.NdArray.from_numpy_array(np.array([7, 8, 9], np.float32))
b[1:, 0:2] = 0.25
print("array", b.data.tolist())
b[::2, ::2] = -2
print("strided", b.data.tolist())
mask = nn.NdArray.from_numpy_array(b.data > 5)
b[mask] = 0
print("masked", b.data.tolist())

c = nn.NdArray.from_numpy_array(np.zeros((2, 2, 3), np.float32))
index = nn.NdArray.from_numpy_array(np.array([[0, 1], [1, 0]]))
c[index] = nn.NdArray.from_numpy_array(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
print("by index", c.data.tolist())
w = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
v = w * 3
v[0, 0] = 10
loss = F.sum(v * v)
loss.forward()
print("loss", float(loss.d))
