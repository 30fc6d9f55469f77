"""Attributes of variables: shapes, need_grad, persistent, names, and what assigning to them does."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable((2, 3), need_grad=True)
print("shape", x.shape, "size", x.size, "ndim", x.ndim, "size_from_axis", x.size_from_axis(), x.size_from_axis(1))
print("need_grad", x.need_grad, "persistent", x.persistent, "parent", x.parent, "rank", x.rank)
x.d = np.arange(6).reshape(2, 3) * 0.5
x.g = 0
print("sum", float(x.d.sum()), float(x.g.sum()), x.d.dtype)

v = nn.Variable.from_numpy_array(np.array([1.5, -2.0, 3.0], dtype=np.float32), need_grad=True)
print("from array", v.d.tolist(), v.need_grad, v.d.dtype)
w = nn.Variable.from_numpy_array(np.ones(3, np.float32), np.full(3, 7, np.float32), True)
print("with gradient", w.d.tolist(), w.g.tolist(), w.need_grad)

y = F.mul_scalar(x, 2.0)
print("child", y.need_grad, y.parent.name, y.rank, y.parent.inputs[0] == x)
x.need_grad = False
z = F.exp(x)
print("child of constant", z.need_grad)
x.need_grad = True
print("after", F.exp(x).need_grad, F.sum(F.exp(x)).shape)

p = nn.Variable((4,))
q = p.apply(need_grad=True, persistent=True, name="q")
print("apply", q is p, p.need_grad, p.persistent, p.name)
p.name = "renamed"
print("name", q.name)

a = nn.Variable((2, 2))
b = a
print("equality", a == b, a == nn.Variable((2, 2)), hash(a) == hash(b), bool(a is not None))

s = nn.Variable(())
s.d = 3
print("scalar", s.shape, float(s.d), s.ndim, s.size)

for value in (1, 0.25, np.float32(2)):
    x.d = value
    print("fill", float(x.d.mean()))
x.data.fill(9)
x.grad.fill(-1)
print("data fill", float(x.d[0, 0]), float(x.g[1, 2]))
x.data.zero()
print("zero", float(np.abs(x.d).sum()))
x.d[0, 1] = 5
print("element", x.d.tolist())
x.d += 1
print("in place", x.d.tolist())
