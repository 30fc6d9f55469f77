"""Changing a graph after it was made: rewire_on, parent, forward of parts, clear links."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.array([1.0, 2.0, 3.0], np.float32), need_grad=True)
h = x * 2
y = F.sum(h ** 2)
y.forward()
print("before", float(y.d))
x2 = nn.Variable.from_numpy_array(np.array([5.0, 5.0, 5.0], np.float32), need_grad=True)
other = F.exp(x2 * 0)
h.rewire_on(other)
y.forward()
print("rewired", float(y.d), h.parent.name)
x2.grad.zero()
x.grad.zero()
y.backward()
print("gradients", x2.g.tolist(), x.g.tolist())

a = nn.Variable.from_numpy_array(np.array([0.1, 0.2], np.float32), need_grad=True)
b = F.sin(a)
c = F.cos(b)
d = F.sum(c * b)
d.forward()
print("whole %.6f" % d.d)
leaf = b.get_unlinked_variable(need_grad=True)
e = F.sum(F.cos(leaf) * leaf)
e.forward()
leaf.grad.zero()
e.backward()
a.grad.zero()
b.backward(leaf.grad)
print("in two parts", np.round(a.g, 6).tolist())
a.grad.zero()
d.backward()
print("in one part", np.round(a.g, 6).tolist())

inputs = nn.Variable((2, 3))
t = F.tanh(F.affine(inputs, nn.Variable.from_numpy_array(np.eye(3, dtype=np.float32))))
for value in (0.5, -0.5):
    inputs.d = value
    t.forward(clear_buffer=True)
    print("value %.6f" % t.d.mean())
with nn.auto_forward():
    k = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    m = k * 3
    n = m + 1
    k.grad.zero()
    n.backward()
    print("auto", n.d.tolist(), k.g.tolist())
