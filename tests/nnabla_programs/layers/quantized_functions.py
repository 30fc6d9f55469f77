"""Quantized layers and functions, forward and backward."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

w = lambda shape: 0.3 * np.sin(1.3 * np.arange(np.prod(shape))).reshape(shape)


def run(name, y, *leaves):
    for v in list(leaves) + list(nn.get_parameters().values()):
        v.grad.zero()
    y.forward()
    y.backward()
    print(name, y.shape, "%.4f" % float(np.sum(y.d * np.arange(y.size).reshape(y.shape))), [round(float(np.abs(v.g).sum()), 3) for v in leaves],
          {k: round(float(np.abs(p.g).sum()), 3) for k, p in nn.get_parameters().items()})


x = nn.Variable((2, 3, 5, 5), need_grad=True)
x.d = np.cos(0.7 * np.arange(150)).reshape(x.shape)
layers = {
    "binary_connect_affine": lambda: PF.binary_connect_affine(x, 4, w_init=w, wb_init=w),
    "binary_weight_convolution": lambda: PF.binary_weight_convolution(x, 4, (3, 3), w_init=w, wb_init=w),
    "fixed_point_quantized_affine": lambda: PF.fixed_point_quantized_affine(x, 4, w_init=w, n_w=6, delta_w=2 ** -3),
    "fixed_point_quantized_convolution": lambda: PF.fixed_point_quantized_convolution(x, 4, (3, 3), w_init=w, n_w=6, delta_w=2 ** -3),
    "pow2_quantized_affine": lambda: PF.pow2_quantized_affine(x, 4, w_init=w, n_w=4, m_w=1),
    "pow2_quantized_convolution": lambda: PF.pow2_quantized_convolution(x, 4, (3, 3), w_init=w, n_w=4, m_w=1),
    "min_max_quantize": lambda: PF.min_max_quantize(x, 0, 255, decay=0.9, x_min_max=True, ema=False),
    "pruned_affine": lambda: PF.pruned_affine(x, 4, w_init=w, rate_w=0.5),
    "pruned_convolution": lambda: PF.pruned_convolution(x, 4, (3, 3), w_init=w, rate_w=0.5),
    "inq_affine": lambda: PF.inq_affine(x, 4, w_init=w, i_init=lambda shape: np.zeros(shape)),
}
for name, layer in layers.items():
    nn.clear_parameters()
    y = layer()
    run(name, F.mean(y * y), x)
    print("  ", sorted((k, p.shape, p.need_grad) for k, p in nn.get_parameters(grad_only=False).items()))
nn.clear_parameters()
for name, f in {
    "fixed": lambda: F.fixed_point_quantize(x, True, 4, 0.25),
    "pow2": lambda: F.pow2_quantize(x, True, True, 4, 1),
    "sigmoid": lambda: F.binary_sigmoid(x),
    "tanh": lambda: F.binary_tanh(x),
    "prune": lambda: F.prune(x, 0.3),
    "linear": lambda: F.quantize_linear(x, nn.Variable.from_numpy_array(np.full((1, 1, 1, 1), 0.1)), nn.Variable.from_numpy_array(np.zeros((1, 1, 1, 1))), "HALF_AWAY_FROM_ZERO", False, np.int8),
}.items():
    run(name, f(), x)
