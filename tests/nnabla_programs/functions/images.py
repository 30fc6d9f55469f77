"""Pooling, interpolation, warping and other functions of images."""
# tolerance: 5e-4
import numpy as np

import nnabla as nn
import nnabla.functions as F

x = nn.Variable.from_numpy_array(np.sin(np.arange(2 * 2 * 6 * 6) * 0.77).reshape(2, 2, 6, 6).astype(np.float32), need_grad=True)


def show(name, y):
    w = nn.Variable.from_numpy_array(np.cos(np.arange(y.size)).reshape(y.shape))
    loss = F.sum(y * w)
    x.grad.zero()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    print(name, y.shape, "%.4f %.4f" % (loss.d, np.abs(x.g).sum()))


show("max", F.max_pooling(x, (2, 2)))
show("max stride", F.max_pooling(x, (3, 3), stride=(2, 2), pad=(1, 1), ignore_border=True))
show("max border", F.max_pooling(x, (4, 4), stride=(3, 3), ignore_border=False))
show("average", F.average_pooling(x, (2, 3)))
show("average pad", F.average_pooling(x, (3, 3), stride=(1, 1), pad=(1, 1), including_pad=False))
show("sum", F.sum_pooling(x, (2, 2), stride=(1, 2)))
show("global", F.global_average_pooling(x))
show("unpooling", F.unpooling(x, (2, 2)))
show("nearest", F.interpolate(x, scale=(2, 2), mode="nearest"))
show("linear", F.interpolate(x, output_size=(9, 4), mode="linear"))
show("linear aligned", F.interpolate(x, output_size=(9, 4), mode="linear", align_corners=True))
show("half pixel", F.interpolate(x, output_size=(3, 3), mode="linear", align_corners=False, half_pixel=True))
theta = nn.Variable.from_numpy_array(np.array([[[0.9, 0.1, 0.05], [-0.1, 1.1, 0.0]]] * 2, np.float32))
show("warp", F.warp_by_grid(x, F.affine_grid(theta, (5, 5), align_corners=True), align_corners=True))
flow = nn.Variable.from_numpy_array((np.sin(np.arange(2 * 2 * 36)) * 0.6).reshape(2, 2, 6, 6).astype(np.float32))
show("flow", F.warp_by_flow(x, flow))
rois = nn.Variable.from_numpy_array(np.array([[0, 0.5, 0.5, 4.5, 4.0], [1, 1, 0, 5, 5]], np.float32))
show("roi", F.roi_align(x, rois, (2, 2), (1.0, 1.0), sampling_ratio=2))
show("patches", F.patch_correlation(F.transpose(x, (0, 2, 3, 1)), F.transpose(x * 0.5, (0, 2, 3, 1)), (1, 1), shift=(1, 1)))
show("max 3d", F.max_pooling(F.reshape(x, (2, 2, 4, 3, 3)), (2, 3, 3)))
show("stft", F.sum(F.concatenate(*F.stft(F.reshape(x, (2, 72)), 16, 4, 16), axis=1) ** 2, axis=2))
show("resize and sum", F.sum(F.interpolate(x, scale=(0.5, 0.5), mode="linear"), axis=1))
