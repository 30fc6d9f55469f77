"""Functions of the topic reduction.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.reduction import (
    CUMPROD,
    CUMSUM,
    MAX,
    MEAN,
    MIN,
    NORM,
    PROD,
    REDUCE_MEAN,
    REDUCE_SUM,
    SPECS,
    SUM,
)


def sum(x=None, axes=None, keep_dims=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add the elements along axes.

    y = sum of x over the axes

    Args:
        x: Input. Shape any.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sums. Shape of x without the reduced axes.

    Notes:
        Half precision accumulates in float32. The sum of nothing is 0.

    Example:
        F.sum(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]

    Spec: function_spec.yaml, entry Sum
    """
    if surplus or unknown:
        refuse(SUM, surplus, unknown)
    return apply(SUM, (x,), {"axes": axes, "keep_dims": keep_dims}, outputs)


def mean(x=None, axes=None, keep_dims=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Average the elements along axes.

    y = sum of x over the axes / number of elements summed

    Args:
        x: Input. Shape any.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Means. Shape of x without the reduced axes.

    Notes:
        Half precision accumulates in float32. The mean of nothing is NaN.

    Example:
        F.mean(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]

    Spec: function_spec.yaml, entry Mean
    """
    if surplus or unknown:
        refuse(MEAN, surplus, unknown)
    return apply(MEAN, (x,), {"axes": axes, "keep_dims": keep_dims}, outputs)


def max(
    x=None,
    axes=None,
    keep_dims=False,
    with_index=False,
    only_index=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the largest element along axes, its place, or both.

    y = max of x over the axes

    Args:
        x: Input. Shape any.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        with_index: Return the pair of value and index.
        only_index: Return the index alone.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The largest elements. Shape of x without the reduced axes.
        index: Place of the first of them, counted in the reduced axes flattened in their order in x. Shape of x without
            the reduced axes. Only where asked for.

    Notes:
        Of equal elements the first counts: it gives the index and gets the whole gradient. NaN is taken as the largest
        and gets no gradient. The reduced axes must hold an element.

    Example:
        F.max(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5]

    Spec: function_spec.yaml, entry Max
    """
    if surplus or unknown:
        refuse(MAX, surplus, unknown)
    return apply(
        MAX,
        (x,),
        {"axes": axes, "keep_dims": keep_dims, "with_index": with_index, "only_index": only_index},
        outputs,
    )


def min(
    x=None,
    axes=None,
    keep_dims=False,
    with_index=False,
    only_index=False,
    n_outputs=-1,
    outputs=None,
    *surplus,
    **unknown,
):
    """Take the smallest element along axes, its place, or both.

    y = min of x over the axes

    Args:
        x: Input. Shape any.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        with_index: Return the pair of value and index.
        only_index: Return the index alone.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The smallest elements. Shape of x without the reduced axes.
        index: Place of the first of them, counted in the reduced axes flattened in their order in x. Shape of x without
            the reduced axes. Only where asked for.

    Notes:
        Of equal elements the first counts: it gives the index and gets the whole gradient. NaN is taken as the smallest
        and gets no gradient. The reduced axes must hold an element.

    Example:
        F.min(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.5]

    Spec: function_spec.yaml, entry Min
    """
    if surplus or unknown:
        refuse(MIN, surplus, unknown)
    return apply(
        MIN,
        (x,),
        {"axes": axes, "keep_dims": keep_dims, "with_index": with_index, "only_index": only_index},
        outputs,
    )


def norm(x=None, p=None, axes=None, keep_dims=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Take the p-norm along axes.

    y = (sum of |x|^p over the axes)^(1/p)

    Args:
        x: Input. Shape any.
        p: Order of the norm; finite. Default: 2.0.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Norms, not negative. Shape of x without the reduced axes.

    Notes:
        Half precision accumulates in float32. Where the norm is 0 the gradient is 0 (for p = 1, where the gradient of
        |x| at 0 is 1, it is 1).

    Example:
        F.norm(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.707]

    Spec: function_spec.yaml, entry Norm
    """
    if surplus or unknown:
        refuse(NORM, surplus, unknown)
    return apply(NORM, (x,), {"p": p, "axes": axes, "keep_dims": keep_dims}, outputs)


def prod(x=None, axes=None, keep_dims=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply the elements along axes.

    y = product of x over the axes

    Args:
        x: Input. Shape any.
        axes: Axes to reduce; default: all. An empty tuple reduces nothing.
        keep_dims: Keep the reduced axes with length 1.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Products. Shape of x without the reduced axes.

    Notes:
        Half precision accumulates in float32. The product of nothing is 1. The gradient multiplies the other elements
        and never divides, so it is exact where elements are 0.

    Example:
        F.prod(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.25]

    Spec: function_spec.yaml, entry Prod
    """
    if surplus or unknown:
        refuse(PROD, surplus, unknown)
    return apply(PROD, (x,), {"axes": axes, "keep_dims": keep_dims}, outputs)


def cumsum(x=None, axis=None, exclusive=False, reverse=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add up the elements along an axis, keeping every intermediate sum.

    y_i = x_1 + ... + x_i

    Args:
        x: Input. Shape any with at least one axis.
        axis: Axis to accumulate along. Default: 0.
        exclusive: Leave the element itself out, so that the first result is 0.
        reverse: Start from the end of the axis.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Running results. Shape of x.

    Notes:
        Half precision accumulates in float32.

    Example:
        F.cumsum(nn.NdArray.from_numpy_array([1.0, 2.0, 3.0]), axis=0)  # [1, 3, 6]

    Spec: function_spec.yaml, entry CumSum
    """
    if surplus or unknown:
        refuse(CUMSUM, surplus, unknown)
    return apply(CUMSUM, (x,), {"axis": axis, "exclusive": exclusive, "reverse": reverse}, outputs)


def cumprod(x=None, axis=None, exclusive=False, reverse=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply the elements along an axis, keeping every intermediate product.

    y_i = x_1 x_2 ... x_i

    Args:
        x: Input. Shape any with at least one axis.
        axis: Axis to accumulate along. Default: 0.
        exclusive: Leave the element itself out, so that the first result is 1.
        reverse: Start from the end of the axis.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Running results. Shape of x.

    Notes:
        Half precision accumulates in float32. The gradient is exact where elements are 0; second derivatives are so
        with at most one 0 along the axis.

    Example:
        F.cumprod(nn.NdArray.from_numpy_array([1.0, 2.0, 3.0]), axis=0)  # [1, 2, 6]

    Spec: function_spec.yaml, entry CumProd
    """
    if surplus or unknown:
        refuse(CUMPROD, surplus, unknown)
    return apply(CUMPROD, (x,), {"axis": axis, "exclusive": exclusive, "reverse": reverse}, outputs)


def reduce_sum(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Add all elements.

    y = sum of x

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Sum. Shape ().

    Notes:
        The same as sum over all axes, kept for files and programs that name it.

    Example:
        F.reduce_sum(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]

    Spec: function_spec.yaml, entry ReduceSum
    """
    if surplus or unknown:
        refuse(REDUCE_SUM, surplus, unknown)
    return apply(REDUCE_SUM, (x,), {}, outputs)


def reduce_mean(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Average all elements.

    y = sum of x / number of elements

    Args:
        x: Input. Shape any.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Mean. Shape ().

    Notes:
        The same as mean over all axes, kept for files and programs that name it.

    Example:
        F.reduce_mean(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]

    Spec: function_spec.yaml, entry ReduceMean
    """
    if surplus or unknown:
        refuse(REDUCE_MEAN, surplus, unknown)
    return apply(REDUCE_MEAN, (x,), {}, outputs)


show_signatures(globals(), SPECS)
