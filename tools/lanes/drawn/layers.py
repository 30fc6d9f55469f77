"""Layers with parameters, poolings and normalizations."""

from math import prod
from typing import Any

from tools.lanes.drawn.network import BATCH, Net, Var
from tools.lanes.drawn.pointwise import flag, positive, small, unit


def affine(net: Net, x: Var, inner: tuple[int, ...] | None = None) -> Var:
    """Return an affine layer, of one of NNabla's kinds; `inner` is the shape of a sample of its result."""
    wanted = inner
    inner = inner or net.rng.choice(((net.rng.randint(2, 8),), (net.rng.randint(2, 4), net.rng.randint(2, 4))))
    base_axis = net.rng.randint(1, x.ndim - 1) if wanted is None else 1
    x = small(net, x)
    inputs = [x, net.parameter("affine/W", (prod(x.shape[base_axis:]), *inner), 1.0)]
    if flag(net):
        inputs.append(net.parameter("affine/b", inner, 0.3))
    kind = net.rng.choice(("Affine",) * 6 + ("BinaryConnectAffine", "BinaryWeightAffine"))
    settings: dict[str, Any] = {"base_axis": base_axis}
    if kind != "Affine":
        settings["quantize_zero_to"] = 1.0
        inputs.insert(2, net.parameter("affine/Wb", inputs[1].shape, 1.0, own=True))
    if kind == "BinaryWeightAffine":
        inputs.insert(3, net.parameter("affine/alpha", inner, 0.5, own=True))
    return net.add(kind, inputs, (*x.shape[:base_axis], *inner), 2 * x.size, **settings)


def _windows(net: Net, x: Var, channel_last: bool) -> tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]:
    """Kernel, settings and resulting lengths for the last two axes, or those before the channels."""
    lengths = x.shape[-3:-1] if channel_last else x.shape[-2:]
    kernel = tuple(net.rng.randint(1, min(3, n)) for n in lengths)
    pad = tuple(net.rng.randint(0, 1) for _ in lengths)
    stride = tuple(net.rng.choice((1, 1, 2)) for _ in lengths)
    room = [n + 2 * p >= 2 * k - 1 for n, k, p in zip(lengths, kernel, pad, strict=True)]
    dilation = tuple(2 if fits and flag(net) else 1 for fits in room)
    sizes = zip(lengths, kernel, pad, stride, dilation, strict=True)
    result = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, p, s, d in sizes)
    return kernel, {"pad": pad, "stride": stride, "dilation": dilation}, result


