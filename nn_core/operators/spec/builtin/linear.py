"""Specifications of the topic linear.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

AFFINE = FunctionSpec(
    name="Affine",
    api="affine",
    topic="linear",
    doc="Multiply the flattened input by a weight matrix and add a bias (a fully connected layer).",
    inputs=(
        InputSpec(
            name="x",
            doc="Input. The axes from `base_axis` on are flattened to D = D_1 * ... * D_m features.",
            shape="(N_1, ..., N_k, D_1, ..., D_m)",
        ),
        InputSpec(
            name="weight",
            doc="Weight with a row for each feature of x; its further axes become those of y.",
            shape="(D, K_1, ..., K_n)",
            dtype="parameter",
            parameter=True,
        ),
        InputSpec(
            name="bias",
            doc="Bias, added to each row.",
            shape="(K_1, ..., K_n)",
            dtype="parameter",
            optional=True,
            parameter=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Output.", shape="(N_1, ..., N_k, K_1, ..., K_n)"),),
    args=(
        ArgSpec(
            name="base_axis",
            type="axis",
            doc="First axis of x that belongs to the features; the axes before it are kept.",
            default=1,
        ),
    ),
    backward=BackwardSpec(needs=("x", "weight")),
    formula="y = x w + b",
    notes=(
        "Products are summed in float32 or wider. A batch of size zero gives an empty output and zero "
        "gradients of the parameters."
    ),
    example="F.affine(nn.Variable((8, 4)), nn.Variable((4, 3))).shape  # (8, 3)",
)

BATCH_MATMUL = FunctionSpec(
    name="BatchMatmul",
    api="batch_matmul",
    topic="linear",
    doc="Multiply matrices that are stacked along leading axes.",
    inputs=(
        InputSpec(
            name="a",
            doc="Left operand; its last two axes are (M, N) if `transpose_a`.",
            shape="(B_1, ..., B_k, N, M)",
        ),
        InputSpec(
            name="b",
            doc="Right operand; its last two axes are (P, M) if `transpose_b`.",
            shape="(B_1, ..., B_k, M, P)",
        ),
    ),
    outputs=(OutputSpec(name="y", doc="Products.", shape="(B_1, ..., B_k, N, P)"),),
    args=(
        ArgSpec(name="transpose_a", type="bool", doc="Swap the last two axes of a first.", default=False),
        ArgSpec(name="transpose_b", type="bool", doc="Swap the last two axes of b first.", default=False),
    ),
    backward=BackwardSpec(needs=("a", "b")),
    formula="y = a b, with a or b transposed where asked",
    notes=(
        "Leading axes are broadcast against each other, counted from the last. Plain matrices (two axes) "
        "are taken too, which NNabla refuses. Products are summed in float32 or wider."
    ),
    example="F.batch_matmul(nn.Variable((8, 2, 3)), nn.Variable((8, 3, 4))).shape  # (8, 2, 4)",
)

BATCH_DET = FunctionSpec(
    name="BatchDet",
    api="batch_det",
    topic="linear",
    doc="Compute the determinant of each matrix.",
    inputs=(InputSpec(name="x", doc="Square matrices.", shape="(B_1, ..., B_k, N, N)"),),
    outputs=(OutputSpec(name="y", doc="Determinants.", shape="(B_1, ..., B_k)"),),
    backward=BackwardSpec(needs=("x", "y")),
    formula="y = det(x)",
    notes="The gradient is det(x) x^-T, computed with the inverse, so it exists for invertible matrices only.",
    references=(
        "Giles (2008), Collected matrix derivative results for forward and reverse mode algorithmic "
        "differentiation, section 2.2.4."
    ),
    example="F.batch_det(nn.Variable((8, 3, 3))).shape  # (8,)",
)

BATCH_INV = FunctionSpec(
    name="BatchInv",
    api="batch_inv",
    topic="linear",
    doc="Invert each matrix.",
    inputs=(InputSpec(name="x", doc="Invertible matrices.", shape="(B_1, ..., B_k, N, N)"),),
    outputs=(OutputSpec(name="y", doc="Inverses.", shape="(B_1, ..., B_k, N, N)"),),
    backward=BackwardSpec(needs=("y",)),
    formula="y = x^-1",
    notes=(
        "On the host an exactly singular matrix is refused with an ArgumentError; devices may give inf and "
        "NaN instead."
    ),
    references=(
        "Giles (2008), Collected matrix derivative results for forward and reverse mode algorithmic "
        "differentiation, section 2.2.3."
    ),
    example="F.batch_inv(nn.Variable((8, 3, 3))).shape  # (8, 3, 3)",
)

BATCH_LOGDET = FunctionSpec(
    name="BatchLogdet",
    api="batch_logdet",
    topic="linear",
    doc="Compute the logarithm of the absolute determinant of each matrix.",
    inputs=(InputSpec(name="x", doc="Square matrices.", shape="(B_1, ..., B_k, N, N)"),),
    outputs=(OutputSpec(name="y", doc="Logarithms; -inf for a singular matrix.", shape="(B_1, ..., B_k)"),),
    backward=BackwardSpec(needs=("x",)),
    formula="y = log(|det(x)|)",
    notes="Neither a tiny nor a huge determinant is ever formed, so that nothing under- or overflows.",
    example="F.batch_logdet(nn.Variable((8, 3, 3))).shape  # (8,)",
)

BATCH_CHOLESKY = FunctionSpec(
    name="BatchCholesky",
    api="batch_cholesky",
    topic="linear",
    doc="Factor each positive definite matrix into a triangular matrix and its transpose.",
    inputs=(InputSpec(name="x", doc="Symmetric positive definite matrices.", shape="(B_1, ..., B_k, N, N)"),),
    outputs=(
        OutputSpec(
            name="y",
            doc="Triangular factors with a positive diagonal.",
            shape="(B_1, ..., B_k, N, N)",
        ),
    ),
    args=(
        ArgSpec(
            name="upper",
            type="bool",
            doc="Give the upper triangular factor instead of the lower one.",
            default=False,
        ),
    ),
    backward=BackwardSpec(needs=("y",)),
    formula="x = y y^T (lower), x = y^T y (upper)",
    notes=(
        "The symmetric part (x + x^T) / 2 is factored, which makes the symmetric gradient exact; NNabla "
        "reads the lower triangle. On the host a matrix that is not positive definite is refused with an "
        "ArgumentError; devices may give NaN instead."
    ),
    references="Murray (2016), Differentiation of the Cholesky decomposition, section 3.",
    example="F.batch_cholesky(nn.Variable((8, 3, 3))).shape  # (8, 3, 3)",
)

EINSUM = FunctionSpec(
    name="Einsum",
    api="einsum",
    topic="linear",
    doc="Sum products of array elements over the axes that an equation names.",
    inputs=(
        InputSpec(
            name="x",
            doc="Operands, one for each term of the equation.",
            shape="as the equation says",
            variadic=True,
        ),
    ),
    outputs=(OutputSpec(name="y", doc="The sums.", shape="as the equation says"),),
    args=(
        ArgSpec(
            name="equation",
            type="str",
            doc=(
                "Terms of letters, one letter for each axis of an operand, joined by commas; then "
                "'->' and the axes of the output, such as 'bij,bjk->bik'. '...' stands for any "
                "number of axes, which are broadcast. A letter twice in a term takes the diagonal. "
                "Without '->' the output has the axes of the ellipsis, then in alphabetical order "
                "the letters that occur once."
            ),
        ),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y[output axes] = sum over all other axes of x_0[term_0] x_1[term_1] ...",
    notes=(
        "Axes of one letter have equal lengths (a length of 1 is not stretched). Products are summed in "
        "float32 or wider."
    ),
    example="F.einsum(nn.Variable((2, 3)), nn.Variable((3, 4)), equation='ij,jk->ik').shape  # (2, 4)",
)

SPECS: tuple[FunctionSpec, ...] = (AFFINE, BATCH_MATMUL, BATCH_DET, BATCH_INV, BATCH_LOGDET, BATCH_CHOLESKY, EINSUM)
