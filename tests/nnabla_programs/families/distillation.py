"""A small network learns from a large one: soft targets with a temperature, hints from the middle, attention maps."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(25)
B, CLASSES, TEMPERATURE = 4, 5, 3.0


def network(x, maps, fixed=False):
    options = dict(pad=(1, 1), fix_parameters=fixed)
    h = F.relu(PF.convolution(x, maps, (3, 3), name="c1", **options))
    middle = F.relu(PF.convolution(h, maps, (3, 3), stride=(2, 2), name="c2", **options))
    h = F.average_pooling(middle, middle.shape[2:])
    return PF.affine(h, CLASSES, fix_parameters=fixed, name="fc"), middle


def attention(h):
    h = F.reshape(F.mean(h ** 2, axis=1), (B, -1))
    return h / (F.sum(h ** 2, axis=1, keepdims=True) + 1e-6) ** 0.5


x, t = nn.Variable((B, 2, 6, 6)), nn.Variable((B, 1))
with nn.parameter_scope("teacher"):
    large, large_middle = network(x, 12, fixed=True)
with nn.parameter_scope("student"):
    small, small_middle = network(x, 4)
    hint = PF.convolution(small_middle, 12, (1, 1), name="hint")
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    p.d = rng.randn(*p.shape) * 0.3
large.need_grad = False
soft = F.softmax(large / TEMPERATURE)
soft.need_grad = False
entropy = F.mean(F.softmax_cross_entropy(small, t))
kl = F.mean(F.sum(soft * (F.log(soft + 1e-8) - F.log_softmax(small / TEMPERATURE)), axis=1)) * TEMPERATURE ** 2
hints = F.mean(F.squared_error(hint, large_middle.get_unlinked_variable(need_grad=False)))
maps = F.mean(F.squared_error(attention(small_middle), attention(large_middle)))
loss = 0.3 * entropy + 0.7 * kl + 0.1 * hints + maps
for part in (entropy, kl, hints, maps):
    part.persistent = True
trained = nn.get_parameters()
print(sorted(trained))
solver = S.Adam(1e-2)
solver.set_parameters(trained)
for step in range(6):
    x.d, t.d = rng.randn(*x.shape), rng.randint(0, CLASSES, t.shape)
    large_middle.forward()
    loss.forward()
    solver.zero_grad()
    loss.backward()
    solver.update()
    print("step", step, "%.5f" % loss.d, ["%.5f" % part.d for part in (entropy, kl, hints, maps)])
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    print(name, p.shape, p.need_grad, "%.5f" % np.linalg.norm(p.d))
