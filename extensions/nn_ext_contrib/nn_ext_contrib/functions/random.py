"""Functions that draw random numbers."""

from nn_core.ext import ArgumentError, F, ShapeError, Variable
from nn_ext_contrib.functions.checks import require_ndim, require_same_shape


def gaussian(mean: Variable, ln_var: Variable) -> Variable:
    """Draw Gaussian variables: y = mean + exp(ln_var / 2) e, e standard. Gradients flow to both (reparametrization).

    Args:
        mean: Means. Any shape.
        ln_var: Logarithms of the variances. The same shape.

    Returns:
        The same shape; other numbers in each forward pass.

    Raises:
        ShapeError: when the shapes differ.

    Example:
        >>> gaussian(nn.Variable((2, 3)), nn.Variable((2, 3))).shape
        (2, 3)

    References:
        Kingma and Welling (2014), Auto-encoding variational Bayes, section 2.4.
    """
    require_same_shape("gaussian", mean=mean, ln_var=ln_var)
    return mean + F.exp(ln_var * 0.5) * F.randn(shape=mean.shape)


def simplified_dropconnect(
    x: Variable, w: Variable, b: Variable | None = None, ratio: float = 0.5, train: bool = True, mask: Variable | None = None
) -> Variable:
    """Multiply with a weight of which elements are left out at random, others for each sample.

    y_ni = sum_j mask_nij w_ij x_nj / (1 - ratio) + b_i

    Args:
        x: Features. Shape (N, ...), J in all.
        w: Weight. Shape (I, J).
        b: Bias. Shape (I).
        ratio: Chance of an element to be left out, from 0 to below 1.
        train: Leave elements out; else y = w x + b.
        mask: 1 for the elements to keep, else 0; drawn at random if not given. Shape (N, I, J).

    Returns:
        Shape (N, I).

    Raises:
        ShapeError: when the shapes do not fit.
        ArgumentError: when `ratio` is out of range.

    Example:
        >>> x, w = nn.NdArray.from_numpy_array([[1.0, 2.0]]), nn.NdArray.from_numpy_array([[3.0, 4.0]])
        >>> simplified_dropconnect(x, w, mask=nn.NdArray.from_numpy_array([[[1.0, 0.0]]])).data.tolist()
        [[6.0]]

    References:
        Wan et al. (2013), Regularization of neural networks using DropConnect. Every mask is drawn.
    """
    if not 0 <= ratio < 1:
        raise ArgumentError(f"simplified_dropconnect: ratio must be in [0, 1), got {ratio}")
    require_ndim("simplified_dropconnect", "w", w, 2, "(I, J)")
    x = F.reshape(x, (x.shape[0], -1))
    if x.shape[1] != w.shape[1]:
        raise ShapeError(f"simplified_dropconnect: x must have {w.shape[1]} features, got {x.shape[1]}")
    if not train:
        return F.affine(x, F.transpose(w, (1, 0)), b)
    shape = (x.shape[0], *w.shape)
    if mask is None:
        kept = F.dropout(F.constant(1.0, shape), ratio) if ratio else F.constant(1.0, shape)
    elif mask.shape != shape:
        raise ShapeError(f"simplified_dropconnect: mask must have shape {shape}, got {mask.shape}")
    else:
        kept = mask / (1 - ratio)
    y = F.reshape(F.batch_matmul(kept * F.reshape(w, (1, *w.shape)), F.reshape(x, (*x.shape, 1))), shape[:2])
    return y if b is None else y + F.reshape(b, (1, -1))
