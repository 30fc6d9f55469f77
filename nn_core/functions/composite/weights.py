"""Normalizations of weights and of vectors."""

from typing import Any, Final, Literal, overload

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import door
from nn_core.engine.graph.imperative import one_kind
from nn_core.functions import normalization as operators
from nn_core.functions.composite.axes import Axes, listed
from nn_core.functions.composite.statistics import with_statistics
from nn_core.functions.operand import Operand
from nn_core.operators.spec.builtin.normalization import SPECTRAL_NORM

#: Place of u as it was among the results of the operator.
_BEFORE: Final = [entry.name for entry in SPECTRAL_NORM.outputs].index("before")

__all__ = ["norm_normalization", "spectral_norm", "weight_standardization"]


@overload
def weight_standardization(
    w: Operand,
    channel_axis: int = 0,
    eps: float = 1e-5,
    output_stat: Literal[False] = False,
) -> Operand: ...
@overload
def weight_standardization(
    w: Operand,
    channel_axis: int = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> tuple[Operand, Operand, Operand]: ...
@door
def weight_standardization(
    w: Operand,
    channel_axis: int = 0,
    eps: float = 1e-5,
    output_stat: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Standardize the weights of each output channel.

    y = (w - mean) / sqrt(variance + eps)

    Args:
        w: Weight, shape (C, D_1, ..., D_n) with C for `channel_axis`.
        channel_axis: Axis of the output channels.
        eps: Added to the variance.
        output_stat: Return mean and variance too, shape (C, 1, ..., 1).

    Returns:
        An array of the shape of w; with `output_stat` a tuple of it, the mean and the variance.

    References:
        Qiao et al. (2019), Micro-batch training with batch-channel normalization and weight standardization.

    Example:
        >>> F.weight_standardization(nn.NdArray.from_numpy_array([[1.0, 3.0], [0.0, 4.0]])).numpy().round(3).tolist()
        [[-1.0, 1.0], [-1.0, 1.0]]
    """
    y = operators.weight_standardization(w, channel_axis, eps)
    return with_statistics(y, w, (channel_axis,)) if output_stat else y


@door
def norm_normalization(x: Operand, p: float | None = None, axes: Axes | None = None, eps: float = 1e-12) -> Operand:
    """Divide by the p-norm over some axes.

    y = x / (sum |x|^p + eps)^(1/p)

    Args:
        x: Array of any shape.
        p: Order of the norm, at least 1; None: 2.
        axes: Axis or axes that the norm is taken over; None: all.
        eps: Added to the sum, so that zeros stay zeros.

    Returns:
        An array of the shape of x.

    Example:
        >>> print(F.norm_normalization(nn.NdArray.from_numpy_array([[3.0, 4.0]]), axes=1).numpy().round(3))
        [[0.6 0.8]]
    """
    return operators.norm_normalization(x, p, listed(axes), eps)


@overload
def spectral_norm(
    w: Operand,
    u: Operand,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: Literal[False] = False,
) -> Operand: ...
@overload
def spectral_norm(
    w: Operand,
    u: Operand,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: bool = False,
) -> tuple[Operand, Operand]: ...
@one_kind
def spectral_norm(
    w: Operand,
    u: Operand,
    dim: int = 0,
    itr: int = 1,
    eps: float = 1e-12,
    test: bool = False,
    output_u: bool = False,
) -> Operand | tuple[Operand, ...]:
    """Divide a weight by its largest singular value, approached by power iteration.

    Args:
        w: Weight, shape (D_1, ..., C, ..., D_n) with C for `dim`.
        u: Approximate left singular vector, shape (C,), rewritten unless `test`.
        dim: Axis that becomes the rows of the matrix.
        itr: Number of iterations in each run.
        eps: Added to squared lengths of vectors before they are divided by.
        test: Leave u as it is.
        output_u: Return u as it was before the run too.

    Returns:
        An array of the shape of w; with `output_u` a tuple of it and a copy of u.

    References:
        Miyato et al. (2018), Spectral normalization for generative adversarial networks, section 2 and algorithm 1.

    Example:
        >>> w, u = nn.NdArray.from_numpy_array([[2.0, 0.0], [0.0, 1.0]]), nn.NdArray.from_numpy_array([1.0, 0.0])
        >>> F.spectral_norm(w, u).numpy().round(3).tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """
    vector: Any = u
    before: Any = None
    if output_u and isinstance(vector, NdArray):
        before = NdArray(vector.shape)
        before.copy_from(vector)
    y: Any = operators.spectral_norm(w, u, dim, itr, eps, test, output_u)
    if not output_u:
        result: Operand = y
        return result
    return y, y.producer.value(_BEFORE) if before is None else before
