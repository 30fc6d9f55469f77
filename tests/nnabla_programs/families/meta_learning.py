"""Learning to learn sines: one inner step by nn.grad, whose gradients are part of the outer loss."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(34)
TASKS, SHOTS, HIDDEN = 3, 5, 8
SHAPES = {"w1": (1, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, HIDDEN), "b2": (HIDDEN,), "w3": (HIDDEN, 1), "b3": (1,)}


def network(x, p):
    h = F.tanh(F.affine(x, p["w1"], p["b1"]))
    h = F.softplus(F.affine(h, p["w2"], p["b2"]))
    return F.affine(h, p["w3"], p["b3"])


def sine(amplitude, phase):
    x = rng.uniform(-3, 3, (SHOTS, 1))
    return x, amplitude * np.sin(x + phase)


with nn.parameter_scope("slow"):
    slow = {name: nn.parameter.get_parameter_or_create(name, shape) for name, shape in SHAPES.items()}
    rate = nn.parameter.get_parameter_or_create("rate", (1, 1), initializer=np.array([[0.05]]))
for name in sorted(slow):
    slow[name].d = rng.randn(*SHAPES[name]) * 0.5
inputs, before, after = [], [], []
for _ in range(TASKS):
    xs, ys, xq, yq = [nn.Variable((SHOTS, 1)) for _ in range(4)]
    inputs.append((xs, ys, xq, yq))
    inner = F.mean(F.squared_error(network(xs, slow), ys))
    names = sorted(slow)
    slopes = nn.grad([inner], [slow[name] for name in names])
    fast = {}
    for name, slope in zip(names, slopes):
        step_size = F.broadcast(F.reshape(rate, (1,) * len(SHAPES[name])), SHAPES[name])
        fast[name] = slow[name] - step_size * slope
    before.append(F.mean(F.squared_error(network(xq, slow), yq)))
    after.append(F.mean(F.squared_error(network(xq, fast), yq)))
start, loss = sum(before) / TASKS, sum(after) / TASKS
solver = S.Nesterov(1e-2, 0.9)
with nn.parameter_scope("slow"):
    solver.set_parameters(nn.get_parameters())
for step in range(8):
    for variables in inputs:
        amplitude, phase = rng.uniform(0.5, 2), rng.uniform(0, np.pi)
        for pair in (variables[:2], variables[2:]):
            pair[0].d, pair[1].d = sine(amplitude, phase)
    nn.forward_all([loss, start])
    solver.zero_grad()
    loss.backward()
    solver.clip_grad_by_norm(1.0)
    solver.update()
    print("step", step, "%.5f %.5f %.5f" % (start.d, loss.d, rate.d[0, 0]))
for name in sorted(slow):
    print(name, "%.4f %.4f" % (np.linalg.norm(slow[name].d), np.linalg.norm(slow[name].g)))
