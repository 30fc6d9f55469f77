"""Elements and blocks by position: picked, put, and added up in the order of the indices."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner, Shape
from nn_ext_cuda.codegen.code import generated
from nn_ext_cuda.codegen.compose import refuse_sizes
from nn_ext_cuda.codegen.dtypes import C_TYPES, real_type, refuse_dtypes
from nn_ext_cuda.codegen.located import located
from nn_ext_cuda.codegen.ordering import Ordering
from nn_ext_cuda.device.faults import PARAMETERS, TELL, arguments_of, beyond_length
from nn_ext_cuda.kernels.indexing import NOTHING
from nn_ext_cuda.launch.program import Argument, Launch, flat

_LOOP: Final = "for (int64 i = blockIdx.x * int64(blockDim.x) + threadIdx.x; i < n; i += int64(gridDim.x) * blockDim.x)"


class Positioned:
    """A function of an array and of positions in it; gradients are those of the rules."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not known, and very large arrays."""
        return refuse_sizes(call.inputs) or refuse_sizes(call.outputs) or refuse_dtypes(call)

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None


class GatherNd(Positioned):
    """Blocks by their positions along the first axes; beyond the array there is NaN, or 0 in integers."""

    def forward(self, call: Call) -> Runner:
        """One launch."""
        x, indices = _present(call.inputs[0]), _present(call.inputs[1])
        lengths, width = _split(x.shape, indices)
        count = math.prod(indices.shape[1:])
        numbers = {"count": count, "width": width, **{f"d{axis}": length for axis, length in enumerate(lengths)}}
        statement = f"{_row('i0', len(lengths))} if (inside) y[i] = x[row * width + i1]; else spoil(y[i]);"
        fault = beyond_length(call.spec.api, "indices", *lengths)
        return located(call, "gather_nd", (count, width), statement, numbers, functions=NOTHING, fault=fault)


class ScatterNd(Positioned):
    """Blocks put to positions of zeros or of an array; of several at one position the last one remains, or all are added."""

    def forward(self, call: Call) -> Runner:
        """Return a launch for what is there, those that sort the positions, one that puts, and one that rewrites `out`."""
        data, indices, out = call.inputs
        y, given = call.outputs[0], _present(indices)
        lengths, width = _split(y.shape, given)
        ordering = Ordering(len(call.inputs) + len(call.outputs), call.dtype)
        ordering.launches.append(_copy(call.dtype, y.size, None if out is None else 2, 3))
        n = math.prod(given.shape[1:])
        if n * width and y.size and _present(data).size:
            rows, sources = (ordering.shared(n, "int64") for _ in range(2))
            statement = f"{_row('i', len(lengths))} rows[i] = inside ? row : -1; sources[i] = i;"
            numbers = {"count": n, **{f"d{axis}": length for axis, length in enumerate(lengths)}}
            fault = beyond_length(call.spec.api, "indices", *lengths)
            ordering.launches.append(_numbered("scatter_nd_rows", n, statement, numbers, (1, rows, sources), fault))
            ordering.put(rows, sources, 0, 3, n, width, add=bool(call.args["add"]))
        if out is not None:
            ordering.launches.append(_copy(call.dtype, y.size, 3, 2))
        return ordering.runner()


class ScatterAdd(Positioned):
    """A copy of x0, to which elements of x1 are added at places along an axis."""

    def forward(self, call: Call) -> Runner:
        """Return a launch for the copy, those that sort the places, and one that adds."""
        x0, indices, x1 = (_present(desc) for desc in call.inputs)
        axis, n = call.args["axis"], indices.size
        ordering = Ordering(len(call.inputs) + len(call.outputs), call.dtype)
        ordering.launches.append(_copy(call.dtype, x0.size, 0, 3))
        if n and x0.size:
            rows, sources = (ordering.shared(n, "int64") for _ in range(2))
            lines = ["int64 rest = i, row = 0, source = 0;"]
            numbers: dict[str, int] = {}
            lines.append("const int64 given = indices[i], place = given < 0 ? given + reach : given;")
            for k in reversed(range(len(indices.shape))):
                lines.append(f"const int64 c{k} = rest % d{k}; rest /= d{k};")
                lines.append(f"row += {'place' if k == axis else f'c{k}'} * t{k}; source += c{k} * s{k};")
                numbers |= {f"d{k}": indices.shape[k], f"t{k}": math.prod(x0.shape[k + 1 :])}
                numbers[f"s{k}"] = math.prod(x1.shape[k + 1 :])
            lines.append("const bool inside = place >= 0 && place < reach; sources[i] = source;")
            lines.append("rows[i] = inside ? row : -1; if (!inside) tell(fault, fault_number, given);")
            numbers["reach"] = x0.shape[axis]  # type: ignore[index]  # an int by the specification
            fault = beyond_length(call.spec.api, "indices", numbers["reach"])
            ordering.launches.append(_numbered("scatter_add_rows", n, " ".join(lines), numbers, (1, rows, sources), fault))
            ordering.put(rows, sources, 2, 3, n, 1, add=True)
        return ordering.runner()


def _present(desc: ArrayDesc | None) -> ArrayDesc:
    assert desc is not None
    return desc


def _split(shape: Shape, indices: ArrayDesc) -> tuple[Shape, int]:
    """Return the lengths of the axes that positions name, and the number of elements of a block."""
    n_axes = indices.shape[0]
    return shape[:n_axes], math.prod(shape[n_axes:])


def _row(place: str, n_axes: int) -> str:
    """Statements that make of the position `place` a number of a block, `row`, and whether it is `inside`."""
    lines = ["int64 row = 0; bool inside = true;"]
    for axis in range(n_axes):
        lines.append(f"const int64 g{axis} = indices[{axis} * count + {place}];")
        lines.append(f"const int64 r{axis} = g{axis} < 0 ? g{axis} + d{axis} : g{axis};")
        lines.append(f"const bool is_in{axis} = r{axis} >= 0 && r{axis} < d{axis}; inside = inside && is_in{axis};")
        lines.append(f"row = row * d{axis} + r{axis}; if (!is_in{axis}) tell(fault, fault_number, g{axis});")
    return " ".join(lines)


def _numbered(
    name: str, n: int, statement: str, numbers: Mapping[str, int], places: tuple[int, int, int], fault: str
) -> Launch:
    """Return the launch that computes `rows` and `sources` from `indices`, whose places these are."""
    parameters = ["const int64 n", "const int64* indices", "int64* rows", "int64* sources"]
    parameters += [*[f"const int64 {key}" for key in numbers], *PARAMETERS]
    code = generated(name, parameters, f"  {_LOOP} {{ {statement} }}", "float", TELL)
    return flat(code, n, [np.int64(n), *places, *map(np.int64, numbers.values()), *arguments_of(fault)])


def _copy(dtype: str, n: int, source: int | None, target: int) -> Launch:
    """Return the launch that copies an array, or zeros."""
    kind = C_TYPES[dtype]
    value = "if (from) to[i] = from[i]; else store(to[i], R(0));"
    parameters = ["const int64 n", f"const {kind}* from", f"{kind}* to"]
    code = generated("scatter_copy", parameters, f"  {_LOOP} {{ {value} }}", real_type(dtype))
    given: Argument = np.uint64(0) if source is None else source
    return flat(code, max(n, 1), [np.int64(n), given, target])


SCATTERING: Final[Mapping[str, Kernel]] = {
    "GatherNd": GatherNd(),
    "ScatterNd": ScatterNd(),
    "ScatterAdd": ScatterAdd(),
}
