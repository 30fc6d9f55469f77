"""Two generators and two critics with cycles and identities, linear decay of the rate."""
import itertools

import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(4)


def residual(x, maps, name):
    with nn.parameter_scope(name):
        h = F.pad(x, (0, 0, 0, 0, 1, 1, 1, 1), "reflect")
        h = F.relu(PF.instance_normalization(PF.convolution(h, maps, (3, 3), with_bias=False, name="a"), name="na"))
        h = F.pad(h, (1, 1, 1, 1), mode="reflect")
        return x + PF.instance_normalization(PF.convolution(h, maps, (3, 3), with_bias=False, name="b"), name="nb")


def generator(x, scope):
    with nn.parameter_scope(scope):
        h = F.relu(PF.convolution(x, 4, (3, 3), pad=(1, 1), stride=(2, 2), name="in"))
        h = residual(h, 4, "res1")
        h = F.interpolate(h, scale=(2, 2), mode="nearest")
        return F.tanh(PF.convolution(h, x.shape[1], (3, 3), pad=(1, 1), name="out"))


def critic(x, scope):
    with nn.parameter_scope(scope):
        h = F.leaky_relu(PF.convolution(x, 4, (4, 4), pad=(1, 1), stride=(2, 2), name="c1"))
        return PF.convolution(h, 1, (3, 3), pad=(1, 1), name="c2")


def real(score):
    return F.mean((score - 1) ** 2)


def fake(score):
    return F.mean(score ** 2)


a, b = nn.Variable((2, 2, 8, 8)), nn.Variable((2, 2, 8, 8))
ab, ba = generator(a, "g_ab"), generator(b, "g_ba")
aba, bab = generator(ab, "g_ba"), generator(ba, "g_ab")
cycle = F.mean(F.absolute_error(aba, a)) + F.mean(F.absolute_error(bab, b))
identity = F.mean(F.absolute_error(generator(b, "g_ab"), b)) + F.mean(F.absolute_error(generator(a, "g_ba"), a))
loss_g = real(critic(ab, "d_b")) + real(critic(ba, "d_a")) + 10 * cycle + 5 * identity
ab_cut, ba_cut = ab.unlinked(), ba.unlinked()
ab.persistent = ba.persistent = True
loss_d = 0.5 * (real(critic(a, "d_a")) + fake(critic(ba_cut, "d_a")) + real(critic(b, "d_b")) + fake(critic(ab_cut, "d_b")))

params = nn.get_parameters()
for name, p in sorted(params.items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.25
of_g = {k: v for k, v in params.items() if k.startswith("g_")}
of_d = {k: v for k, v in params.items() if k.startswith("d_")}
solver_g, solver_d = S.Adam(1e-3, beta1=0.5), S.Adam(1e-3, beta1=0.5)
solver_g.set_parameters(of_g)
solver_d.set_parameters(of_d)
for step in range(4):
    a.d, b.d = rng.rand(*a.shape), -rng.rand(*b.shape)
    rate = 1e-3 * (1 - max(0, step - 1) / 4)
    for loss, solver in ((loss_g, solver_g), (loss_d, solver_d)):
        solver.set_learning_rate(rate)
        loss.forward(clear_no_need_grad=True)
        solver.zero_grad()
        loss.backward(clear_buffer=True)
        solver.update()
    print("step", step, "%.4f" % rate, "%.5f %.5f" % (loss_g.d, loss_d.d))
for name, p in itertools.chain(sorted(of_g.items())[:6], sorted(of_d.items())[:4]):
    print(name, p.shape, "%.4f" % np.linalg.norm(p.d))
