"""Patterns of training: adversarial steps, averaged teachers, accumulated gradients, one parameter in two solvers."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S


def ones(shape):
    return np.ones(shape)


def eye(shape):
    return np.eye(*shape)


def discriminate(v):
    with nn.parameter_scope("d"):
        return PF.affine(v, 1, w_init=ones)


z = nn.Variable.from_numpy_array(np.sin(np.arange(6)).reshape(2, 3).astype(np.float32))
with nn.parameter_scope("g"):
    fake = PF.affine(z, 3, w_init=eye)
fake.persistent = True
loss_g = F.mean(F.sigmoid_cross_entropy(discriminate(fake), F.constant(1, (2, 1))))
cut = fake.get_unlinked_variable(need_grad=False)
loss_d = F.mean(F.sigmoid_cross_entropy(discriminate(cut), F.constant(0, (2, 1))))
solvers = {}
for name in ("g", "d"):
    with nn.parameter_scope(name):
        solvers[name] = S.Adam(0.1)
        solvers[name].set_parameters(nn.get_parameters())
for step in range(4):
    fake.forward()
    for name, loss in (("d", loss_d), ("g", loss_g)):
        loss.forward(clear_no_need_grad=True)
        solvers[name].zero_grad()
        loss.backward(clear_buffer=True)
        solvers[name].update()
    print("adversarial", step, "%.5f %.5f" % (loss_d.d, loss_g.d))

x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32))
parameters = {}
for name, scale in (("student", 0.5), ("teacher", 1.0)):
    with nn.parameter_scope(name):
        y = PF.affine(x, 2, w_init=lambda shape: scale * np.ones(shape))
        parameters[name] = nn.get_parameters()
pairs = [(parameters["teacher"][key], parameters["student"][key]) for key in parameters["student"]]
update = F.sink(*[F.assign(t, 0.9 * t + 0.1 * s) for t, s in pairs])
for step in range(3):
    update.forward()
    y.forward()
    print("teacher", step, np.round(y.d, 5).tolist())

nn.clear_parameters()
batch = nn.Variable((2, 3))
loss = F.mean(PF.affine(batch, 2, w_init=ones) ** 2)
solver = S.Sgd(0.1)
solver.set_parameters(nn.get_parameters())
solver.zero_grad()
for k in range(3):
    batch.d = k + np.arange(6).reshape(2, 3) / 10
    loss.forward(clear_no_need_grad=True)
    loss.backward(1 / 3.0, clear_buffer=True)
solver.update()
print("accumulated", [np.round(p.d.ravel(), 4).tolist() for p in nn.get_parameters().values()])

w = nn.Variable.from_numpy_array(np.array([1.0, -2.0], np.float32), need_grad=True)
w.g = 0.5
square = F.sum(w * w)
square.forward()
square.backward()
print("on top", w.g.tolist())
both = [S.Sgd(0.1), S.Momentum(0.1)]
for s in both:
    s.set_parameters({"w": w})
for s in both + both:
    square.forward()
    s.zero_grad()
    square.backward()
    s.update()
print("two solvers", np.round(w.d, 5).tolist())
