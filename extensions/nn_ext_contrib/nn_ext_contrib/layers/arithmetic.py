"""Layers of sums and products."""

from collections.abc import Callable
from math import prod

from nn_core.ext import PF, F, Variable, initializer, parametric_function_api
from nn_ext_contrib.functions.checks import require_ndim
from nn_ext_contrib.layers.parameters import ONES, ZEROS, Initializer, trained, weight


@parametric_function_api("trained_bias", [("b", "Summand.", "of `shape`", True)])
def trained_bias(
    x: Variable,
    axis: int = 1,
    shape: tuple[int, ...] | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
) -> Variable:
    """Add a trained array to the axes of x from `axis` on, as `F.contrib.bias` does.

    Args:
        x: Array of shape (..., S_1, ..., S_k, ...).
        axis: The axis of x that S_1 is.
        shape: S_1, ..., S_k. Default: the length of the axis.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when x does not have the shape from the axis on.

    Example:
        >>> trained_bias(nn.Variable((2, 3, 4))).shape, nn.get_parameters()["trained_bias/b"].shape
        ((2, 3, 4), (3,))
    """
    b = trained("b", x.shape[axis : axis + 1] if shape is None else shape, b_init, ZEROS, fix_parameters)
    return F.contrib.bias(x, b, axis)


@parametric_function_api(
    "trained_scale", [("W", "Factor.", "of `shape`", True), ("b", "Summand, if `with_bias`.", "of `shape`", True)]
)
def trained_scale(
    x: Variable,
    axis: int = 1,
    shape: tuple[int, ...] | None = None,
    with_bias: bool = False,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
) -> Variable:
    """Multiply the axes of x from `axis` on with a trained array, as `F.contrib.scale` does, and add another.

    Args:
        x: Array of shape (..., S_1, ..., S_k, ...).
        axis: The axis of x that S_1 is.
        shape: S_1, ..., S_k. Default: the length of the axis.
        w_init: Initial factors: an initializer, or an array. Default: ones.

    Returns:
        The shape of x.

    Raises:
        ShapeError: when x does not have the shape from the axis on.

    Example:
        >>> trained_scale(nn.Variable((2, 3, 4)), axis=2, with_bias=True).shape, nn.get_parameters()["trained_scale/W"].shape
        ((2, 3, 4), (4,))
    """
    lengths = x.shape[axis : axis + 1] if shape is None else shape
    y = F.contrib.scale(x, trained("W", lengths, w_init, ONES, fix_parameters), axis)
    if not with_bias:
        return y
    return F.contrib.bias(y, trained("b", lengths, b_init, ZEROS, fix_parameters), axis)


@parametric_function_api(
    "bilinear",
    [
        ("W", "Weight of the pairs.", "(J, K, L)", True),
        ("V1", "Weight of e1 alone, if `with_bias`.", "(J, L)", True),
        ("V2", "Weight of e2 alone, if `with_bias`.", "(K, L)", True),
        ("b", "Bias, if `with_bias`.", "(L)", True),
    ],
)
def bilinear(
    e1: Variable,
    e2: Variable,
    n_outmaps: int,
    w_init: Initializer | None = None,
    v1_init: Initializer | None = None,
    v2_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
    with_bias: bool = True,
) -> Variable:
    """Multiply the features of two inputs in pairs with trained weights; see `F.contrib.bilinear`.

    Args:
        e1: Features. Shape (N, ...), J in all.
        e2: Features. Shape (N, ...), K in all.
        n_outmaps: Number L of outputs.
        v1_init: Initial weight of e1 alone. Default: uniform within Glorot's limits.
        v2_init: Initial weight of e2 alone. Default: uniform within Glorot's limits.
        with_bias: Also use e1 and e2 alone, and add a bias.

    Returns:
        Shape (N, L).

    Raises:
        ShapeError: when e1 and e2 have different numbers of samples.

    Example:
        >>> bilinear(nn.Variable((8, 3)), nn.Variable((8, 4)), 5).shape
        (8, 5)
    """
    j, k = prod(e1.shape[1:]), prod(e2.shape[1:])
    w = weight("W", (j, k, n_outmaps), (j * k, n_outmaps), w_init, rng, fix_parameters)
    if not with_bias:
        return F.contrib.bilinear(e1, e2, w)
    v1 = weight("V1", (j, n_outmaps), (j, n_outmaps), v1_init, rng, fix_parameters)
    v2 = weight("V2", (k, n_outmaps), (k, n_outmaps), v2_init, rng, fix_parameters)
    b = trained("b", (n_outmaps,), b_init, ZEROS, fix_parameters)
    return F.contrib.bilinear(e1, e2, w, v1, v2, b)


