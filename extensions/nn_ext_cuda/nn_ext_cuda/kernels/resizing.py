"""Arrays resized as ONNX says it; an element is a weighted sum of a few others along each axis, its taps.

Taps follow from the arguments alone, so they are tables, computed on the host once (see `nn_ext_cuda.codegen.constants`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np

from nn_core.ext import Array, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import Code, generated, length_parameters, unravelled
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.constants import Constant, with_constants
from nn_ext_cuda.codegen.dtypes import C_TYPES, real, real_dtype, real_type, refuse_dtypes
from nn_ext_cuda.codegen.layout import length_arguments
from nn_ext_cuda.launch.program import Argument, Program, flat

_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"
#: How a place between two elements is rounded.
_ROUNDINGS: Final[Mapping[str, Any]] = {
    "round_prefer_floor": lambda place: np.ceil(place - 0.5),
    "round_prefer_ceil": lambda place: np.floor(place + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


@dataclass(frozen=True, slots=True)
class Axis:
    """How an axis is resized.

    Attributes:
        n_inputs: Its length before.
        n_outputs: Its length after.
        ratio: Inputs for an output.
        crop: Where outputs begin and end, as fractions of the axis; None: everywhere.
        transformation: The argument coordinate_transformation_mode.
        mode: The argument mode.
        rounding: The argument nearest_mode.
        cubic: The argument cubic_coeff_a.
        exclude: The argument exclude_outside.
    """

    n_inputs: int
    n_outputs: int
    ratio: float
    crop: tuple[float, float] | None
    transformation: str
    mode: str
    rounding: str
    cubic: float
    exclude: bool

    def places(self) -> Array:
        """Return the place of each output among the inputs."""
        steps, last = np.arange(self.n_outputs, dtype=np.float64), self.n_inputs - 1
        if self.crop is not None:
            start, end = self.crop
            if self.n_outputs == 1:
                return steps + (start + end) * last / 2
            return start * last + steps * ((end - start) * last / (self.n_outputs - 1))
        if self.transformation in ("align_corners", "pytorch_half_pixel") and self.n_outputs == 1:
            return steps
        if self.transformation == "align_corners":
            return steps * last / (self.n_outputs - 1)
        return steps * self.ratio if self.transformation == "asymmetric" else (steps + 0.5) * self.ratio - 0.5

    def taps(self) -> tuple[Array, Array, Array]:
        """Return the inputs of each output, their weights, and whether a crop takes it from beyond the inputs."""
        places = self.places()
        beyond = (places < 0) | (places > self.n_inputs - 1) if self.crop is not None else np.zeros(len(places), bool)
        indices, weights = self._around(places)
        return np.clip(indices, 0, self.n_inputs - 1).astype(np.int64), weights, beyond

    def _around(self, places: Array) -> tuple[Array, Array]:
        """Return the whole places around others, and their weights; those of cubic interpolation are Keys' (1981)."""
        if self.mode == "nearest":
            return _ROUNDINGS[self.rounding](places)[:, None], np.ones((len(places), 1))
        if self.mode == "linear":
            indices = np.floor(places)[:, None] + np.arange(2)
            return indices, 1 - np.abs(places[:, None] - indices)
        indices = np.floor(places)[:, None] + np.arange(-1, 3)
        distance, a = np.abs(places[:, None] - indices), self.cubic
        near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
        weights = np.where(distance <= 1, near, (((distance - 5) * distance + 8) * distance - 4) * a)
        if self.exclude:
            weights = np.where((indices < 0) | (indices > self.n_inputs - 1), 0.0, weights)
            weights = weights / np.sum(weights, axis=1, keepdims=True)
        return indices, weights


@lru_cache(maxsize=256)
def _tables(axis: Axis, transposed: bool) -> tuple[Array, Array]:
    """Return sources and weights of each element, (elements, taps); a source of -1 stands for what is beyond the inputs.

    Transposed, elements are the inputs, and sources the outputs that they are a tap of.
    """
    indices, weights, beyond = axis.taps()
    if not transposed:
        return np.where(beyond[:, None], -1, indices), weights
    weights = np.where(beyond[:, None], 0.0, weights)
    outputs = np.broadcast_to(np.arange(axis.n_outputs)[:, None], indices.shape).ravel()
    order = np.argsort(indices.ravel(), kind="stable")
    inputs = indices.ravel()[order]
    counts = np.bincount(inputs, minlength=axis.n_inputs)
    number = np.arange(len(inputs)) - np.repeat(np.cumsum(counts) - counts, counts)
    sources = np.zeros((axis.n_inputs, max(int(counts.max()), 1)), np.int64)
    shares = np.zeros(sources.shape)
    sources[inputs, number], shares[inputs, number] = outputs[order], weights.ravel()[order]
    return sources, shares


def sources(axis: Axis, transposed: bool) -> Array:
    """Return the table of sources."""
    return _tables(axis, transposed)[0]


def weights(axis: Axis, transposed: bool, dtype: str) -> Array:
    """Return the table of weights."""
    return _tables(axis, transposed)[1].astype(dtype)


