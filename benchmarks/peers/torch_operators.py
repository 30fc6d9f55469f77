"""The rows of ``benchmarks.operators`` in PyTorch: functions of tensors of the same shapes."""

import torch as th
import torch.nn.functional as F

from benchmarks.threads import threads


def _lstm(x, h, c, w):
    weights = [w[0, :, :, : x.shape[2]].flatten(0, 1), w[0, :, :, x.shape[2] :].flatten(0, 1)]
    return th.lstm(x, (h[0], c[0]), weights, False, 1, 0.0, True, False, False)[0]


def _top_k(x):
    """Return the largest values at their places, zeros elsewhere, as top_k_data has them."""
    values, places = x.topk(10, 1)
    return th.zeros_like(x).scatter(1, places, values)


def _stft(x):
    return th.stft(x, 1024, 256, 1024, th.hann_window(1024), return_complex=True).real


def _random_flip(x):
    flips = th.rand(x.shape[0], 1, 1, 1) < 0.5
    return th.where(flips, x.flip(3), x)


FUNCTIONS = {
    "affine": lambda x, w, b: th.addmm(b, x, w),
    "batch_matmul": th.bmm,
    "convolution 1x1": F.conv2d,
    "convolution 3x3": lambda x, w: F.conv2d(x, w, padding=1),
    "convolution depthwise": lambda x, w: F.conv2d(x, w, padding=1, groups=x.shape[1]),
    "lstm": _lstm,
    "add2": th.add,
    "add2 broadcast": th.add,
    "tanh": th.tanh,
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "relu": th.relu,
    "softmax": lambda x: th.softmax(x, 1),
    "softmax_cross_entropy": lambda x, t: F.cross_entropy(x, t[:, 0], reduction="none"),
    "layer_normalization": lambda x, b, g: F.layer_norm(x, x.shape[1:], g[0], b[0]),
    "group_normalization": lambda x, b, g: F.group_norm(x, 8, g.flatten(), b.flatten()),
    "batch_normalization": lambda x, b, g, m, v: F.batch_norm(x, None, None, g.flatten(), b.flatten(), training=True),
    "max_pooling": lambda x: F.max_pool2d(x, 2),
    "average_pooling": lambda x: F.avg_pool2d(x, 2),
    "sum": lambda x: x.sum((0, 2, 3)),
    "max": lambda x: x.amax(1),
    "transpose": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "concatenate": lambda x, y: th.cat((x, y), 1),
    "embed": F.embedding,
    "dropout": lambda x: F.dropout(x, 0.5),
    "prelu": F.prelu,
    "where": lambda c, x, y: th.where(c > 0.5, x, y),
    "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1),
    "tan": th.tan,
    "atan": th.atan,
    "pow_scalar": lambda x: x**1.7,
    "max_pooling 3x3": lambda x: F.max_pool2d(x, 3, 2, 1),
    "sort": lambda x: x.sort(1)[0],
    "top_k": _top_k,
    "scatter_add": lambda x, i, s: x.scatter_add(1, i, s),
    "warp_by_grid": lambda x, g: F.grid_sample(x, g, align_corners=True),
    "fft": lambda x: th.view_as_real(th.fft.fft(th.view_as_complex(x))),
    "stft": _stft,
    "trilu": th.triu,
    "random_flip": _random_flip,
}


def steps(name, arrays):
    """Return the forward step, without gradients, and the backward step of a row; those of an unknown row are None."""
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    th.set_num_threads(threads())
    tensors = [th.from_numpy(array).requires_grad_(array.dtype.kind == "f") for array in arrays]
    y = function(*tensors)
    used = [x for x in tensors if x.requires_grad]
    gradient = th.ones_like(y)

    def forward():
        with th.no_grad():
            function(*tensors)

    def backward():
        th.autograd.grad(y, used, gradient, retain_graph=True, allow_unused=True)

    return forward, backward