def convolution(net: Net, x: Var) -> Var:
    """Return a convolution, of one of NNabla's kinds, with groups or without."""
    base_axis = x.ndim - 3
    x = small(net, x)
    kernel, settings, result = _windows(net, x, False)
    n_in, n_out = x.shape[-3], net.rng.randint(1, 5)
    group = n_in if n_in <= 3 and net.rng.random() < 0.25 else 1
    n_out = n_out * group
    kind = net.rng.choice(("Convolution",) * 6 + ("BinaryConnectConvolution", "BinaryWeightConvolution"))
    inputs = [x, net.parameter("conv/W", (n_out, n_in // group, *kernel), 1.0)]
    if kind != "Convolution":
        inputs.append(net.parameter("conv/Wb", inputs[1].shape, 1.0, own=True))
    if kind == "BinaryWeightConvolution":
        inputs.append(net.parameter("conv/alpha", (n_out,), 0.5, own=True))
    if flag(net):
        inputs.append(net.parameter("conv/b", (n_out,), 0.3))
    more: dict[str, Any] = {"channel_last": False} if kind == "Convolution" else {"quantize_zero_to": 1.0}
    shape = (*x.shape[:base_axis], n_out, *result)
    return net.add(kind, inputs, shape, 2 * x.size, base_axis=base_axis, group=group, **settings, **more)


def depthwise_convolution(net: Net, x: Var) -> Var:
    """Return a convolution of each channel."""
    x = small(net, x)
    kernel, settings, result = _windows(net, x, False)
    multiplier = net.rng.randint(1, 2)
    n_out = x.shape[-3] * multiplier
    inputs = [x, net.parameter("depthwise_conv/W", (n_out, *kernel), 1.0)]
    if flag(net):
        inputs.append(net.parameter("depthwise_conv/b", (n_out,), 0.3))
    shape = (*x.shape[:-3], n_out, *result)
    return net.add("DepthwiseConvolution", inputs, shape, 2 * x.size, base_axis=x.ndim - 3, multiplier=multiplier, **settings)


def deconvolution(net: Net, x: Var) -> Var:
    """Return a transposed convolution, of all channels or of each."""
    x = small(net, x)
    kernel = tuple(net.rng.randint(1, 3) for _ in range(2))
    stride = tuple(net.rng.randint(1, 2) for _ in range(2))
    result = tuple((n - 1) * s + k for n, s, k in zip(x.shape[-2:], stride, kernel, strict=True))
    settings: dict[str, Any] = {"base_axis": x.ndim - 3, "pad": (0, 0), "stride": stride, "dilation": (1, 1)}
    if flag(net):
        n_out = net.rng.randint(1, 3)
        inputs = [x, net.parameter("deconv/W", (x.shape[-3], n_out, *kernel), 1.0)]
        settings.update(group=1, channel_last=False, output_padding=(0, 0))
        kind = "Deconvolution"
    else:
        n_out, kind = x.shape[-3], "DepthwiseDeconvolution"
        inputs = [x, net.parameter("depthwise_deconv/W", (n_out, *kernel), 1.0)]
        settings["divisor"] = 1
    if flag(net):
        inputs.append(net.parameter("deconv/b", (n_out,), 0.3))
    return net.add(kind, inputs, (*x.shape[:-3], n_out, *result), 3 * x.size, **settings)


def pooling(net: Net, x: Var) -> Var:
    """Return a pooling of the last two axes."""
    kind = net.rng.choice(("MaxPooling", "AveragePooling", "SumPooling", "GlobalAveragePooling", "Unpooling"))
    if kind == "GlobalAveragePooling":
        return net.add(kind, [x], (*x.shape[:-2], 1, 1))
    kernel = tuple(net.rng.randint(1, min(3, n)) for n in x.shape[-2:])
    if kind == "Unpooling":
        return net.add(kind, [x], (*x.shape[:-2], *(n * k for n, k in zip(x.shape[-2:], kernel, strict=True))),
                       kernel=kernel, channel_last=False)  # fmt: skip
    stride = tuple(net.rng.randint(1, 2) for _ in kernel)
    pad = tuple(net.rng.randint(0, k // 2) for k in kernel)
    ignore_border = flag(net)
    sizes = zip(x.shape[-2:], kernel, stride, pad, strict=True)
    if ignore_border:
        result = tuple((n + 2 * p - k) // s + 1 for n, k, s, p in sizes)
    else:
        result = tuple(-(-(n + p) // s) for n, _, s, p in sizes)
    settings: dict[str, Any] = {"including_pad": flag(net)} if kind == "AveragePooling" else {}
    size = x.size * prod(kernel) if kind == "SumPooling" else None
    return net.add(kind, [x], (*x.shape[:-2], *result), size, kernel=kernel, stride=stride, ignore_border=ignore_border,
                   pad=pad, channel_last=False, **settings)  # fmt: skip


def batch_normalization(net: Net, x: Var) -> Var:
    """Return normalization over the samples, by their statistics or by running ones."""
    channel = 1
    shape = tuple(n if k == channel else 1 for k, n in enumerate(x.shape))
    beta, gamma = net.parameter("bn/beta", shape, 0.3), net.parameter("bn/gamma", shape, 1.0)
    mean = net.parameter("bn/mean", shape, 0.3, own=True)
    var = net.parameter("bn/var", shape, 0.5, positive=True, own=True)
    settings: dict[str, Any] = {"axes": [channel], "decay_rate": 0.9, "eps": 0.01, "batch_stat": net.rng.random() < 0.3}
    kind = net.rng.choice(("BatchNormalization",) * 3 + ("FusedBatchNormalization",))
    inputs = [small(net, x), beta, gamma, mean, var]
    if kind == "FusedBatchNormalization":
        settings["nonlinearity"] = "relu"
        if flag(net):
            inputs.append(fitting_residual(net, x))
    else:
        settings.update(no_scale=False, no_bias=False)
    return net.add(kind, inputs, x.shape, 5.0, **settings)


def fitting_residual(net: Net, x: Var) -> Var:
    """Something of the shape of `x` to be added to it."""
    return net.add("MulScalar", [x], x.shape, x.size, val=0.5, inplace=False)


def normalization(net: Net, x: Var) -> Var:
    """Return normalization of each sample."""
    kind = net.rng.choice(("LayerNormalization", "InstanceNormalization", "GroupNormalization", "TensorNormalization"))
    x = small(net, x)
    per_channel = tuple(n if k == 1 else 1 for k, n in enumerate(x.shape))
    shape = (1, *x.inner) if kind == "LayerNormalization" else per_channel
    no_bias, no_scale = net.rng.random() < 0.3, net.rng.random() < 0.3
    inputs = [x]
    if not no_bias:
        inputs.append(net.parameter("norm/beta", shape, 0.3))
    if not no_scale:
        inputs.append(net.parameter("norm/gamma", shape, 1.0))
    settings: dict[str, Any] = {"eps": 1e-2, "no_scale": no_scale, "no_bias": no_bias}
    if kind == "TensorNormalization":
        settings["axes"] = [1]
    else:
        settings["batch_axis"] = [0]
    if kind in ("InstanceNormalization", "GroupNormalization"):
        settings["channel_axis"] = 1
    if kind == "GroupNormalization":
        settings["num_groups"] = net.rng.choice([n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0])
    return net.add(kind, inputs, x.shape, 5.0, **settings)


def normalized_weights(net: Net, x: Var) -> Var:
    """Return an affine layer whose weights are normalized before: a function of parameters only."""
    n_out = net.rng.randint(2, 6)
    w = net.parameter("affine/W", (prod(x.inner), n_out), 1.0)
    kind = net.rng.choice(("WeightStandardization", "WeightNormalization", "SpectralNorm", "MulScalar"))
    if kind == "WeightStandardization":
        w = net.add(kind, [w], w.shape, 2.0, channel_axis=1, eps=1e-3)
    elif kind == "WeightNormalization":
        w = net.add(kind, [w, net.parameter("wn/g", (n_out,), 1.0, positive=True)], w.shape, 2.0, dim=1, eps=1e-5)
    elif kind == "SpectralNorm":
        u = net.parameter("sn/u", (n_out,), 1.0, positive=True, own=True)
        w = net.add(kind, [w, u], w.shape, 2.0, dim=1, itr=1, eps=1e-5, test=True, output_u=False)
    else:
        w = net.add("MulScalar", [w], w.shape, 1.0, val=0.7, inplace=False)
    return net.add("Affine", [small(net, x), w], (x.shape[0], n_out), 2 * x.size, base_axis=1)


def prelu(net: Net, x: Var) -> Var:
    """PReLU with a slope for all, or one for each channel."""
    slope = net.parameter("prelu/slope", (x.shape[1],) if flag(net) else (1,), 0.3)
    return net.add("PReLU", [x, slope], x.shape, base_axis=1)


def embed(net: Net, x: Var) -> Var:
    """Vectors of labels, joined with what there is."""
    classes, length = net.rng.randint(3, 6), net.rng.randint(1, 4)
    label = net.input((x.shape[0], length), classes)
    vectors = net.add("Embed", [label, net.parameter("embed/W", (classes, 3), 1.0)], (x.shape[0], length, 3), 3.0)
    flat = net.add("Reshape", [x], (x.shape[0], prod(x.inner)), x.size, shape=(x.shape[0], prod(x.inner)), inplace=False)
    other = net.add("Reshape", [vectors], (x.shape[0], 3 * length), 3.0, shape=(x.shape[0], 3 * length), inplace=False)
    return net.add("Concatenate", [flat, other], (x.shape[0], prod(x.inner) + 3 * length), axis=1)


def classification(net: Net, x: Var) -> Var:
    """Return a loss or an error of classes, whose labels are an input."""
    label = net.input((x.shape[0], 1), x.shape[1])
    kind = net.rng.choice(("SoftmaxCrossEntropy", "CategoricalCrossEntropy", "TopNError", "OneHot"))
    if kind == "OneHot":
        shape = (x.shape[0], x.shape[1])
        hot = net.add(kind, [label], shape, 1.0, shape=(x.shape[1],))
        return net.add("Mul2", [x, hot], shape, inplace=False)
    if kind == "CategoricalCrossEntropy":
        x = net.add("Softmax", [small(net, x)], x.shape, 1.0, axis=1)
    settings: dict[str, Any] = {"axis": 1, "n": 1} if kind == "TopNError" else {"axis": 1}
    return net.add(kind, [small(net, x), label], (x.shape[0], 1), 5.0, **settings)


def quantization(net: Net, x: Var) -> Var:
    """MinMaxQuantize with given ranges."""
    shape = (1,) * x.ndim
    low, high = net.parameter("mmq/qr_min", shape, 1.0, own=True), net.parameter("mmq/qr_max", shape, 1.0, True, own=True)
    low = net.add("MulScalar", [positive(net, low)], shape, 3.0, val=-1.0, inplace=False)
    levels = [net.add("Constant", [], shape, 255.0, val=value, shape=shape) for value in (0.0, 255.0)]
    return net.add("MinMaxQuantize", [x, low, high, *levels], x.shape, 4.0, decay=0.9, x_min_max=False, ema=False,
                   ste_fine_grained=True, eps=0.01)  # fmt: skip


def recurrent(net: Net, x: Var) -> Var:
    """One of NNabla's recurrent functions: its axes are (time, sample, feature)."""
    _, time, features = x.shape
    hidden = net.rng.randint(2, 4)
    kind = net.rng.choice(("RNN", "LSTM", "GRU"))
    gates = {"RNN": (), "LSTM": (4,), "GRU": (3,)}[kind]
    bias = {"RNN": (), "LSTM": (4,), "GRU": (4,)}[kind]
    bidirectional = flag(net)
    ways = 1 + bidirectional
    start = affine(net, x, (ways * hidden,))
    states = []
    for _ in range(2 if kind == "LSTM" else 1):
        part = net.add("Reshape", [start], (1, BATCH, ways, hidden), shape=(1, -1, ways, hidden), inplace=False)
        states.append(net.add("Transpose", [part], (1, ways, BATCH, hidden), axes=[0, 2, 1, 3]))
    steps = net.add("Transpose", [small(net, x)], (time, BATCH, features), axes=[1, 0, 2])
    inputs = [steps, *(unit(net, state) for state in states)]
    inputs.append(net.parameter(f"{kind.lower()}/weight_l0", (ways, *gates, hidden, features + hidden), 1.0))
    if flag(net):
        inputs.append(net.parameter(f"{kind.lower()}/bias", (1, ways, *bias, hidden), 0.3))
    settings: dict[str, Any] = {"num_layers": 1, "dropout": 0.0, "bidirectional": bidirectional, "training": False}
    if kind == "RNN":
        settings["nonlinearity"] = "tanh"
    shapes = [(time, BATCH, ways * hidden), *((1, ways, BATCH, hidden) for _ in states)]
    y = net.add_all(kind, inputs, shapes, 1.0, **settings)[0]
    return net.add("Transpose", [y], (BATCH, time, ways * hidden), 1.0, axes=[1, 0, 2])


def mean_subtraction(net: Net, x: Var) -> Var:
    """Subtraction of a running mean."""
    mean = net.parameter("ms/mean", x.inner, 0.3, own=True)
    count = net.parameter("ms/t", (1,), 0.3, positive=True, own=True)
    return net.add("MeanSubtraction", [x, mean, count], x.shape, x.size + 1, base_axis=1, update_running_mean=False)


def matmul(net: Net, x: Var) -> Var:
    """Return the product of matrices with their transposes, or an einsum that says so."""
    x = unit(net, x)
    if flag(net) and x.ndim == 3:
        return net.add("Einsum", [x, x], (x.shape[0], x.shape[1], x.shape[1]), 8.0, equation="bij,bkj->bik")
    shape = (*x.shape[:-2], x.shape[-2], x.shape[-2])
    return net.add("BatchMatmul", [x, x], shape, 8.0, transpose_a=False, transpose_b=True)


def squeeze_excite(net: Net, x: Var) -> Var:
    """Weights of channels from their means."""
    mean = net.add("Mean", [x], (*x.shape[:2], 1, 1), axes=[2, 3], keep_dims=True)
    w = net.parameter("conv/W", (x.shape[1], x.shape[1], 1, 1), 1.0)
    gate = net.add("Convolution", [small(net, mean), w], mean.shape, 2.0, base_axis=1, pad=(0, 0), stride=(1, 1),
                   dilation=(1, 1), group=1, channel_last=False)  # fmt: skip
    return net.add("Mul2", [x, net.add("Sigmoid", [gate], gate.shape, 1.0)], x.shape, inplace=False)
