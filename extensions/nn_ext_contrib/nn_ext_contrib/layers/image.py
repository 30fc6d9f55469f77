"""Blocks of convolutional networks."""

from collections.abc import Callable, Sequence

from nn_core.ext import PF, ArgumentError, F, Variable, initializer, parametric_function_api
from nn_ext_contrib.functions.checks import require_ndim
from nn_ext_contrib.layers.parameters import Initializer

_Sizes = int | Sequence[int]


@parametric_function_api(
    "mlp_convolution_2d",
    [
        ("0/conv/W", "Kernels of the first convolution; then 1/conv/W and so on.", "(outmaps[0], C, *kernel)", True),
        ("0/conv/b", "Its biases, likewise.", "(outmaps[0])", True),
    ],
)
def mlp_convolution_2d(
    x: Variable,
    outmaps: Sequence[int],
    kernel: _Sizes,
    pad: _Sizes | None = None,
    stride: _Sizes | None = None,
    activation: Callable[[Variable], Variable] | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Move a perceptron over images: a convolution, then convolutions of single pixels, with activations between them.

    Args:
        x: Images. Shape (N, C, H, W).
        outmaps: Number of output channels of each convolution.
        kernel: Height and width of the first kernel, or one number for both.
        activation: After each convolution but the last. Default: `F.relu`.

    Returns:
        Shape (N, outmaps[-1], H', W').

    Raises:
        ArgumentError: when there are no numbers of channels.

    Example:
        >>> mlp_convolution_2d(nn.Variable((8, 3, 10, 10)), (16, 16, 4), 3).shape
        (8, 4, 8, 8)

    References:
        Lin et al. (2014), Network in network.
    """
    require_ndim("mlp_convolution_2d", "x", x, 4, "(N, C, H, W)")
    if not outmaps:
        raise ArgumentError("mlp_convolution_2d: outmaps must have a number for each convolution, got none")
    for n, count in enumerate(outmaps):
        shape = (_pair(kernel), _pair(pad or 0), _pair(stride or 1)) if n == 0 else ((1, 1), (0, 0), (1, 1))
        settings = {"w_init": w_init, "b_init": b_init, "fix_parameters": fix_parameters, "rng": rng}
        x = PF.convolution((activation or F.relu)(x) if n else x, count, *shape, **settings, name=str(n))
    return x


def _pair(value: _Sizes) -> tuple[int, ...]:
    return (value, value) if isinstance(value, int) else tuple(value)


@parametric_function_api(
    "inception",
    [
        ("conv1/conv/W", "Kernels; likewise of proj3, conv3, proj5, conv5 and projp.", "(out1, C, 1, 1)", True),
        ("conv1/conv/b", "Biases, likewise.", "(out1)", True),
    ],
)
def inception(
    x: Variable,
    out1: int,
    proj3: int,
    out3: int,
    proj5: int,
    out5: int,
    proj_pool: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Look at images on several scales at once (the block of GoogLeNet).

    Four branches are joined: a 1x1 convolution; 1x1 and 3x3; 1x1 and 5x5; 3x3 max pooling and 1x1. `F.relu` follows each.

    Args:
        x: Images. Shape (N, C, H, W).
        out1: Channels of the first branch.
        proj3: Channels between the convolutions of the second branch.
        out3: Channels of the second branch.
        proj5: Channels between the convolutions of the third branch.
        out5: Channels of the third branch.
        proj_pool: Channels of the last branch.

    Returns:
        Shape (N, out1 + out3 + out5 + proj_pool, H, W).

    Raises:
        ArgumentError: when a number of channels is not positive.

    Example:
        >>> inception(nn.Variable((2, 3, 8, 8)), 4, 2, 6, 2, 3, 5).shape
        (2, 18, 8, 8)

    References:
        Szegedy et al. (2015), Going deeper with convolutions.
    """
    require_ndim("inception", "x", x, 4, "(N, C, H, W)")
    settings = {"w_init": w_init, "b_init": b_init, "fix_parameters": fix_parameters, "rng": rng}

    def conv(h: Variable, outmaps: int, size: int, name: str) -> Variable:
        return F.relu(PF.convolution(h, outmaps, (size, size), (size // 2, size // 2), **settings, name=name))

    pooled = F.max_pooling(x, (3, 3), (1, 1), pad=(1, 1))
    return F.concatenate(
        conv(x, out1, 1, "conv1"),
        conv(conv(x, proj3, 1, "proj3"), out3, 3, "conv3"),
        conv(conv(x, proj5, 1, "proj5"), out5, 5, "conv5"),
        conv(pooled, proj_pool, 1, "projp"),
        axis=1,
    )


@parametric_function_api(
    "inception_bn",
    [
        ("conv1/conv/W", "Kernels; likewise of proj3, conv3, proj33, conv33a, conv33b and poolp.", "(out1, C, 1, 1)", True),
        ("conv1/bn/gamma", "Scale of the normalization, likewise; with beta, mean and var.", "(1, out1, 1, 1)", True),
    ],
)
def inception_bn(
    x: Variable,
    out1: int,
    proj3: int,
    out3: int,
    proj33: int,
    out33: int,
    pooltype: str,
    proj_pool: int | None = None,
    stride: int = 1,
    batch_stat: bool = True,
    w_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
) -> Variable:
    """Look at images on several scales at once, with batch normalization (the block of Inception-v2).

    Four branches are joined: a 1x1 convolution; 1x1 and 3x3; 1x1, 3x3 and 3x3; 3x3 pooling and 1x1. Each convolution,
    which has no bias, is followed by batch normalization and `F.relu`; the last of each branch has the stride.

    Args:
        x: Images. Shape (N, C, H, W).
        out1: Channels of the first branch; 0 leaves it out.
        proj3: Channels between the convolutions of the second branch.
        out3: Channels of the second branch.
        proj33: Channels after the first convolution of the third branch.
        out33: Channels of the third branch.
        pooltype: "max" or "avg".
        proj_pool: Channels of the last branch; None: C, which are only pooled.
        batch_stat: Normalize by the batch, in training; else by the running statistics.

    Returns:
        Shape (N, out1 + out3 + out33 + proj_pool, H', W'), H' = ceil(H / stride).

    Raises:
        ArgumentError: when the pooling is neither.

    Example:
        >>> inception_bn(nn.Variable((2, 3, 8, 8)), 0, 2, 6, 2, 4, "max", stride=2).shape
        (2, 13, 4, 4)

    References:
        Ioffe and Szegedy (2015), Batch normalization.
    """
    require_ndim("inception_bn", "x", x, 4, "(N, C, H, W)")
    if pooltype not in ("max", "avg"):
        raise ArgumentError(f"inception_bn: pooltype must be 'max' or 'avg', got {pooltype!r}")

    def conv(h: Variable, outmaps: int, size: int, step: int, name: str) -> Variable:
        kernel, pad, steps = (size, size), (size // 2, size // 2), (step, step)
        settings = {"w_init": w_init, "fix_parameters": fix_parameters, "rng": rng, "with_bias": False}
        y = PF.convolution(h, outmaps, kernel, pad, steps, **settings, name=name)
        return F.relu(PF.batch_normalization(y, batch_stat=batch_stat, fix_parameters=fix_parameters, name=name))

    pool = F.max_pooling if pooltype == "max" else F.average_pooling
    pooled = pool(x, (3, 3), (stride, stride), pad=(1, 1))
    return F.concatenate(
        *([conv(x, out1, 1, stride, "conv1")] if out1 else []),
        conv(conv(x, proj3, 1, 1, "proj3"), out3, 3, stride, "conv3"),
        conv(conv(conv(x, proj33, 1, 1, "proj33"), out33, 3, 1, "conv33a"), out33, 3, stride, "conv33b"),
        pooled if proj_pool is None else conv(pooled, proj_pool, 1, 1, "poolp"),
        axis=1,
    )