@parametric_function_api(
    "maxout", [("affine/W", "Weight.", "(D, n_outmaps pool_size)", True), ("affine/b", "Bias.", "(n_outmaps pool_size)", True)]
)
def maxout(
    x: Variable,
    n_outmaps: int,
    pool_size: int,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
    with_bias: bool = True,
) -> Variable:
    """Take the largest of several affine functions for each output; see `F.contrib.maxout`.

    Args:
        x: Features. Shape (N, ...), D in all.
        n_outmaps: Number of outputs.
        pool_size: Number of affine functions for each.

    Returns:
        Shape (N, n_outmaps).

    Raises:
        ArgumentError: when a number is not positive.

    Example:
        >>> maxout(nn.Variable((8, 3)), 5, 4).shape
        (8, 5)

    References:
        Goodfellow et al. (2013), Maxout networks.
    """
    y = PF.affine(x, n_outmaps * pool_size, 1, w_init, b_init, fix_parameters, rng, with_bias)
    return F.contrib.maxout(y, pool_size)


@parametric_function_api("simplified_dropconnect", [("W", "Weight.", "(I, J)", True), ("b", "Bias.", "(I)", True)])
def simplified_dropconnect(
    x: Variable,
    n_outmaps: int,
    ratio: float = 0.5,
    train: bool = True,
    mask: Variable | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
    with_bias: bool = True,
) -> Variable:
    """Multiply with a trained weight of which elements are left out at random; see `F.contrib.simplified_dropconnect`.

    Args:
        x: Features. Shape (N, ...), J in all.
        n_outmaps: Number I of outputs.
        ratio: Chance of an element to be left out, from 0 to below 1.
        train: Leave elements out.
        mask: 1 for the elements to keep, else 0; drawn at random if not given. Shape (N, I, J).

    Returns:
        Shape (N, I).

    Raises:
        ArgumentError: when `ratio` is out of range.

    Example:
        >>> simplified_dropconnect(nn.Variable((8, 3)), 5).shape
        (8, 5)

    References:
        Wan et al. (2013), Regularization of neural networks using DropConnect.
    """
    n_features = prod(x.shape[1:])
    w = weight("W", (n_outmaps, n_features), (n_features, n_outmaps), w_init, rng, fix_parameters)
    b = trained("b", (n_outmaps,), b_init, ZEROS, fix_parameters) if with_bias else None
    return F.contrib.simplified_dropconnect(x, w, b, ratio, train, mask)


@parametric_function_api(
    "highway",
    [
        ("plain/affine/W", "Weight of the candidate.", "(D, D)", True),
        ("plain/affine/b", "Bias of the candidate.", "(D)", True),
        ("transform/affine/W", "Weight of the gate.", "(D, D)", True),
        ("transform/affine/b", "Bias of the gate.", "(D)", True),
    ],
)
def highway(
    x: Variable,
    activation: Callable[[Variable], Variable] | None = None,
    w_init: Initializer | None = None,
    b_init: Initializer | None = None,
    gate_b_init: Initializer | None = None,
    fix_parameters: bool = False,
    rng: initializer.Rng | None = None,
    with_bias: bool = True,
) -> Variable:
    """Mix features with a function of them, by trained gates: y = g f(x W_h + b_h) + (1 - g) x, g = sigmoid(x W_t + b_t).

    Args:
        x: Features. Shape (N, D).
        activation: f. Default: `F.relu`.
        gate_b_init: Initial bias of the gates. Default: -1, so that most of x passes at first.

    Returns:
        Shape (N, D).

    Raises:
        ShapeError: when x does not have two axes.

    Example:
        >>> highway(nn.Variable((8, 3))).shape
        (8, 3)

    References:
        Srivastava et al. (2015), Highway networks.
    """
    require_ndim("highway", "x", x, 2, "(N, D)")
    start = initializer.ConstantInitializer(-1) if gate_b_init is None else gate_b_init
    candidate = PF.affine(x, x.shape[1], 1, w_init, b_init, fix_parameters, rng, with_bias, name="plain")
    gate = F.sigmoid(PF.affine(x, x.shape[1], 1, w_init, start, fix_parameters, rng, with_bias, name="transform"))
    return x + gate * ((activation or F.relu)(candidate) - x)
