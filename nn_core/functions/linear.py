"""Functions of the topic linear.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.

The types are in the stub beside this file. At run time a function takes any arguments, and refuses those that do not fit.
"""

from nn_core.engine.graph.apply import apply
from nn_core.functions.signatures import refuse, show_signatures
from nn_core.operators.spec.builtin.linear import (
    AFFINE,
    BATCH_CHOLESKY,
    BATCH_DET,
    BATCH_INV,
    BATCH_LOGDET,
    BATCH_MATMUL,
    EINSUM,
    SPECS,
)


def affine(x=None, weight=None, bias=None, base_axis=1, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply the flattened input by a weight matrix and add a bias (a fully connected layer).

    y = x w + b

    Args:
        x: Input. The axes from `base_axis` on are flattened to D = D_1 * ... * D_m features. Shape (N_1, ..., N_k, D_1,
            ..., D_m).
        weight: Weight with a row for each feature of x; its further axes become those of y. Shape (D, K_1, ..., K_n).
        bias: Bias, added to each row. Shape (K_1, ..., K_n). Optional.
        base_axis: First axis of x that belongs to the features; the axes before it are kept.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Output. Shape (N_1, ..., N_k, K_1, ..., K_n).

    Notes:
        Products are summed in float32 or wider. A batch of size zero gives an empty output and zero gradients of the
        parameters.

    Example:
        F.affine(nn.Variable((8, 4)), nn.Variable((4, 3))).shape  # (8, 3)

    Spec: function_spec.yaml, entry Affine
    """
    if surplus or unknown:
        refuse(AFFINE, surplus, unknown)
    return apply(AFFINE, (x, weight, bias), {"base_axis": base_axis}, outputs)


def batch_matmul(a=None, b=None, transpose_a=False, transpose_b=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Multiply matrices that are stacked along leading axes.

    y = a b, with a or b transposed where asked

    Args:
        a: Left operand; its last two axes are (M, N) if `transpose_a`. Shape (B_1, ..., B_k, N, M).
        b: Right operand; its last two axes are (P, M) if `transpose_b`. Shape (B_1, ..., B_k, M, P).
        transpose_a: Swap the last two axes of a first.
        transpose_b: Swap the last two axes of b first.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Products. Shape (B_1, ..., B_k, N, P).

    Notes:
        Leading axes are broadcast against each other, counted from the last. Plain matrices (two axes) are taken too,
        which NNabla refuses. Products are summed in float32 or wider.

    Example:
        F.batch_matmul(nn.Variable((8, 2, 3)), nn.Variable((8, 3, 4))).shape  # (8, 2, 4)

    Spec: function_spec.yaml, entry BatchMatmul
    """
    if surplus or unknown:
        refuse(BATCH_MATMUL, surplus, unknown)
    return apply(BATCH_MATMUL, (a, b), {"transpose_a": transpose_a, "transpose_b": transpose_b}, outputs)


def batch_det(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compute the determinant of each matrix.

    y = det(x)

    Args:
        x: Square matrices. Shape (B_1, ..., B_k, N, N).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Determinants. Shape (B_1, ..., B_k).

    Notes:
        The gradient is det(x) x^-T, computed with the inverse, so it exists for invertible matrices only.

    Example:
        F.batch_det(nn.Variable((8, 3, 3))).shape  # (8,)

    References:
        Giles (2008), Collected matrix derivative results for forward and reverse mode algorithmic differentiation,
        section 2.2.4.

    Spec: function_spec.yaml, entry BatchDet
    """
    if surplus or unknown:
        refuse(BATCH_DET, surplus, unknown)
    return apply(BATCH_DET, (x,), {}, outputs)


def batch_inv(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Invert each matrix.

    y = x^-1

    Args:
        x: Invertible matrices. Shape (B_1, ..., B_k, N, N).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Inverses. Shape (B_1, ..., B_k, N, N).

    Notes:
        On the host an exactly singular matrix is refused with an ArgumentError; devices may give inf and NaN instead.

    Example:
        F.batch_inv(nn.Variable((8, 3, 3))).shape  # (8, 3, 3)

    References:
        Giles (2008), Collected matrix derivative results for forward and reverse mode algorithmic differentiation,
        section 2.2.3.

    Spec: function_spec.yaml, entry BatchInv
    """
    if surplus or unknown:
        refuse(BATCH_INV, surplus, unknown)
    return apply(BATCH_INV, (x,), {}, outputs)


def batch_logdet(x=None, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Compute the logarithm of the absolute determinant of each matrix.

    y = log(|det(x)|)

    Args:
        x: Square matrices. Shape (B_1, ..., B_k, N, N).
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Logarithms; -inf for a singular matrix. Shape (B_1, ..., B_k).

    Notes:
        Neither a tiny nor a huge determinant is ever formed, so that nothing under- or overflows.

    Example:
        F.batch_logdet(nn.Variable((8, 3, 3))).shape  # (8,)

    Spec: function_spec.yaml, entry BatchLogdet
    """
    if surplus or unknown:
        refuse(BATCH_LOGDET, surplus, unknown)
    return apply(BATCH_LOGDET, (x,), {}, outputs)


def batch_cholesky(x=None, upper=False, n_outputs=-1, outputs=None, *surplus, **unknown):
    """Factor each positive definite matrix into a triangular matrix and its transpose.

    x = y y^T (lower), x = y^T y (upper)

    Args:
        x: Symmetric positive definite matrices. Shape (B_1, ..., B_k, N, N).
        upper: Give the upper triangular factor instead of the lower one.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: Triangular factors with a positive diagonal. Shape (B_1, ..., B_k, N, N).

    Notes:
        The symmetric part (x + x^T) / 2 is factored, which makes the symmetric gradient exact; NNabla reads the lower
        triangle. On the host a matrix that is not positive definite is refused with an ArgumentError; devices may give
        NaN instead.

    Example:
        F.batch_cholesky(nn.Variable((8, 3, 3))).shape  # (8, 3, 3)

    References:
        Murray (2016), Differentiation of the Cholesky decomposition, section 3.

    Spec: function_spec.yaml, entry BatchCholesky
    """
    if surplus or unknown:
        refuse(BATCH_CHOLESKY, surplus, unknown)
    return apply(BATCH_CHOLESKY, (x,), {"upper": upper}, outputs)


def einsum(*x, equation=None, n_outputs=-1, outputs=None, **unknown):
    """Sum products of array elements over the axes that an equation names.

    y[output axes] = sum over all other axes of x_0[term_0] x_1[term_1] ...

    Args:
        *x: Operands, one for each term of the equation. Shape as the equation says.
        equation: Terms of letters, one letter for each axis of an operand, joined by commas; then '->' and the axes of
            the output, such as 'bij,bjk->bik'. '...' stands for any number of axes, which are broadcast. A letter twice
            in a term takes the diagonal. Without '->' the output has the axes of the ellipsis, then in alphabetical
            order the letters that occur once.
        n_outputs, outputs: see `nn_core.functions`.

    Returns:
        y: The sums. Shape as the equation says.

    Notes:
        Axes of one letter have equal lengths (a length of 1 is not stretched). Products are summed in float32 or wider.

    Example:
        F.einsum(nn.Variable((2, 3)), nn.Variable((3, 4)), equation='ij,jk->ik').shape  # (2, 4)

    Spec: function_spec.yaml, entry Einsum
    """
    if unknown:
        refuse(EINSUM, (), unknown)
    return apply(EINSUM, x, {"equation": equation}, outputs)


show_signatures(globals(), SPECS)
