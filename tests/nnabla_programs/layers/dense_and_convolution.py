"""Affine, convolutions, transposed and depthwise convolutions: results and gradients from fixed weights."""
import numpy as np

import nnabla as nn
import nnabla.functions as F
import nnabla.parametric_functions as PF

x = nn.Variable.from_numpy_array(np.sin(np.arange(2 * 4 * 7 * 7) * 0.37).reshape(2, 4, 7, 7).astype(np.float32), need_grad=True)


def run(name, make):
    nn.clear_parameters()
    y = make(x)
    for i, (_, p) in enumerate(sorted(nn.get_parameters().items())):
        p.d = np.cos(np.arange(p.size) * 0.21 + i).reshape(p.shape)
        p.grad.zero()
    loss = F.mean(y * y)
    loss.forward(clear_no_need_grad=True)
    x.grad.zero()
    loss.backward(clear_buffer=True)
    print(name, y.shape, "%.5f %.6f" % (loss.d, np.abs(x.g).sum()))
    for n, p in sorted(nn.get_parameters().items()):
        print("   ", n, p.shape, "%.5f" % np.abs(p.g).sum())


run("affine", lambda v: PF.affine(v, 5))
run("affine base axis", lambda v: PF.affine(v, (2, 3), base_axis=2, with_bias=False))
run("convolution", lambda v: PF.convolution(v, 6, (3, 3)))
run("stride and padding", lambda v: PF.convolution(v, 6, (3, 3), pad=(1, 1), stride=(2, 2)))
run("dilation", lambda v: PF.convolution(v, 3, (3, 2), dilation=(2, 3)))
run("groups", lambda v: PF.convolution(v, 6, (3, 3), group=2, with_bias=False))
run("one by one", lambda v: PF.convolution(v, 8, (1, 1)))
run("asymmetric", lambda v: PF.convolution(v, 2, (1, 5), pad=(0, 2)))
run("depthwise", lambda v: PF.depthwise_convolution(v, (3, 3), multiplier=2))
run("deconvolution", lambda v: PF.deconvolution(v, 3, (3, 3)))
run("deconvolution stride", lambda v: PF.deconvolution(v, 3, (4, 4), pad=(1, 1), stride=(2, 2)))
run("deconvolution padding", lambda v: PF.deconvolution(v, 2, (3, 3), stride=(2, 2), output_padding=(1, 1)))
run("depthwise deconvolution", lambda v: PF.depthwise_deconvolution(v, (3, 3)))
run("one axis", lambda v: PF.convolution(F.reshape(v, (2, 4, 49)), 5, (5,), pad=(2,)))
run("two convolutions", lambda v: PF.convolution(F.relu(PF.convolution(v, 4, (3, 3), name="a")), 2, (3, 3), name="b"))
run("apply_w", lambda v: PF.affine(v, 3, apply_w=lambda w: w * 0.5))
