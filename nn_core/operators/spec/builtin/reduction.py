"""Specifications of the topic reduction.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from nn_core.operators.spec.model import ArgSpec, BackwardSpec, FunctionSpec, InputSpec, OutputSpec

SUM = FunctionSpec(
    name="Sum", api="sum", topic="reduction", doc="Add the elements along axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
    ),
)

MEAN = FunctionSpec(
    name="Mean", api="mean", topic="reduction", doc="Average the elements along axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
    ),
)

MAX = FunctionSpec(
    name="Max", api="max", topic="reduction", doc="Take the largest element along axes, its place, or both.",
    inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="index", dtype="index", optional=True)),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
        ArgSpec(name="with_index", type="bool", default=False),
        ArgSpec(name="only_index", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")), tags=("selecting", "copied_index"),
)

MIN = FunctionSpec(
    name="Min", api="min", topic="reduction", doc="Take the smallest element along axes, its place, or both.",
    inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"), OutputSpec(name="index", dtype="index", optional=True)),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
        ArgSpec(name="with_index", type="bool", default=False),
        ArgSpec(name="only_index", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")), tags=("selecting", "copied_index"),
)

NORM = FunctionSpec(
    name="Norm", api="norm", topic="reduction", doc="Take the p-norm along axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="p", type="float", default=2.0, minimum=1, shown_as_none=True),
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x", "y")),
)

PROD = FunctionSpec(
    name="Prod", api="prod", topic="reduction", doc="Multiply the elements along axes.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="axes", type="axes", default_rule="all_axes"),
        ArgSpec(name="keep_dims", type="bool", default=False),
    ),
    backward=BackwardSpec(needs=("x",)),
)

CUMSUM = FunctionSpec(
    name="CumSum", api="cumsum", topic="reduction",
    doc="Add up the elements along an axis, keeping every intermediate sum.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="axis", type="axis", default=0, shown_as_none=True),
        ArgSpec(name="exclusive", type="bool", default=False),
        ArgSpec(name="reverse", type="bool", default=False),
    ),
    shape="same_as x",
)

CUMPROD = FunctionSpec(
    name="CumProd", api="cumprod", topic="reduction",
    doc="Multiply the elements along an axis, keeping every intermediate product.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y"),),
    args=(
        ArgSpec(name="axis", type="axis", default=0, shown_as_none=True),
        ArgSpec(name="exclusive", type="bool", default=False),
        ArgSpec(name="reverse", type="bool", default=False),
    ),
    shape="same_as x", backward=BackwardSpec(needs=("x",)),
)

REDUCE_SUM = FunctionSpec(
    name="ReduceSum", api="reduce_sum", topic="reduction", doc="Add all elements.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
)

REDUCE_MEAN = FunctionSpec(
    name="ReduceMean", api="reduce_mean", topic="reduction", doc="Average all elements.", inputs=(InputSpec(name="x"),),
    outputs=(OutputSpec(name="y", dtype="statistic"),),
)

SPECS: tuple[FunctionSpec, ...] = (SUM, MEAN, MAX, MIN, NORM, PROD, CUMSUM, CUMPROD, REDUCE_SUM, REDUCE_MEAN)
