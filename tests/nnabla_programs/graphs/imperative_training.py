"""Dynamic graphs: training, no_grad, evaluation in between, and a growing loop."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

nn.set_auto_forward(True)
w = lambda shape: 0.4 * np.sin(np.arange(np.prod(shape)) + 1).reshape(shape)


def net(x, test=False):
    h = F.elu(PF.layer_normalization(PF.affine(x, 6, w_init=w, name="a"), name="n"))
    return PF.affine(h, 1, w_init=w, name="b")


rng = np.random.RandomState(5)
solver = S.AMSGRAD(0.02)
for step in range(4):
    x = nn.Variable.from_numpy_array(rng.randn(7, 3))
    t = nn.Variable.from_numpy_array(x.d.sum(axis=1, keepdims=True))
    loss = F.mean(F.squared_error(net(x), t))
    solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
    solver.zero_grad()
    loss.backward(clear_buffer=False)
    solver.update()
    with nn.no_grad():
        e = F.mean(F.absolute_error(net(x), t))
    print(step, "%.5f %.5f" % (loss.d, e.d), e.need_grad, sorted(solver.get_states()))
total = 0
state = nn.Variable.from_numpy_array(np.zeros((1, 3)))
for n in range(5):
    state = F.tanh(state + 0.1 * n)
    total = total + F.sum(state)
    if float(total.d) > 2:
        break
print(n, "%.5f" % total.d)
state = nn.Variable.from_numpy_array(np.eye(3)).apply(need_grad=True)
y = F.batch_matmul(F.reshape(state, (1, 3, 3)), F.reshape(state * 2, (1, 3, 3)))
state.grad.zero()
F.sum(y).backward()
print(y.d.tolist(), state.g.tolist())
nn.set_auto_forward(False)
y = F.relu(state)
print(y.shape)
