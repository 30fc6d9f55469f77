"""Mixtures of samples and of labels, label smoothing, cut-outs, an average of weights, and test with flips."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(26)
B, CLASSES, SIZE = 6, 3, 8


def network(x, test=False):
    h = x
    for i, maps in enumerate((4, 8)):
        h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False, name="c%d" % i)
        h = F.relu(PF.batch_normalization(h, batch_stat=not test, name="bn%d" % i))
        h = F.average_pooling(h, (2, 2))
    return PF.affine(h, CLASSES, name="fc")


def smooth(labels, eps=0.1):
    return F.one_hot(labels, (CLASSES,)) * (1 - eps) + eps / CLASSES


x, t, order, share = nn.Variable((B, 1, SIZE, SIZE)), nn.Variable((B, 1)), nn.Variable((B,)), nn.Variable((1, 1))
hole = nn.Variable((1, 1, SIZE, SIZE))
other = F.gather(x, order, axis=0)
mixed = F.reshape(share, (1, 1, 1, 1)) * x + (1 - F.reshape(share, (1, 1, 1, 1))) * other
cut = mixed * (1 - hole) + other * hole
area = F.mean(hole)
keep = F.reshape(share, (1, 1)) * (1 - F.reshape(area, (1, 1)))
target = keep * smooth(t) + (1 - keep) * smooth(F.gather(t, order, axis=0))
y = network(cut)
loss = -F.mean(F.sum(target * F.log_softmax(y, axis=1), axis=1))
plain, flipped = nn.Variable(x.shape), None
flipped = F.flip(plain, axes=(3,))
tested = (F.softmax(network(plain, True)) + F.softmax(network(flipped, True))) / 2
for name, p in sorted(nn.get_parameters().items()):
    if name.split("/")[-1] in ("W", "b"):
        p.d = rng.randn(*p.shape) * 0.4
params = nn.get_parameters()
average = {name: p.d.copy() for name, p in params.items()}
solver = S.SgdW(lr=0.05, momentum=0.9, wd=1e-3)
solver.set_parameters(params)
for step in range(6):
    x.d, t.d = rng.rand(*x.shape), rng.randint(0, CLASSES, t.shape)
    order.d, share.d = rng.permutation(B), rng.beta(0.5, 0.5)
    mask = np.zeros((SIZE, SIZE))
    top, left = rng.randint(0, SIZE - 3, 2)
    mask[top:top + 3, left:left + 3] = 1
    hole.d = mask
    loss.forward(clear_no_need_grad=True)
    solver.zero_grad()
    loss.backward(clear_buffer=True)
    solver.update()
    for name, p in params.items():
        average[name] += (p.d - average[name]) / (step + 2)
    print("step", step, "%.4f" % share.d[0, 0], "%.5f" % loss.d)
plain.d = x.d
tested.forward()
print("before", np.round(tested.d[0], 5).tolist())
for name, value in average.items():
    params[name].d = value
tested.forward()
print("after", np.round(tested.d[0], 5).tolist())
for name, p in sorted(nn.get_parameters(grad_only=False).items()):
    print(name, "%.5f" % np.linalg.norm(p.d))
