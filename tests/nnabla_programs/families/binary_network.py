"""Weights and activations of one bit, weights that are powers of two, and pruned ones, trained by straight-through gradients."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
import nnabla.solvers as S

B = 4


def bits(x):
    h = PF.binary_connect_convolution(x, 4, (3, 3), pad=(1, 1), with_bias=False, name="c1")
    h = F.binary_tanh(PF.batch_normalization(h, name="bn1"))
    return PF.binary_connect_affine(F.max_pooling(h, (2, 2)), 3, name="fc")


def powers(x):
    h = PF.pow2_quantized_convolution(x, 4, (3, 3), pad=(1, 1), n_w=4, m_w=1, with_bias=False, name="c1")
    h = F.pow2_quantize(F.relu(PF.batch_normalization(h, name="bn1")), sign=False, n=4, m=2)
    return PF.pow2_quantized_affine(F.max_pooling(h, (2, 2)), 3, n_w=4, m_w=1, n_b=4, m_b=1, name="fc")


def pruned(x):
    h = F.relu(PF.batch_normalization(PF.pruned_convolution(x, 4, (3, 3), pad=(1, 1), rate_w=0.5, with_bias=False, name="c1"), name="bn1"))
    return PF.pruned_affine(F.max_pooling(h, (2, 2)), 3, rate_w=0.7, rate_b=0.2, name="fc")


def weighted(x):
    h = PF.binary_weight_convolution(x, 4, (3, 3), pad=(1, 1), with_bias=False, name="c1")
    h = F.binary_sigmoid(PF.batch_normalization(h, name="bn1"))
    return PF.binary_weight_affine(F.max_pooling(h, (2, 2)), 3, name="fc")


for kind, network in (("bits", bits), ("powers", powers), ("pruned", pruned), ("weighted", weighted)):
    rng = np.random.RandomState(27)
    nn.clear_parameters()
    x, t = nn.Variable((B, 2, 6, 6)), nn.Variable((B, 1))
    y = network(x)
    loss = F.mean(F.softmax_cross_entropy(y, t))
    for name, p in sorted(nn.get_parameters().items()):
        if name.split("/")[-1] in ("W", "b"):
            p.d = np.round(rng.randn(*p.shape) * 0.4, 3) + 0.0004
    solver = S.Adam(1e-3)
    solver.set_parameters(nn.get_parameters())
    for step in range(3):
        x.d, t.d = rng.randn(*x.shape), rng.randint(0, 3, t.shape)
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        print(kind, step, "%.5f" % loss.d)
    for name, p in sorted(nn.get_parameters(grad_only=False).items()):
        print("  ", name, p.shape, "%.4f %.4f" % (np.linalg.norm(p.d), np.linalg.norm(p.g) if p.need_grad else 0))
