"""Operators between variables and numbers, in-place operators, and their gradients."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

rng = np.random.RandomState(3)
a0, b0 = rng.rand(2, 3) + 0.5, rng.rand(2, 3) + 0.5
a = nn.Variable.from_numpy_array(a0.astype(np.float32), need_grad=True)
b = nn.Variable.from_numpy_array(b0.astype(np.float32), need_grad=True)


def show(name, y):
    a.grad.zero()
    b.grad.zero()
    y.forward()
    y.backward()
    print(name, "%.6f" % y.d.sum(), "%.6f" % np.abs(a.g).sum(), "%.6f" % np.abs(b.g).sum())


show("a + b", a + b)
show("a - b", a - b)
show("a * b", a * b)
show("a / b", a / b)
show("a ** b", a ** b)
show("a + 2", a + 2)
show("2 - a", 2 - a)
show("3 / a", 3 / a)
show("2 ** a", 2 ** a)
show("a ** 2", a ** 2)
show("-a", -a)
show("matmul", F.reshape(a, (2, 3)) @ F.transpose(b, (1, 0)))
show("mixed", (a + 1) * (b - 2) / (a * 0.5 + 3) - b ** 3)
c = a * 1
c += b
c -= 0.5
c *= a
c /= 2
c **= 2
show("in place", c)
print("greater", F.greater(a, b).shape)
comparisons = [F.greater(a, b), F.less_equal(a, b), F.greater_scalar(a, 1), F.equal(a, a), F.logical_not(F.less(a, b))]
nn.forward_all(comparisons)
print("comparisons", [float(v.d.sum()) for v in comparisons])
row = nn.Variable.from_numpy_array(np.array([[1.0, 2.0, 3.0]], np.float32), need_grad=True)
y = a * row
y.forward()
row.grad.zero()
a.grad.zero()
y.backward()
print("broadcast", "%.6f" % y.d.sum(), np.round(row.g, 5).tolist(), a.g.tolist())
column = nn.Variable.from_numpy_array(np.array([[10.0], [20.0]], np.float32), need_grad=True)
y = row - column
y.forward()
y.backward(np.ones((2, 3), np.float32))
print("outer", y.d.tolist())
