"""Functions that draw random numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cpu import _native
from nn_ext_cpu.axes import base_axis_of, by_axes, refuse_samples
from nn_ext_cpu.describe import backward_arrays, forward_arrays, refuse_dtypes, refuse_empty, reshaped
from nn_ext_cpu.pointwise import Pointwise

#: The key of a run: seed and counter.
_KEY: Final = ArrayDesc((2,), "uint64")

#: The gradient needs the mask alone.
_GRADIENT: Final = Pointwise("", {"x": "dx = mul dy mask"})


class Dropout:
    """Dropout with the random bits that every backend draws."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32."""
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the mask and the product."""
        runner: Runner = _native.prepare("dropout", [*forward_arrays(call), _KEY], p=float(call.args["p"]))  # type: ignore[arg-type]  # a number by the specification
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the product of dy and the mask."""
        return _GRADIENT.backward(call, wanted)


#: Name of a distribution of the native operation ``draw``, and its numbers.
Distribution: TypeAlias = tuple[str, list[float]]


class Draw:
    """Random numbers of a distribution, element by element.

    Args:
        distribution: Meaning of the arguments of a call.
    """

    def __init__(self, distribution: Callable[[Mapping[str, Any]], Distribution]) -> None:
        self._distribution = distribution

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and int64, and tables of more steps than are worth a search."""
        if len(self._distribution(call.args)[1]) > _MOST_STEPS:
            return Refusal(f"takes distributions of at most {_MOST_STEPS} steps, got {call.args['n']}")
        return refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the numbers."""
        distribution, parameters = self._distribution(call.args)
        settings: dict[str, Any] = {"distribution": distribution, "parameters": [float(p) for p in parameters]}
        runner: Runner = _native.prepare("draw", [*forward_arrays(call), _KEY], **settings)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """There is no input."""
        return None


#: A table of the binomial distribution is as long as the number of trials.
_MOST_STEPS: Final = 1 << 16


def _binomial(args: Mapping[str, Any]) -> Distribution:
    """Inversion: the number of trials whose cumulative probability does not exceed a uniform number."""
    n, p = args["n"], args["p"]
    if p in (0, 1) or n == 0:
        return "uniform", [n * p, 0.0]
    successes = np.arange(1, n + 1, dtype=np.float64)
    log_ratios = np.log((n + 1 - successes) / successes) + np.log(p / (1 - p))
    log_chances = np.concatenate((np.zeros(1), np.cumsum(log_ratios))) + n * np.log1p(-p)
    return "steps", np.cumsum(np.exp(log_chances))[:-1].tolist()


#: How samples move: the motion of the native operation ``draw_source``, and for each axis how many offsets may be drawn.
Motion: TypeAlias = tuple[str, list[int]]


class Moved:
    """Samples read at places that are drawn for each axis of each of them; the gradient adds up where they were read.

    Args:
        motion: Meaning of the arguments of a call.
    """

    def __init__(self, motion: Callable[[Call], Motion]) -> None:
        self._motion = motion

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, samples without axes or elements, and those that are exchanged."""
        y, source = call.outputs
        if source.shape[-1] != sum(y.shape[base_axis_of(call) :]):
            return Refusal("moves samples along the axes from base_axis on")
        return refuse_samples(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the drawing of places and the reading."""
        base_axis = base_axis_of(call)
        motion, ranges = self._motion(call)
        arrays = [*forward_arrays(call), _KEY]
        settings: dict[str, Any] = {"lengths": list(call.outputs[0].shape[base_axis:]), "ranges": ranges, "motion": motion}
        value = float(call.args.get("constant_value", 0.0))  # type: ignore[arg-type]  # a number by the specification
        draw = _native.prepare("draw_source", arrays, places=[2, 3], **settings)
        return _native.chain([draw, by_axes("pick_axes", arrays, [0, 2, 1], base_axis, value)])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the sums."""
        return by_axes("add_axes", backward_arrays(call, wanted), [3, 2, 4], base_axis_of(call))


def _lengths(call: Call) -> Sequence[int]:
    """Those of the axes of a sample of x."""
    x = call.inputs[0]
    assert x is not None
    return x.shape[base_axis_of(call) :]


def _cropped(call: Call) -> Motion:
    places = call.outputs[0].shape[base_axis_of(call) :]
    return "crop", [length - place + 1 for length, place in zip(_lengths(call), places, strict=True)]


def _flipped(call: Call) -> Motion:
    axes = call.args["axes"]
    assert isinstance(axes, tuple)
    return "flip", [1 + (base_axis_of(call) + axis in axes) for axis in range(len(_lengths(call)))]


def _shifted(call: Call) -> Motion:
    """Shifts belong to the last axes."""
    shifts, n_axes = call.args["shifts"], len(_lengths(call))
    assert isinstance(shifts, tuple)
    limits = [0] * n_axes + [int(shift) for shift in shifts]  # type: ignore[call-overload]  # ints by the specification
    return str(call.args["border_mode"]), [2 * limit + 1 for limit in limits[len(limits) - n_axes :]]


class Erase:
    """Images with random patches replaced; the gradient passes where they were kept, or everywhere."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes other than float32 and bfloat16, and arrays without elements."""
        return refuse_empty(call) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """Prepare the drawing and the replacement."""
        arrays, args = [*forward_arrays(call), _KEY], call.args
        images = [
            reshaped(desc, (desc.size // max(math.prod(desc.shape[-3:]), 1), *desc.shape[-3:]))
            for desc in arrays[:3]
            if desc is not None
        ]
        settings: dict[str, Any] = {
            "prob": float(args["prob"]),  # type: ignore[arg-type]  # a number by the specification
            "areas": [float(limit) for limit in args["area_ratios"]],  # type: ignore[union-attr,arg-type]
            "aspects": [float(limit) for limit in args["aspect_ratios"]],  # type: ignore[union-attr,arg-type]
            "values": [float(limit) for limit in args["replacements"]],  # type: ignore[union-attr,arg-type]
            **{name: args[name] for name in ("n", "share", "channel_last")},
        }
        runner: Runner = _native.prepare("random_erase", arrays, views=[*images, _KEY], **settings)
        return runner

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Prepare the product of dy and what was kept."""
        return (_KEPT if call.args["ste_fine_grained"] else _STRAIGHT).backward(call, wanted)


_KEPT: Final = Pointwise("", {"x": "dx = mul dy kept"})
_STRAIGHT: Final = Pointwise("", {"x": "dx = copy dy"})

RANDOM: Final[Mapping[str, Kernel]] = {
    "Dropout": Dropout(),
    "RandomCrop": Moved(_cropped),
    "RandomFlip": Moved(_flipped),
    "RandomShift": Moved(_shifted),
    "RandomErase": Erase(),
    "Rand": Draw(lambda args: ("uniform", [args["low"], args["high"] - args["low"]])),
    "Randn": Draw(lambda args: ("normal", [args["mu"], args["sigma"]])),
    "Randint": Draw(lambda args: ("below", [args["low"], args["high"] - args["low"]])),
    "RandBinomial": Draw(_binomial),
    "RandGamma": Draw(lambda args: ("gamma", [args["k"], args["theta"]])),
    "RandBeta": Draw(lambda args: ("beta", [args["alpha"], args["beta"]])),
}
