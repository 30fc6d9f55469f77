"""Default values of arguments that depend on the inputs, by the name that a specification uses.

``rule(shapes, args)`` gets the shapes of the inputs and the arguments before its own, already resolved.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from nn_core.operators.spec.model import PER_SPATIAL_AXIS, ArgSpec, ArgValue
from nn_core.typing import Shape

#: How many numbers one number stands for, given the shapes of the inputs and the earlier arguments.
OneNumber: TypeAlias = Callable[[Sequence[Shape | None], Mapping[str, ArgValue]], int]
#: Changes resolved arguments in place, given the shapes of the inputs.
Adjustment: TypeAlias = Callable[[Sequence[Shape | None], dict[str, ArgValue]], None]
DefaultRule: TypeAlias = Callable[[Sequence[Shape | None], Mapping[str, ArgValue]], ArgValue]


def _first(shapes: Sequence[Shape | None]) -> Shape:
    shape = shapes[0] if shapes else None
    return () if shape is None else shape


def _kernel(args: Mapping[str, ArgValue]) -> Shape:
    return cast(Shape, args["kernel"])


def last_axis(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return the last axis of the first input."""
    return len(_first(shapes)) - 1


def last_axis_list(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a tuple with the last axis of the first input; empty for a 0-d input."""
    ndim = len(_first(shapes))
    return (ndim - 1,) if ndim else ()


def all_axes(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Every axis of the first input."""
    return tuple(range(len(_first(shapes))))


def full_shape(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return the shape of the first input."""
    return _first(shapes)


def zeros_per_axis(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a zero for each axis of the first input."""
    return (0,) * len(_first(shapes))


def ones_per_axis(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a one for each axis of the first input."""
    return (1,) * len(_first(shapes))


def _n_spatial(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> int:
    return len(_first(shapes)) - (cast(int, args["base_axis"]) + 1)


def spatial_zeros(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a zero for each spatial axis: those of the first input after `base_axis` and the channel."""
    return (0,) * _n_spatial(shapes, args)


def spatial_ones(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a one for each spatial axis: those of the first input after `base_axis` and the channel."""
    return (1,) * _n_spatial(shapes, args)


def kernel(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return the argument `kernel` (the default stride of pooling)."""
    return _kernel(args)


def kernel_zeros(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """Return a zero for each length of the argument `kernel`."""
    return (0,) * len(_kernel(args))


def inverse_root_of_features(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> ArgValue:
    """1 / sqrt(E), with E the length of the last axis of the first input; 1 where it has no elements."""
    shape = _first(shapes)
    return float(max(shape[-1], 1)) ** -0.5 if shape else 1.0


DEFAULT_RULES: Final[dict[str, DefaultRule]] = {
    rule.__name__: rule
    for rule in (
        last_axis,
        last_axis_list,
        all_axes,
        full_shape,
        zeros_per_axis,
        ones_per_axis,
        spatial_zeros,
        spatial_ones,
        kernel,
        kernel_zeros,
        inverse_root_of_features,
    )
}


def _once(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> int:
    return 1


def _after_channels(shapes: Sequence[Shape | None], args: Mapping[str, ArgValue]) -> int:
    return max(len(_first(shapes)) - 2, 1)


def one_number(arg: ArgSpec) -> OneNumber:
    """Return how many numbers one integer means: one for each spatial axis, as many as the default has, or just one.

    The spatial axes of a pooling are those of its kernel; one number as the kernel, or as the shape of a part, means all axes
    but two, those of the samples and of the channels.
    """
    if arg.per_spatial_axis:
        return _after_channels
    if arg.type != "ints":
        return _once
    if arg.has_equal_numbers:
        n_entries = len(cast(Shape, arg.default))
        return lambda shapes, args: n_entries
    if arg.name in PER_SPATIAL_AXIS:
        return _after_channels
    rule = DEFAULT_RULES[cast(str, arg.default_rule)]
    return lambda shapes, args: len(cast(Shape, rule(shapes, args)))


def clip_kernel(shapes: Sequence[Shape | None], args: dict[str, ArgValue]) -> None:
    """Let a window that is longer than the padded input, by less than a stride, end with it: there is one window then.

    With whole windows only, NNabla rounds their number towards zero and so counts this one.
    """
    size, step, edges = _kernel(args), cast(Shape, args["stride"]), cast(Shape, args["pad"])
    shape = _first(shapes)
    lengths = shape[: len(shape) - 1] if args["channel_last"] else shape
    if not args["ignore_border"] or not len(size) == len(step) == len(edges) <= len(lengths) or not size:
        return  # where it is wrong, the rule of the shape says so
    full = [n + 2 * edge for n, edge in zip(lengths[-len(size) :], edges, strict=True)]
    args["kernel"] = tuple([n if n and 0 < k - n < s else k for k, n, s in zip(size, full, step, strict=True)])


#: Adjustments of arguments that depend on each other and on the inputs, by the name of the function.
ADJUSTMENTS: Final[Mapping[str, Adjustment]] = dict.fromkeys(("MaxPooling", "SumPooling", "AveragePooling"), clip_kernel)
