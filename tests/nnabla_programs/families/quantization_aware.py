"""Fixed point and ranges by minimum and maximum during training; the network in floats learns their errors."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

B = 4


def fixed(x):
    h = F.fixed_point_quantize(x, n=8, delta=2.0 ** -4)
    h = PF.fixed_point_quantized_convolution(h, 4, (3, 3), pad=(1, 1), n_w=8, delta_w=2.0 ** -5, n_b=8, delta_b=2.0 ** -5, name="c1")
    h = F.fixed_point_quantize(F.relu(h), sign=False, n=6, delta=2.0 ** -3)
    return PF.fixed_point_quantized_affine(F.average_pooling(h, (3, 3)), 3, n_w=6, delta_w=2.0 ** -4, name="fc")


def ranges(x):
    h = PF.min_max_quantize(x, ql_min=0, ql_max=255, decay=0.9, name="in")
    h = PF.min_max_quantized_convolution(h, 4, (3, 3), pad=(1, 1), ql_min_w=1, ql_max_w=255, name="c1")
    h = PF.min_max_quantize(F.relu(h), ql_min=0, ql_max=15, decay=0.9, name="mid")
    return PF.min_max_quantized_affine(F.average_pooling(h, (3, 3)), 3, name="fc")


for kind, network in (("fixed", fixed), ("ranges", ranges)):
    rng = np.random.RandomState(28)
    nn.clear_parameters()
    x, t = nn.Variable((B, 2, 6, 6)), nn.Variable((B, 1))
    y = network(x)
    y.persistent = True
    loss = F.mean(F.softmax_cross_entropy(y, t))
    for name, p in sorted(nn.get_parameters().items()):
        if name.split("/")[-1] in ("W", "b"):
            p.d = rng.randn(*p.shape) * 0.3
    solver = S.Momentum(1e-2)
    solver.set_parameters(nn.get_parameters())
    for step in range(4):
        x.d, t.d = rng.randn(*x.shape), rng.randint(0, 3, t.shape)
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.weight_decay(1e-3)
        solver.update()
        print(kind, step, "%.4f" % loss.d, np.round(y.d[0], 3).tolist())
    for name, p in sorted(nn.get_parameters(grad_only=False).items()):
        print("  ", name, p.shape, "%.3f" % np.linalg.norm(p.d))
