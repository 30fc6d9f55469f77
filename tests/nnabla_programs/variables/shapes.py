"""reshape, reset_shape, unlinked and unlinked views, and memory shared among them."""
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32), need_grad=True)
y = x.reshape((2, 3))
print("reshape", y.shape, y.parent is not None)
y.forward()
print(y.d.tolist())
u = x.reshape((3, 2), unlink=True)
print("unlinked reshape", u.shape, u.parent, u.d.tolist())
u.d[0, 0] = 50
print("shares", float(x.d[0]))

h = F.mul_scalar(x, 3)
cut = h.get_unlinked_variable()
print("cut", cut.parent, cut.shape, cut.need_grad)
h.forward()
print("shares data", cut.d.tolist())
cut2 = h.get_unlinked_variable(need_grad=True)
z = F.sum(cut2 * cut2)
z.forward()
cut2.grad.zero()
z.backward()
print("cut gradient", cut2.g.tolist())
x.grad.zero()
h.backward(cut2.grad)
print("through", x.g.tolist())

r = nn.Variable((2, 2))
r.reset_shape((3, 4), True)
print("reset", r.shape, r.size)
r.d = np.ones((3, 4))
r.reset_shape((4, 3))
print("same size", r.shape, float(r.d.sum()))
try:
    r.reset_shape((5, 5))
    print("no error")
except Exception as error:
    print("refused", r.shape)

a = nn.Variable((2, 3), need_grad=True)
b = F.reshape(a, (-1,))
c = F.reshape(a, (3, -1), inplace=False)
print("minus one", b.shape, c.shape)
a.d = np.arange(6).reshape(2, 3)
t = F.transpose(c, (1, 0))
t.forward()
print("transposed", t.d.tolist())
s = F.flatten(a) if hasattr(F, "flatten") else F.reshape(a, (6,))
s.forward()
print(s.d.tolist())
