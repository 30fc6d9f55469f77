"""nn.grad in the corners: layers, several outputs, unused inputs, modes, and training through it."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S


def fixed(shape):
    return np.cos(np.arange(int(np.prod(shape)))).reshape(shape)


x = nn.Variable.from_numpy_array(np.sin(np.arange(8)).reshape(2, 4).astype(np.float32), need_grad=True)
y = PF.affine(F.tanh(PF.affine(x, 3, w_init=fixed, name="a")), 1, w_init=fixed, name="b")
names, values = zip(*sorted(nn.get_parameters().items()))
gradients = nn.grad([y], values)
nn.forward_all(gradients)
for name, value, g in zip(names, values, gradients):
    print(name, g.shape, "%.6f" % np.abs(g.d).sum())
y.forward()
for value in values:
    value.grad.zero()
y.backward()
print("equal", [bool(np.allclose(v.g, g.d, atol=1e-5)) for v, g in zip(values, gradients)])

z = nn.Variable.from_numpy_array(np.float32([[1, 2, 3, 4]]), need_grad=True)
for name, f in [
    ("convolution", lambda v: F.convolution(F.reshape(v, (1, 1, 2, 2)), nn.Variable.from_numpy_array(np.ones((2, 1, 2, 2), np.float32)))),
    ("softmax", lambda v: F.softmax(v) * v),
    ("batch matmul", lambda v: F.batch_matmul(F.reshape(v, (1, 2, 2)), F.reshape(v, (1, 2, 2)))),
    ("max", lambda v: F.max(v * v, axis=1)),
    ("split", lambda v: F.add_n(*[p ** 3 for p in F.split(v, axis=1)])),
    ("slice", lambda v: v[:, 1:3] ** 2 * v[:, :2]),
    ("pad", lambda v: F.pad(v ** 2, (1, 1))),
    ("norm", lambda v: F.norm(v)),
    ("swish", lambda v: F.swish(v) * F.gelu(v)),
    ("pooling", lambda v: F.average_pooling(F.reshape(v ** 3, (1, 1, 2, 2)), (2, 1))),
]:
    first, = nn.grad([f(z)], [z])
    second, = nn.grad([F.sum(first ** 2)], [z])
    nn.forward_all([first, second])
    print(name, np.round(first.d, 4).tolist(), np.round(second.d, 3).tolist())

first, = nn.grad([F.sum(z ** 3)], [z], bind_grad_output=True)
first.forward()
print("bound", z.g.tolist())
w = nn.Variable.from_numpy_array(np.float32([1.5, -0.5]), need_grad=True)
inner = F.sum((w - 1) ** 4)
slope, = nn.grad([inner], [w])
outer = F.sum((w - 0.1 * slope) ** 2)
solver = S.Sgd(0.1)
solver.set_parameters({"w": w})
for step in range(4):
    outer.forward()
    solver.zero_grad()
    outer.backward()
    solver.update()
    print("meta", step, "%.6f" % outer.d, np.round(w.d, 6).tolist())
