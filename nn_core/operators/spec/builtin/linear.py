"""Specifications of the topic linear.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

AFFINE = FunctionSpec(
    name="Affine", api="affine", topic="linear",
    doc="Multiply the flattened input by a weight matrix and add a bias (a fully connected layer).",
    inputs=(
        InputSpec(name="x"), InputSpec(name="weight", dtype="parameter", parameter=True),
        InputSpec(name="bias", dtype="parameter", optional=True, parameter=True),
    ),
    outputs=(OutputSpec(name="y"),), args=(ArgSpec(name="base_axis", type="axis", default=1),),
    backward=BackwardSpec(needs=("x", "weight")),
)

BATCH_MATMUL = FunctionSpec(
    name="BatchMatmul", api="batch_matmul", topic="linear",
    doc="Multiply matrices that are stacked along leading axes.", inputs=(InputSpec(name="a"), InputSpec(name="b")),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="transpose_a", type="bool", default=False),
        ArgSpec(name="transpose_b", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("a", "b")),
)

BATCH_DET = FunctionSpec(
    name="BatchDet", api="batch_det", topic="linear", doc="Compute the determinant of each matrix.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x", "y")),
)

BATCH_INV = FunctionSpec(
    name="BatchInv", api="batch_inv", topic="linear", doc="Invert each matrix.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("y",)),
)

BATCH_LOGDET = FunctionSpec(
    name="BatchLogdet", api="batch_logdet", topic="linear",
    doc="Compute the logarithm of the absolute determinant of each matrix.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),), backward=BackwardSpec(needs=("x",)),
)

BATCH_CHOLESKY = FunctionSpec(
    name="BatchCholesky", api="batch_cholesky", topic="linear",
    doc="Factor each positive definite matrix into a triangular matrix and its transpose.",
    inputs=(InputSpec(name="x"),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="upper", type="bool", default=False),), backward=BackwardSpec(needs=("y",)),
)

EINSUM = FunctionSpec(
    name="Einsum", api="einsum", topic="linear",
    doc="Sum products of array elements over the axes that an equation names.",
    inputs=(InputSpec(name="x", variadic=True),), outputs=(OutputSpec(name="y"),),
    args=(ArgSpec(name="equation", type="str"),), backward=BackwardSpec(needs=("x",)),
)

SPECS: tuple[FunctionSpec, ...] = (AFFINE, BATCH_MATMUL, BATCH_DET, BATCH_INV, BATCH_LOGDET, BATCH_CHOLESKY, EINSUM)
