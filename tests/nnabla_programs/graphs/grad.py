"""nn.grad: gradients as graphs, second derivatives, gradient penalties, given output gradients."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

x = nn.Variable.from_numpy_array(np.array([0.5, -1.0, 2.0], np.float32), need_grad=True)
y = F.sum(x ** 3)
dx, = nn.grad([y], [x])
dx.forward()
print("first", dx.d.tolist())
ddx, = nn.grad([F.sum(dx)], [x])
ddx.forward()
print("second", ddx.d.tolist())
dddx, = nn.grad([F.sum(ddx)], [x])
dddx.forward()
print("third", dddx.d.tolist())

a = nn.Variable.from_numpy_array(np.array([[1.0, 2.0]], np.float32), need_grad=True)
b = nn.Variable.from_numpy_array(np.array([[3.0], [4.0]], np.float32), need_grad=True)
p = F.sin(F.affine(a, b))
ga, gb = nn.grad([p], [a, b])
nn.forward_all([ga, gb])
print("two", np.round(ga.d, 6).tolist(), np.round(gb.d, 6).tolist())

given = nn.Variable.from_numpy_array(np.array([1.0, 2.0, 3.0], np.float32))
gx, = nn.grad([F.exp(x)], [x], grad_outputs=[given])
gx.forward()
print("given", np.round(gx.d, 5).tolist())
gx, = nn.grad([F.exp(x)], [x], grad_outputs=[2.0])
gx.forward()
print("number", np.round(gx.d, 5).tolist())

rng = np.random.RandomState(4)
real = nn.Variable.from_numpy_array(rng.randn(3, 4).astype(np.float32))
real.need_grad = True
h = F.tanh(PF.affine(real, 5, name="d1"))
score = PF.affine(h, 1, name="d2")
for i, (_, q) in enumerate(sorted(nn.get_parameters().items())):
    q.d = np.sin(np.arange(q.size) + i).reshape(q.shape)
    q.grad.zero()
slope, = nn.grad([score], [real])
penalty = F.mean((F.sum(slope ** 2, axis=1) ** 0.5 - 1) ** 2)
penalty.forward()
penalty.backward()
print("penalty %.6f" % penalty.d)
for name, q in sorted(nn.get_parameters().items()):
    print(name, "%.5f" % np.abs(q.g).sum())
s1, s2 = F.sum(x * x), F.sum(F.exp(x))
g, = nn.grad([s1, s2], [x])
g.forward()
print("sum of outputs", np.round(g.d, 5).tolist())
