"""A neural differential equation: Runge-Kutta steps of one field, gradients through time."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.initializer as I
import nnabla.parametric_functions as PF
import nnabla.solvers as S


def field(state, t):
    with nn.parameter_scope("field"):
        time = F.constant(t, (state.shape[0], 1))
        h = F.tanh(PF.affine(F.concatenate(state, time, axis=1), 16, name="fc1"))
        return PF.affine(h, 2, name="fc2", b_init=I.ConstantInitializer(0))


def step(state, t, dt):
    k1 = field(state, t)
    k2 = field(state + 0.5 * dt * k1, t + 0.5 * dt)
    k3 = field(state + 0.5 * dt * k2, t + 0.5 * dt)
    k4 = field(state + dt * k3, t + dt)
    return state + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


def spiral(n, dt):
    points = [np.array([2.0, 0.0])]
    matrix = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    for _ in range(n):
        points.append(points[-1] + dt * points[-1] @ matrix)
    return np.stack(points)


N, DT = 8, 0.1
truth = spiral(N, DT)
start = nn.Variable.from_numpy_array(truth[:1].astype(np.float32), need_grad=True)
target = nn.Variable.from_numpy_array(truth[1:].astype(np.float32))
states = []
state = start
for i in range(N):
    state = step(state, i * DT, DT)
    states.append(state)
path = F.concatenate(*states, axis=0)
path.persistent = True
loss = F.mean(F.huber_loss(path, target, delta=1.0))
rng = np.random.RandomState(6)
for name, p in sorted(nn.get_parameters().items()):
    p.d = rng.randn(*p.shape) * 0.3
solver = S.RMSprop(lr=5e-3, decay=0.9)
solver.set_parameters(nn.get_parameters())
for i in range(10):
    loss.forward()
    solver.zero_grad()
    start.grad.zero()
    loss.backward()
    solver.clip_grad_by_norm(1.0)
    solver.update()
    if i % 3 == 0:
        print("update", i, "%.6f" % loss.d, np.round(start.g, 5).tolist())
for row in path.d[::3]:
    print("state", np.round(row, 4).tolist())
for name, p in sorted(nn.get_parameters().items()):
    print(name, p.shape, "%.5f" % np.linalg.norm(p.d))
