"""Gradients add up over passes, over uses of a variable, and over graphs."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.array([1.0, 2.0, 3.0], np.float32), need_grad=True)
y = F.sum(x ** 2)
x.grad.zero()
for n in range(3):
    y.forward()
    y.backward()
    print("pass", n, x.g.tolist())
x.g = 1
y.backward()
print("from one", x.g.tolist())
x.grad.zero()
z = F.sum(x * x + x * 3 + F.exp(x * 0))
z.forward()
z.backward()
print("several uses", x.g.tolist())
x.grad.zero()
w = F.sum(F.stack(x, x, x, axis=0) * np.float32(2).item())
w.forward()
w.backward()
print("stack", x.g.tolist())
x.grad.zero()
y.forward()
y.backward(grad=0.5)
print("scaled", x.g.tolist())
v = x * 2
v.forward()
x.grad.zero()
v.backward(grad=np.array([1.0, 10.0, 100.0], np.float32))
print("array", x.g.tolist())
g = nn.NdArray.from_numpy_array(np.array([3.0, 2.0, 1.0], np.float32))
x.grad.zero()
v.backward(grad=g)
print("nd array", x.g.tolist())
v.g = np.array([7, 7, 7])
x.grad.zero()
v.backward(grad=None)
print("own gradient", x.g.tolist())

parts = [F.sum(F.sin(x) * k) for k in range(1, 4)]
x.grad.zero()
for part in parts:
    part.forward()
    part.backward()
print("graphs", np.round(x.g, 6).tolist())
chain = x
for k in range(20):
    chain = chain * 1.05 + 0.01 * k
loss = F.mean(chain)
loss.forward(clear_no_need_grad=True)
x.grad.zero()
loss.backward(clear_buffer=True)
print("chain %.6f" % loss.d, np.round(x.g, 6).tolist())
