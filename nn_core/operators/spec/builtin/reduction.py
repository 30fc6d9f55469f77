"""Specifications of the topic reduction.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SUM = FunctionSpec(
    name="Sum",
    api="sum",
    topic="reduction",
    doc="Add the elements along axes.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Sums.", shape="of x without the reduced axes", dtype="statistic"),),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
    ),
    formula="y = sum of x over the axes",
    notes="Half precision accumulates in float32. The sum of nothing is 0.",
    example="F.sum(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]",
)

MEAN = FunctionSpec(
    name="Mean",
    api="mean",
    topic="reduction",
    doc="Average the elements along axes.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Means.", shape="of x without the reduced axes", dtype="statistic"),),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
    ),
    formula="y = sum of x over the axes / number of elements summed",
    notes="Half precision accumulates in float32. The mean of nothing is NaN.",
    example="F.mean(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]",
)

MAX = FunctionSpec(
    name="Max",
    api="max",
    topic="reduction",
    doc="Take the largest element along axes, its place, or both.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(
        OutputSpec(name="y", doc="The largest elements.", shape="of x without the reduced axes"),
        OutputSpec(
            name="index",
            doc="Place of the first of them, counted in the reduced axes flattened in their order in x.",
            shape="of x without the reduced axes",
            dtype="index",
            optional=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
        ArgSpec(name="with_index", type="bool", doc="Return the pair of value and index.", default=False),
        ArgSpec(name="only_index", type="bool", doc="Return the index alone.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")),
    tags=("selecting",),
    formula="y = max of x over the axes",
    notes=(
        "Of equal elements the first counts: it gives the index and gets the whole gradient. NaN is taken "
        "as the largest and gets no gradient. The reduced axes must hold an element."
    ),
    example="F.max(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.5]",
)

MIN = FunctionSpec(
    name="Min",
    api="min",
    topic="reduction",
    doc="Take the smallest element along axes, its place, or both.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(
        OutputSpec(name="y", doc="The smallest elements.", shape="of x without the reduced axes"),
        OutputSpec(
            name="index",
            doc="Place of the first of them, counted in the reduced axes flattened in their order in x.",
            shape="of x without the reduced axes",
            dtype="index",
            optional=True,
        ),
    ),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
        ArgSpec(name="with_index", type="bool", doc="Return the pair of value and index.", default=False),
        ArgSpec(name="only_index", type="bool", doc="Return the index alone.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")),
    tags=("selecting",),
    formula="y = min of x over the axes",
    notes=(
        "Of equal elements the first counts: it gives the index and gets the whole gradient. NaN is taken "
        "as the smallest and gets no gradient. The reduced axes must hold an element."
    ),
    example="F.min(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.5]",
)

NORM = FunctionSpec(
    name="Norm",
    api="norm",
    topic="reduction",
    doc="Take the p-norm along axes.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Norms, not negative.", shape="of x without the reduced axes"),),
    args=(
        ArgSpec(
            name="p",
            type="float",
            doc="Order of the norm; finite.",
            default=2.0,
            minimum=1,
            shown_as_none=True,
        ),
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")),
    formula="y = (sum of |x|^p over the axes)^(1/p)",
    notes=(
        "Half precision accumulates in float32. Where the norm is 0 the gradient is 0 (for p = 1, where "
        "the gradient of |x| at 0 is 1, it is 1)."
    ),
    example="F.norm(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0.707]",
)

PROD = FunctionSpec(
    name="Prod",
    api="prod",
    topic="reduction",
    doc="Multiply the elements along axes.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Products.", shape="of x without the reduced axes"),),
    args=(
        ArgSpec(
            name="axes",
            type="axes",
            doc="Axes to reduce; default: all. An empty tuple reduces nothing.",
            default_rule="all_axes",
        ),
        ArgSpec(name="keep_dims", type="bool", doc="Keep the reduced axes with length 1.", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
    formula="y = product of x over the axes",
    notes=(
        "Half precision accumulates in float32. The product of nothing is 1. The gradient multiplies the "
        "other elements and never divides, so it is exact where elements are 0."
    ),
    example="F.prod(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [-0.25]",
)

CUMSUM = FunctionSpec(
    name="CumSum",
    api="cumsum",
    topic="reduction",
    doc="Add up the elements along an axis, keeping every intermediate sum.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any with at least one axis"),),
    outputs=(OutputSpec(name="y", doc="Running results.", shape="of x"),),
    args=(
        ArgSpec(name="axis", type="axis", doc="Axis to accumulate along.", default=0, shown_as_none=True),
        ArgSpec(
            name="exclusive",
            type="bool",
            doc="Leave the element itself out, so that the first result is 0.",
            default=False,
        ),
        ArgSpec(name="reverse", type="bool", doc="Start from the end of the axis.", default=False),
    ),
    shape="same_as x",
    formula="y_i = x_1 + ... + x_i",
    notes="Half precision accumulates in float32.",
    example="F.cumsum(nn.NdArray.from_numpy_array([1.0, 2.0, 3.0]), axis=0)  # [1, 3, 6]",
)

CUMPROD = FunctionSpec(
    name="CumProd",
    api="cumprod",
    topic="reduction",
    doc="Multiply the elements along an axis, keeping every intermediate product.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any with at least one axis"),),
    outputs=(OutputSpec(name="y", doc="Running results.", shape="of x"),),
    args=(
        ArgSpec(name="axis", type="axis", doc="Axis to accumulate along.", default=0, shown_as_none=True),
        ArgSpec(
            name="exclusive",
            type="bool",
            doc="Leave the element itself out, so that the first result is 1.",
            default=False,
        ),
        ArgSpec(name="reverse", type="bool", doc="Start from the end of the axis.", default=False),
    ),
    shape="same_as x",
    backward=BackwardSpec(needs=("x",)),
    formula="y_i = x_1 x_2 ... x_i",
    notes=(
        "Half precision accumulates in float32. The gradient is exact where elements are 0; second "
        "derivatives are so with at most one 0 along the axis."
    ),
    example="F.cumprod(nn.NdArray.from_numpy_array([1.0, 2.0, 3.0]), axis=0)  # [1, 2, 6]",
)

REDUCE_SUM = FunctionSpec(
    name="ReduceSum",
    api="reduce_sum",
    topic="reduction",
    doc="Add all elements.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Sum.", shape="()", dtype="statistic"),),
    formula="y = sum of x",
    notes="The same as sum over all axes, kept for files and programs that name it.",
    example="F.reduce_sum(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]",
)

REDUCE_MEAN = FunctionSpec(
    name="ReduceMean",
    api="reduce_mean",
    topic="reduction",
    doc="Average all elements.",
    inputs=(InputSpec(name="x", doc="Input.", shape="any"),),
    outputs=(OutputSpec(name="y", doc="Mean.", shape="()", dtype="statistic"),),
    formula="y = sum of x / number of elements",
    notes="The same as mean over all axes, kept for files and programs that name it.",
    example="F.reduce_mean(nn.NdArray.from_numpy_array([0.5, -0.5]))  # [0]",
)

SPECS: tuple[FunctionSpec, ...] = (SUM, MEAN, MAX, MIN, NORM, PROD, CUMSUM, CUMPROD, REDUCE_SUM, REDUCE_MEAN)
