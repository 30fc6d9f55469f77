"""Ranges as parameters by name, and the scales that follow from them."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nn_core.errors import ArgumentError
from nn_core.experimental.quantization import recorders
from nn_core.experimental.quantization.choices import RoundingMethod
from nn_core.parametric_functions.scope import get_parameter, get_parameter_or_create
from nn_core.variable import Variable

#: The width of a range of which only one value was seen: its scale is not zero then.
_NARROWEST: Final = 1e-24
_ROUNDED: Final[Mapping[RoundingMethod, Callable[[float], float]]] = {
    RoundingMethod.CEIL: math.ceil,
    RoundingMethod.ROUND: round,
    RoundingMethod.FLOOR: math.floor,
}


class RecorderCallback:
    """Base of what makes a recorder and the parameters of its range, and later the scale from them.

    The parameters are those of the current scope called ``m-<name>`` and ``M-<name>``, of one element each, which need no
    gradient. Subclasses say by which function they record.
    """

    record: Any = None
    #: Whether the range has a lower end of its own; it reaches from -M to M otherwise.
    two_ends: bool = False

    def __call__(self, x: Variable, axes: Sequence[int] = (1,), training: bool = True, name: str = "") -> Variable:
        """Record `x`; `axes` has no effect, since a range is that of the whole array."""
        ends = [_parameter(f"{end}-{name}", x.ndim) for end in ("mM" if self.two_ends else "M")]
        recorded: Variable = type(self).record(x, *ends, training=training)
        return recorded

    @classmethod
    def name(cls) -> str:
        """Return the name of the function that records, such as "MaxMvaRecorder"."""
        return cls.__name__.removesuffix("Callback")

    @classmethod
    def get_scale_zeropoint(
        cls,
        x: Variable,
        axes: Sequence[int] = (1,),
        narrow_range: bool = False,
        round_method: RoundingMethod | str = RoundingMethod.NOTROUND,
        name: str = "",
    ) -> tuple[Variable, Variable]:
        """Compute the distance of two 8-bit levels from the recorded range, and the level of zero, which is 0.

        Both are parameters of the current scope, ``scale-<name>`` and ``zeropoint-<name>``, and are set here.

        Args:
            x: The values; their number of axes counts.
            axes: No effect, see above.
            narrow_range: No effect: the level -128 is hardly ever reached.
            round_method: How the scale becomes a power of two; NOTROUND: not at all.
            name: Of the range.

        Raises:
            ArgumentError: for another rounding.
        """
        return put_scale(name, cls.scale_of(name, round_method), x.ndim)

    @classmethod
    def scale_of(cls, name: str, round_method: RoundingMethod | str) -> float:
        """Compute the distance of two 8-bit levels from the range `name` of the current scope.

        Raises:
            ArgumentError: when there is no such range, or for another rounding.
        """
        width = _end(f"M-{name}") / 127
        if cls.two_ends:
            width = (_end(f"M-{name}") - _end(f"m-{name}")) / 255
        return power_of_two(max(width, _NARROWEST / 255), round_method)


class AbsMaxRecorderCallback(RecorderCallback):
    """Ranges from -M to M with the largest absolute value of all passes."""

    record = recorders.abs_max_recorder


class MaxMaxRecorderCallback(RecorderCallback):
    """Ranges from -M to M with the largest value of all passes."""

    record = recorders.max_max_recorder


class MaxMvaRecorderCallback(RecorderCallback):
    """Ranges from -M to M with the moving mean of the largest values."""

    record = recorders.max_mva_recorder


class MinMaxMinMaxRecorderCallback(RecorderCallback):
    """Ranges from the smallest to the largest value of all passes."""

    record = recorders.minmax_minmax_recorder
    two_ends = True


class MinMaxMvaRecorderCallback(RecorderCallback):
    """Ranges between moving means of the smallest and the largest values."""

    record = recorders.minmax_mva_recorder
    two_ends = True


def power_of_two(scale: float, method: RoundingMethod | str) -> float:
    """Return the power of two near `scale`, or `scale` itself.

    Raises:
        ArgumentError: for a rounding that there is not.
    """
    try:
        known = RoundingMethod(method)
    except ValueError:
        choices = [member.value for member in RoundingMethod]
        raise ArgumentError(f"get_scale_zeropoint: round_method must be one of {choices}, got {method!r}") from None
    return scale if known is RoundingMethod.NOTROUND else 2.0 ** _ROUNDED[known](math.log2(scale))


def put_scale(name: str, value: float, ndim: int) -> tuple[Variable, Variable]:
    """Set the parameters of a scale in the current scope."""
    scale, zero_point = _parameter(f"scale-{name}", ndim), _parameter(f"zeropoint-{name}", ndim)
    scale.d, zero_point.d = value, 0
    return scale, zero_point


def _end(name: str) -> float:
    found = get_parameter(name)
    if found is None:
        raise ArgumentError(f"get_scale_zeropoint: the values must have been recorded, got no parameter {name!r}")
    return float(found.d.max())


def _parameter(name: str, ndim: int) -> Variable:
    return get_parameter_or_create(name, (1,) * ndim, need_grad=False)
