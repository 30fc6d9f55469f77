"""nn.grad: penalties, higher orders, bound gradients and several outputs."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S


def show(name, *arrays):
    print(name, *[np.round(np.asarray(a, np.float64), 4).tolist() for a in arrays])


x = nn.Variable.from_numpy_array(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)).apply(need_grad=True)
y = F.sum(F.tanh(x) ** 3)
g1, = nn.grad([y], [x])
g2, = nn.grad([F.sum(g1)], [x])
g3, = nn.grad([F.sum(g2)], [x])
F.sink(y, g1, g2, g3).forward()
for g in (g1, g2, g3):
    g.forward()
show("orders", g1.d, g2.d, g3.d)
out = nn.Variable.from_numpy_array(np.array([[1, 2, 3], [0, 1, 0]], np.float32))
g, = nn.grad([F.sigmoid(x)], [x], grad_outputs=[out])
g.forward()
show("grad_outputs", g.d)
g, = nn.grad([F.exp(x), F.sin(x)], [x], grad_outputs=[2.0, 3])
g.forward()
show("numbers", g.d)
w = lambda shape: np.cos(np.arange(np.prod(shape))).reshape(shape)
h = F.relu(PF.convolution(F.reshape(x, (1, 1, 2, 3)), 2, (2, 2), w_init=w))
d = PF.affine(F.average_pooling(h, (1, 2)), 1, w_init=w)
gx, = nn.grad([d], [x])
penalty = F.mean((F.sum(gx ** 2, axis=1) + 1e-6) ** 0.5 - 1) ** 2
penalty.forward()
for p in nn.get_parameters().values():
    p.grad.zero()
penalty.backward()
for k, p in nn.get_parameters().items():
    show(k, p.g)
w1, b1 = list(nn.get_parameters().values())[:2]
outputs = nn.grad([d], [w1, b1], bind_grad_output=True)
d.forward()
[o.forward() for o in outputs]
show("bound", w1.g, outputs[0].d)
x.grad.zero()
with nn.auto_forward():
    a = F.sum(x * F.sigmoid(x))
    g, = nn.grad([a], [x])
    g2, = nn.grad([F.sum(g * g)], [x])
show("dynamic", a.d, g.d, g2.d)
for f in (F.softmax, F.log_softmax, F.swish, F.gelu, F.softplus, F.elu, F.cumsum, lambda v: F.norm(v, axis=1), lambda v: F.max(v, axis=1)):
    g, = nn.grad([f(x)], [x])
    h, = nn.grad([F.sum(g * g)], [x])
    F.sink(g, h).forward()
    show(getattr(f, "__name__", "f"), g.d, h.d)
