"""Initial values drawn from a given NumPy generator, and names and shapes of parameters of every kind of layer."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF
from nnabla.initializer import NormalInitializer, UniformInitializer

image, vector = nn.Variable((2, 4, 5, 5)), nn.Variable((2, 6))
sequence, h, c = nn.Variable((3, 2, 4)), nn.Variable((1, 1, 2, 5)), nn.Variable((1, 1, 2, 5))
LAYERS = [
    ("affine", lambda rng: PF.affine(vector, 3, rng=rng)),
    ("convolution", lambda rng: PF.convolution(image, 3, (3, 3), rng=rng)),
    ("convolution groups", lambda rng: PF.convolution(image, 8, (3, 1), group=2, rng=rng, with_bias=False)),
    ("depthwise", lambda rng: PF.depthwise_convolution(image, (3, 3), multiplier=2, rng=rng)),
    ("deconvolution", lambda rng: PF.deconvolution(image, 3, (2, 2), rng=rng)),
    ("uniform", lambda rng: PF.affine(vector, 3, w_init=UniformInitializer((-0.1, 0.3), rng=rng))),
    ("normal", lambda rng: PF.affine(vector, 3, w_init=NormalInitializer(2.0, rng=rng), b_init=NormalInitializer(0.1, rng=rng))),
    ("binary connect", lambda rng: PF.binary_connect_affine(vector, 3, rng=rng)),
    ("fixed point", lambda rng: PF.fixed_point_quantized_convolution(image, 3, (3, 3), rng=rng)),
    ("pruned", lambda rng: PF.pruned_affine(vector, 3, rng=rng)),
]
for name, layer in LAYERS:
    nn.clear_parameters()
    layer(np.random.RandomState(77))
    print(name)
    for key, p in nn.get_parameters(grad_only=False).items():
        print("   ", key, p.shape, p.need_grad, np.round(p.d.ravel()[:3], 5).tolist(), "%.5f" % np.abs(p.d).sum())

SHAPES = [
    lambda: PF.embed(nn.Variable((2, 3)), 10, 4),
    lambda: PF.rnn(sequence, h, num_layers=1),
    lambda: PF.lstm(sequence, h, c, with_bias=False),
    lambda: PF.gru(sequence, nn.Variable((2, 1, 2, 5)), num_layers=2),
    lambda: PF.lstm_cell(vector, nn.Variable((2, 5)), nn.Variable((2, 5)), 5),
    lambda: PF.multi_head_attention(sequence, sequence, sequence, num_heads=2),
    lambda: PF.transformer_encode(sequence, 4, 2, dim_feedforward=8),
    lambda: PF.layer_normalization(image),
    lambda: PF.group_normalization(image, 2),
    lambda: PF.instance_normalization(image),
    lambda: PF.batch_normalization(image, axes=[0, 2]),
    lambda: PF.prelu(image, shared=False),
    lambda: PF.mean_subtraction(image),
    lambda: PF.min_max_quantized_affine(vector, 3),
    lambda: PF.inq_affine(vector, 3),
    lambda: PF.svd_affine(vector, 3, 2, uv_init=np.ones((6, 3))),
    lambda: PF.spectral_norm(nn.Variable((3, 4))),
    lambda: PF.weight_normalization(nn.Variable((3, 4))),
    lambda: PF.fused_batch_normalization(image),
]
for layer in SHAPES:
    nn.clear_parameters()
    layer()
    print([(key, p.shape, p.need_grad) for key, p in nn.get_parameters(grad_only=False).items()])