class Resizing:
    """Resizing, or its transpose.

    Args:
        transposed: The function is the transpose.
    """

    def __init__(self, *, transposed: bool) -> None:
        self._transposed = transposed

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def forward(self, call: Call) -> Runner:
        """One launch."""
        return self._runner(call, 0, 1, 2, transposed=self._transposed)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """One launch, the other way; what was extrapolated gets and gives nothing."""
        return self._runner(call, 2, 3, 4, transposed=not self._transposed)

    def _runner(self, call: Call, source: int, target: int, n_arrays: int, *, transposed: bool) -> Runner:
        axes = self._axes(call)
        lengths = [_length(axis, transposed=transposed) for axis in axes]
        n = math.prod(lengths)
        if n == 0:
            return Program([], n_arrays)
        resized = [axis for axis in axes if isinstance(axis, Axis)]
        tables = [Constant(sources, (axis, transposed)) for axis in resized]
        tables += [Constant(weights, (axis, transposed, real_dtype(call.dtype))) for axis in resized]
        value = 0.0 if self._transposed or target > 1 else call.args["extrapolation_value"]
        arguments: list[Argument] = [np.int64(n), source, target, real(call.dtype, value)]
        arguments += [n_arrays + place for place in range(len(tables))]
        arguments += [np.int64(_tables(axis, transposed)[0].shape[1]) for axis in resized]
        arguments += [np.int64(_length(axis, transposed=not transposed)) for axis in axes]
        program = Program([flat(_code(call, axes), n, [*arguments, *length_arguments(lengths)])], n_arrays + len(tables))
        return with_constants(program, n_arrays, tables)

    def _axes(self, call: Call) -> list[Axis | int]:
        """Return the axes that are resized, and the lengths of the others between them."""
        (given,), made = call.inputs, call.outputs[0]
        assert given is not None
        small, large = (made.shape, given.shape) if self._transposed else (given.shape, made.shape)
        return _groups(small, _axes(call, small, large))


def _code(call: Call, axes: Sequence[Axis | int]) -> Code:
    """Return the kernel for some resized axes among others."""
    c_type = C_TYPES[call.dtype]
    parameters = ["const int64 n", f"const {c_type}* x", f"{c_type}* y", "const R extrapolated"]
    numbers = [number for number, axis in enumerate(axes) if isinstance(axis, Axis)]
    for kind in ("const int64* sources", "const R* weights", "const int64 taps"):
        parameters += [f"{kind}{number}" for number in numbers]
    parameters += [*[f"const int64 from{number}" for number in range(len(axes))], *length_parameters("n", len(axes))]
    body = f"  {_LOOP} {{\n    {unravelled('i', 'n', len(axes))}\n    {_sum(axes)}\n  }}"
    return generated("onnx_resize", parameters, body, real_type(call.dtype))


def _axes(call: Call, small: Shape, large: Shape) -> list[Axis | None]:
    """Return how each axis is resized; None where it is not."""
    args = dict[str, Any](call.args)
    crops = args["coordinate_transformation_mode"] == "tf_crop_and_resize"
    found: list[Axis | None] = []
    for axis, (n_inputs, n_outputs) in enumerate(zip(small, large, strict=True)):
        ratio = n_inputs / n_outputs if args["sizes"] else 1 / args["scales"][axis]
        if ratio == 1 and not crops:
            found.append(None)
            continue
        crop = (args["roi"][axis], args["roi"][len(small) + axis]) if crops else None
        found.append(
            Axis(
                n_inputs,
                n_outputs,
                ratio,
                crop,
                transformation=args["coordinate_transformation_mode"],
                mode=args["mode"],
                rounding=args["nearest_mode"],
                cubic=args["cubic_coeff_a"],
                exclude=bool(args["exclude_outside"]),
            )
        )
    return found


def _groups(small: Shape, axes: Sequence[Axis | None]) -> list[Axis | int]:
    """Return the axes, those that are resized as they are, and the lengths of the others, neighbours joined."""
    groups: list[Axis | int] = []
    for axis, length in zip(axes, small, strict=True):
        if axis is not None:
            groups.append(axis)
        elif groups and isinstance(groups[-1], int):
            groups[-1] *= length
        else:
            groups.append(length)
    return groups or [1]


def _length(axis: Axis | int, *, transposed: bool) -> int:
    """Return the length of an axis of the result."""
    return axis if isinstance(axis, int) else axis.n_inputs if transposed else axis.n_outputs


def _sum(axes: Sequence[Axis | int]) -> str:
    """Return the sum over the taps of all axes."""
    lines, place = ["R a = 0; bool beyond = false;"], "int64(0)"
    for number, axis in enumerate(axes):
        at = f"int64(i{number})"
        if isinstance(axis, Axis):
            tap = f"{at} * taps{number} + k{number}"
            lines.append(f"for (int64 k{number} = 0; k{number} < taps{number}; ++k{number}) {{")
            lines.append(f"  const R w{number} = weights{number}[{tap}]; const int64 p{number} = sources{number}[{tap}];")
            lines.append(f"  if (p{number} < 0) beyond = true;")
            lines.append(f"  if (p{number} < 0 || w{number} == 0) continue;")
            at = f"p{number}"
        place = f"({place} * from{number} + {at})"
    shares = " * ".join([f"w{number}" for number, axis in enumerate(axes) if isinstance(axis, Axis)] or ["R(1)"])
    lines.append(f"a += {shares} * R(load(x[{place}]));")
    lines += ["}" for axis in axes if isinstance(axis, Axis)]
    return "\n    ".join([*lines, "store(y[i], beyond ? extrapolated : a);"])


RESIZING: Final[Mapping[str, Kernel]] = {
    "ONNXResize": Resizing(transposed=False),
    "ONNXResizeBackward": Resizing(transposed=True),
}
