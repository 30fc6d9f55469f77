"""Normalizations that standardize x over some axes: x to (x - mean) / sqrt(variance + eps).

Each is a composition of reductions and element-wise kernels over one frame; the functions differ in the frame, in the
axes that statistics keep, and in where beta and gamma vary. Statistics are taken in one pass, in the precision of sums; see
`reduce_code`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import backward_arrays, backward_names, forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import refuse_dtypes
from nn_ext_cuda.codegen.operand import uses
from nn_ext_cuda.fusion.joinable import Joinable
from nn_ext_cuda.fusion.summing import Summing
from nn_ext_cuda.kernels.normalized_rows import Frame, Rows, row_gradients, row_normalization, rows_of
from nn_ext_cuda.launch.program import Chain, Program

#: The name of a batch normalization with a sum and a ReLU.
_FUSED: Final = "fused_batch_normalization"


def _frame_of(call: Call, kept: Sequence[int]) -> Frame:
    x = call.inputs[0]
    assert x is not None
    given = {"beta": call.inputs[1], "gamma": call.inputs[2]} if len(call.inputs) > 2 else {}
    statistics = tuple(length if axis in kept else 1 for axis, length in enumerate(x.shape))
    return Frame(x.shape, statistics, {name: desc.shape for name, desc in given.items() if desc is not None})


def _ints(call: Call, *names: str) -> tuple[int, ...]:
    """Return the axes that some arguments name."""
    axes: list[Any] = []
    for name in names:
        value = call.args[name]
        axes += value if isinstance(value, tuple) else (value,)
    return tuple(int(axis) for axis in axes)


def _groups(call: Call) -> Frame:
    """Return the axis of the channels becomes two, of groups and of the channels of a group."""
    axis, n_groups = _ints(call, "channel_axis", "num_groups")
    x = call.inputs[0]
    assert x is not None

    def split(shape: Shape, groups: int) -> Shape:
        return (*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])

    whole = split(x.shape, n_groups)
    kept = [k + (k > axis) for k in _ints(call, "batch_axis")] + [axis]
    statistics = tuple(length if k in kept else 1 for k, length in enumerate(whole))
    given = {"beta": call.inputs[1], "gamma": call.inputs[2]}
    return Frame(whole, statistics, {name: split(desc.shape, n_groups) for name, desc in given.items() if desc is not None})


def _has_gamma_inside(frame: Frame) -> bool:
    """Return whether gamma varies among the elements of a statistic, so that it is part of the sums of the gradient."""
    return frame.parameters.get("gamma", frame.statistics) != frame.statistics


@dataclass(frozen=True, slots=True)
class _Flow:
    """Expressions of the gradient.

    Attributes:
        dy: The gradient of y, or of what was put through a ReLU.
        distance: The distance of x from the mean.
        scale: The inverse of the standard deviation.
        through: The gradient of x flows through the statistics.
        stores_dz: The launch for the sums writes dz, which is the same as dy, so that the next one reads that alone.
    """

    dy: str
    distance: str
    scale: str
    through: bool
    stores_dz: bool

    def inner(self, frame: Frame) -> str:
        """Return the gradient of the standardized values, without a gamma that is a factor of the result."""
        return f"({self.dy} * gamma)" if _has_gamma_inside(frame) else self.dy


def _add_sums(composition: Composition, function: str, flow: _Flow, frame: Frame) -> None:
    """Compute the sums of the gradients over each statistic, and what is made of them: numbers for dx, gradients of
    parameters.
    """
    results = _numbers_for_dx(composition, flow, frame) if flow.through else {}
    total, slope = flow.dy, f"{flow.dy} * {flow.distance}"
    by_shape: dict[Shape, dict[str, str]] = {}
    for target, value, summand in (("dbeta", "total", total), ("dgamma", f"slope * {flow.scale}", f"{slope} * {flow.scale}")):
        if not composition.has(target):
            continue
        shape = frame.parameters[target[1:]]
        if shape == frame.statistics and not _has_gamma_inside(frame):
            results[target] = value
        else:
            by_shape.setdefault(shape, {})[target] = summand
    if results:
        _add_sums_of_statistics(composition, function, flow, frame, results)
    for sums in by_shape.values():
        named = {f"sum_of_{target}": summand for target, summand in sums.items()}
        composition.sums(f"{function}_parameters", named, dict(zip(sums, named, strict=True)))


def _numbers_for_dx(composition: Composition, flow: _Flow, frame: Frame) -> dict[str, str]:
    """Scratch arrays for the numbers of each statistic that dx is made of, by the sums."""
    for name in ("shift", "stretch", "factor"):
        composition.scratch(name, frame.statistics)
    stretch = f"slope * {flow.scale} / count * {flow.scale}"
    return {"shift": "total / count", "stretch": stretch, "factor": f"{flow.scale}{_factor(composition, frame)}"}


def _add_sums_of_statistics(
    composition: Composition, function: str, flow: _Flow, frame: Frame, results: Mapping[str, str]
) -> None:
    """Compute the launches for sums of the shape of statistics; dz is written on the way."""
    inner, text = flow.inner(frame), " ".join(results.values())
    summands = {"total": inner, "slope": f"{inner} * {flow.distance}"}
    used = {name: summand for name, summand in summands.items() if uses(text, name)}
    composition.sums(f"{function}_sums", used, results, {"dz": flow.dy} if flow.stores_dz else {})


def _factor(composition: Composition, frame: Frame) -> str:
    """Return the product with gamma, unless it is inside of the sums or there is none."""
    return " * gamma" if composition.has("gamma") and not _has_gamma_inside(frame) else ""


@dataclass(frozen=True, slots=True)
class _Factors:
    """Expressions of the mean and of the inverse of the standard deviation, which may be multiplied by gamma."""

    mean: str
    scale: str
    has_gamma: bool


class Normalization:
    """A normalization.

    Args:
        frame: The layout of the arrays of the call.
        relu: The function adds its input z and takes a ReLU.
        joins: Plans may let it take over the sum and the ReLU after it.
    """

    def __init__(self, frame: Callable[[Call], Frame], *, relu: bool = False, joins: bool = False) -> None:
        self._frame = frame
        self._relu = relu
        self._joins = joins

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, very large arrays and nonlinearities other than ReLU."""
        if self._relu and call.args["nonlinearity"] != "relu":
            return Refusal(f"takes the nonlinearity relu, got {call.args['nonlinearity']}")
        return refuse_sizes(call.inputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch over rows; else statistics, standardized values, and the running statistics."""
        rows = self._rows(call)
        if rows is not None:
            return self._by_rows(call, rows)
        program = self._standardize(call, forward_arrays(call), forward_names(call), relu=self._relu)
        return Joinable(program, call, self.joined(call)) if self._joins else program

    def joined(self, call: Call) -> Callable[[bool], Program]:
        """Return the function that makes the program of `call` with a ReLU, and with an array z before it if that is told."""

        def made(has_z: bool) -> Program:
            arrays = [*forward_arrays(call), call.outputs[0] if has_z else None]
            return self._standardize(call, arrays, [*forward_names(call), "z"], relu=True)

        return made

    def _standardize(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str], *, relu: bool) -> Program:
        """Statistics, kept and running ones, and standardized values."""
        frame, composition = self._composition(call, arrays, names)
        api = _FUSED if relu else call.spec.api
        x, y = call.spec.inputs[0].name, call.spec.outputs[0].name
        factors = self._factors(call, composition, frame, api)
        value = f"({x} - {factors.mean}) * {factors.scale}"
        terms = (("gamma", "*"), ("beta", "+"), ("z", "+"))
        for name, operator in terms[factors.has_gamma :]:
            value += f" {operator} {name}" * composition.has(name)
        composition.compute(f"{api}_forward", {y: f"larger({value}, R(0))" if relu else value})
        return composition.program()

    def _factors(self, call: Call, composition: Composition, frame: Frame, api: str) -> _Factors:
        """Return the statistics of the batch, or given ones; this keeps them, and moves the running ones."""
        if not call.args.get("batch_stat", True):
            kept = dict(zip(self._kept(call), ("mean", "variance"), strict=True))
            if kept:
                composition.compute(f"{api}_keep", kept)
            return _Factors("mean", "(R(1) / sqrt(variance + eps))", has_gamma=False)
        has_gamma = composition.has("gamma") and not _has_gamma_inside(frame)
        composition.scratch("own_mean", frame.statistics)
        composition.scratch("own_scale", frame.statistics)
        gamma = "gamma" if has_gamma else "R(1)"
        results = {"own_mean": "origin + average", "own_scale": f"{gamma} / sqrt(squares / count + eps)"}
        results |= dict(zip(self._kept(call), ("origin + average", "squares / count"), strict=True))
        if "decay_rate" in call.args and _count(frame):
            moved = {"mean": "(origin + average)", "variance": "unbiased * squares / count"}
            results |= {
                name: f"decay_rate * {name} + (1 - decay_rate) * {source}"
                for name, source in moved.items()
                if composition.has(name)
            }
        composition.moments(f"{api}_statistics", call.spec.inputs[0].name, results)
        return _Factors("own_mean", "own_scale", has_gamma=has_gamma)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """Means of dy and of dy times the standardized values, then dx; None for gradients of running statistics."""
        if any(wanted[3:5]):
            return None
        arrays, names = backward_arrays(call, wanted), backward_names(call)
        rows = self._rows(call)
        if rows is not None and rows.is_by_element and wanted[0] and len(call.outputs) > 1:
            return self._backward_at_once(call, wanted, rows)
        by_rows = self._backward_by_rows(call, wanted)
        wants_dx = bool(wanted[0]) and not by_rows
        program = self._gradients(call, arrays, names, wants_dx=wants_dx, relu=self._relu)
        if self._joins:
            return Joinable(program, call, self.joined_backward(call, wanted), is_backward=True)
        return Chain([*by_rows, program]) if by_rows else program

    def joined_backward(self, call: Call, wanted: Sequence[bool]) -> Callable[[bool], Program]:
        """Return the same as `joined` for the gradients, with one of z if that is told."""

        def made(has_z: bool) -> Program:
            arrays, dz = backward_arrays(call, wanted), call.outputs[0] if has_z else None
            arrays[len(call.inputs)] = call.outputs[0]
            return self._gradients(call, [*arrays, dz], [*backward_names(call), "dz"], wants_dx=bool(wanted[0]), relu=True)

        return made

    def _gradients(
        self,
        call: Call,
        arrays: Sequence[ArrayDesc | None],
        names: Sequence[str],
        *,
        wants_dx: bool,
        relu: bool,
    ) -> Program:
        """Return the gradients that there are arrays for, that of x only if it is wanted here."""
        frame, composition = self._composition(call, arrays, names)
        x, y = call.spec.inputs[0].name, call.spec.outputs[0].name
        api = f"{_FUSED if relu else call.spec.api}_backward"
        through = bool(call.args.get("batch_stat", True)) and wants_dx  # dx through the statistics
        dy = "(y > 0 ? dy : R(0))" if relu else f"d{y}"
        mean, variance = self._kept(call) if call.args.get("batch_stat", True) else ("mean", "variance")
        stores_dz = through and composition.has("dz")
        flow = _Flow(dy, f"({x} - {mean})", f"(R(1) / sqrt({variance} + eps))", through, stores_dz)
        _add_sums(composition, api, flow, frame)
        outputs = {"dz": dy} if composition.has("dz") and not stores_dz else {}
        if wants_dx:
            outputs[f"d{x}"] = self._dx(composition, replace(flow, dy="dz") if stores_dz else flow, frame)
        if outputs:
            composition.compute(api, outputs)
        return composition.program()

    @staticmethod
    def _dx(composition: Composition, flow: _Flow, frame: Frame) -> str:
        """Return the gradient of x."""
        if flow.through:
            return f"({flow.inner(frame)} - shift - {flow.distance} * stretch) * factor"
        return f"{flow.inner(frame)}{_factor(composition, frame)} * {flow.scale}"

    def _rows(self, call: Call) -> Rows | None:
        """Return the rows that one launch normalizes; None with running statistics or a ReLU."""
        return None if "decay_rate" in call.args or self._relu else rows_of(self._frame(call))

    def _by_rows(self, call: Call, rows: Rows) -> Runner:
        """Return the launch over rows."""
        n_inputs = len(call.inputs)
        parameters = self._places(call, "beta", "gamma")
        kept = (n_inputs + 1, n_inputs + 2) if len(call.outputs) > 1 else (None, None)
        places, n_arrays = (0, *parameters, n_inputs, *kept), len(forward_arrays(call))
        program = row_normalization(call, rows, "normalize_rows", places, n_arrays)
        if not rows.kept:
            return program

        def with_sum() -> Program:
            further = n_arrays, n_arrays + 1
            return row_normalization(call, rows, "normalize_rows", (*places, *further), n_arrays + 2, SUMS=1)

        return Summing(program, with_sum, 0)

    def _backward_at_once(self, call: Call, wanted: Sequence[bool], rows: Rows) -> Runner:
        """Return a launch that reads x and dy once and leaves parts of the sums for beta and gamma, and one that adds
        these.
        """
        n = len(call.inputs)
        arrays, names = backward_arrays(call, wanted), backward_names(call)

        def made(has_sum: bool) -> Program:
            own, own_names = ([*arrays, call.inputs[0]], [*names, "other"]) if has_sum else (arrays, names)
            shapes = {"dbeta": (1, rows.length), "dgamma": (1, rows.length)}
            composition = Composition(call, own, own_names, (rows.n_parts, rows.length), shapes)
            parts: dict[str, int] = {}
            for name in ("beta", "gamma"):
                if composition.has(f"d{name}"):
                    parts[name] = len(own) + len(parts)
                    composition.scratch(f"{name}_parts", (rows.n_parts, rows.length))
            places = (0, *self._places(call, "gamma"), n + 1, n + 2, n + 3, n + 4, parts.get("beta"), parts.get("gamma"))
            places += (len(arrays),) * has_sum
            composition.add(row_gradients(call, rows, places, SUMS=int(has_sum)))
            if parts:
                summands = {f"{name}_sum": f"{name}_parts" for name in parts}
                results = {f"d{name}": f"{name}_sum" for name in parts}
                composition.sums(f"{call.spec.api}_backward_parameters", summands, results)
            return composition.program()

        return Summing(made(False), lambda: made(True), n + 4, is_backward=True)

    def _backward_by_rows(self, call: Call, wanted: Sequence[bool]) -> list[Runner]:
        """Return the launch over rows that computes dx from the statistics that were kept; none where there is none."""
        rows = self._rows(call)
        if rows is None or not wanted[0] or len(call.outputs) == 1:
            return []
        n, n_arrays = len(call.inputs), len(backward_arrays(call, wanted))
        places = (0, *self._places(call, "gamma"), n + 1, n + 2, n + 3, n + 4)
        return [row_normalization(call, rows, "normalize_rows_backward", places, n_arrays)]

    @staticmethod
    def _places(call: Call, *names: str) -> list[int | None]:
        """Return the positions of these inputs, None where they are not given."""
        given = {entry.name: place for place, entry in enumerate(call.spec.inputs) if call.inputs[place] is not None}
        return [given.get(name) for name in names]

    def _composition(self, call: Call, arrays: Sequence[ArrayDesc | None], names: Sequence[str]) -> tuple[Frame, Composition]:
        frame = self._frame(call)
        count = _count(frame)
        shapes = dict.fromkeys((*self._kept(call), "mean", "variance"), frame.statistics)
        for name, shape in frame.parameters.items():
            shapes[name] = shapes[f"d{name}"] = shape
        numbers = {"count": max(count, 1), "unbiased": count / max(count - 1, 1)}
        return frame, Composition(call, arrays, names, frame.whole, shapes, numbers)

    @staticmethod
    def _kept(call: Call) -> list[str]:
        """Names of the outputs that keep the statistics."""
        return [entry.name for entry in call.spec.outputs[1:]]


def _count(frame: Frame) -> int:
    """Over how many elements a statistic is taken."""
    return math.prod(length for length, kept in zip(frame.whole, frame.statistics, strict=True) if length != kept)


def _kept_axes(call: Call) -> Frame:
    return _frame_of(call, _ints(call, "axes"))


BATCH_NORMALIZATION: Final = Normalization(_kept_axes, joins=True)
FUSED_BATCH_NORMALIZATION: Final = Normalization(_kept_axes, relu=True)

NORMALIZATION: Final[Mapping[str, Kernel]] = {
    "BatchNormalization": BATCH_NORMALIZATION,
    "SyncBatchNormalization": Normalization(_kept_axes),
    "FusedBatchNormalization": FUSED_BATCH_NORMALIZATION,
    "TensorNormalization": Normalization(_kept_axes),
    "LayerNormalization": Normalization(lambda call: _frame_of(call, _ints(call, "batch_axis"))),
    "InstanceNormalization": Normalization(lambda call: _frame_of(call, _ints(call, "batch_axis", "channel_axis"))),
    "GroupNormalization": Normalization(_groups),
    "WeightStandardization": Normalization(lambda call: _frame_of(call, _ints(call, "channel_axis"))),
}
