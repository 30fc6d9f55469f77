"""A dynamic graph: auto_forward, Python control flow that depends on values."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

rng = np.random.RandomState(1)


def fixed(shape):
    return rng.randn(*shape) * 0.4


def network(x, deep):
    h = F.tanh(PF.affine(x, 6, w_init=fixed, b_init=fixed, name="a"))
    if float(F.mean(h).d) > 0 or deep:
        h = F.sigmoid(PF.affine(h, 6, w_init=fixed, b_init=fixed, name="b"))
    return PF.affine(h, 3, w_init=fixed, b_init=fixed, name="c")


solver = None
with nn.auto_forward():
    print("auto", nn.get_auto_forward())
    for step in range(8):
        x = nn.Variable.from_numpy_array(rng.randn(5 + step % 3, 4).astype(np.float32))
        label = nn.Variable.from_numpy_array(rng.randint(0, 3, (x.shape[0], 1)))
        y = network(x, deep=step % 2 == 0)
        loss = F.mean(F.softmax_cross_entropy(y, label))
        if solver is None:
            solver = S.Momentum(lr=0.2, momentum=0.9)
        solver.set_parameters(nn.get_parameters(), reset=False, retain_state=True)
        solver.zero_grad()
        loss.backward()
        solver.update()
        print("step", step, "loss %.6f" % loss.d, sorted(nn.get_parameters()))
print("auto", nn.get_auto_forward())
for name, parameter in sorted(nn.get_parameters().items()):
    print(name, "%.5f" % parameter.d.sum())
nn.set_auto_forward(True)
print("value at once", float((nn.Variable.from_numpy_array(np.ones(3)) * 2).d.sum()))
nn.set_auto_forward(False)
print("auto", nn.get_auto_forward())
