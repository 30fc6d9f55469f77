"""Binary, fixed-point, power-of-two, pruned and min-max layers."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

x = nn.Variable.from_numpy_array(np.sin(np.arange(3 * 4 * 5 * 5) * 0.9).reshape(3, 4, 5, 5).astype(np.float32), need_grad=True)


def run(name, make):
    nn.clear_parameters()
    y = make(x)
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * 0.41 + i).reshape(p.shape) * 0.7
        p.grad.zero()
    loss = F.mean(y ** 2)
    loss.forward()
    x.grad.zero()
    loss.backward()
    print(name, y.shape, "%.5f %.5f" % (loss.d, np.abs(x.g).sum()), sorted(nn.get_parameters(grad_only=False)))
    for n, p in sorted(nn.get_parameters().items()):
        print("   ", n, "%.5f" % np.abs(p.g).sum())


run("binary connect affine", lambda v: PF.binary_connect_affine(v, 3))
run("binary connect convolution", lambda v: PF.binary_connect_convolution(v, 3, (3, 3)))
run("binary weight affine", lambda v: PF.binary_weight_affine(v, 3))
run("binary weight convolution", lambda v: PF.binary_weight_convolution(v, 3, (3, 3)))
run("fixed point affine", lambda v: PF.fixed_point_quantized_affine(v, 3, n_w=4, delta_w=2 ** -3, n_b=4, delta_b=2 ** -3))
run("fixed point convolution", lambda v: PF.fixed_point_quantized_convolution(v, 2, (2, 2), n_w=3, delta_w=0.25))
run("power of two affine", lambda v: PF.pow2_quantized_affine(v, 3, n_w=4, m_w=1))
run("power of two convolution", lambda v: PF.pow2_quantized_convolution(v, 2, (2, 2)))
run("pruned affine", lambda v: PF.pruned_affine(v, 3, rate_w=0.5))
run("pruned convolution", lambda v: PF.pruned_convolution(v, 2, (3, 3), rate_w=0.7))
run("fixed point activation", lambda v: F.fixed_point_quantize(v, True, 5, 2 ** -3))
run("power of two activation", lambda v: F.pow2_quantize(v, True, True, 4, 1))
run("min max activation", lambda v: PF.min_max_quantize(v, ql_min=0, ql_max=255))
run("binary tanh", lambda v: F.binary_tanh(v * 2))
run("binary sigmoid", lambda v: F.binary_sigmoid(v * 2))
