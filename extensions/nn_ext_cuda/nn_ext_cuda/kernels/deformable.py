"""Deformable convolutions: columns read at displaced places, and matrix products; see ``kernels/cuda/deformable.cu``."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nn_core.ext import ArrayDesc, Call, Kernel, Refusal, Runner
from nn_ext_cuda.codegen.code import Code, part
from nn_ext_cuda.codegen.compose import Composition, refuse_sizes
from nn_ext_cuda.codegen.describe import forward_arrays, forward_names
from nn_ext_cuda.codegen.dtypes import C_TYPES, ITEM_BYTES, real_type, refuse_dtypes
from nn_ext_cuda.gemm.blas import Matrix
from nn_ext_cuda.gemm.precision import is_tf32_allowed
from nn_ext_cuda.gemm.product import Product
from nn_ext_cuda.kernels.convolution_products import COLUMN_BYTES
from nn_ext_cuda.launch.program import Argument, Chain, Program, flat
from nn_ext_cuda.memory.workspace import with_workspace

_X, _WEIGHT, _OFFSET, _MASK, _BIAS, _Y = range(6)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of a call; lengths are those of rows and columns."""

    samples: int
    channels: int
    filters: int
    group: int
    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    offsets: tuple[int, ...]
    last: bool

    @property
    def places(self) -> int:
        """Places of a filter."""
        return math.prod(self.counts)

    @property
    def weights(self) -> int:
        """Elements of a filter in all channels of its group."""
        return self.channels // self.group * math.prod(self.sizes)

    @property
    def column(self) -> int:
        """Numbers that the filters read in a sample."""
        return self.group * self.weights * self.places


class DeformableConvolution:
    """y = weight * x + bias, x read at displaced places; gradients are those of the rule, which calls it again."""

    def refuse(self, call: Call) -> Refusal | None:
        """Refuse dtypes that are not computed in, arrays that are very large or empty, and samples with too many columns."""
        arrays = [desc for desc in (*call.inputs, *call.outputs) if desc is not None]
        if not all(desc.size for desc in arrays):
            return Refusal("takes arrays of at least one element")
        refusal = refuse_sizes(arrays) or refuse_dtypes(call)
        needed = _sizes(call).column
        return refusal or refuse_sizes([ArrayDesc((needed,), call.dtype)])

    def forward(self, call: Call) -> Runner:
        """Return the bias; then columns and a product, for some samples at a time if the columns of all take much memory."""
        sizes, arrays = _sizes(call), forward_arrays(call)
        runners: list[Runner] = []
        if call.inputs[_BIAS] is not None:
            y = call.outputs[0].shape
            channel = len(y) - (1 if sizes.last else 3)
            bias = tuple(length if axis == channel else 1 for axis, length in enumerate(y))
            composition = Composition(call, arrays, forward_names(call), y, {"bias": bias})
            composition.compute("deformable_convolution_bias", {"y": "bias"})
            runners.append(composition.program())
        at_once = min(max(COLUMN_BYTES // (sizes.column * ITEM_BYTES[call.dtype]), 1), sizes.samples)
        for first in range(0, sizes.samples, at_once):
            count = min(at_once, sizes.samples - first)
            runners.append(self._columns(call, sizes, first, count))
            runners += self._products(call, sizes, first, count)
        n_bytes = at_once * sizes.column * ITEM_BYTES[call.dtype]
        return with_workspace(Chain(runners), len(arrays), [n_bytes])

    def backward(self, call: Call, wanted: Sequence[bool]) -> Runner | None:
        """None: the gradient rule serves."""
        return None

    @staticmethod
    def _columns(call: Call, sizes: _Sizes, first: int, count: int) -> Program:
        """Return the launch for the columns of `count` samples, which come after the arrays of the call."""
        n = count * sizes.column
        args = dict[str, Any](call.args)
        pairs = sizes.lengths, sizes.sizes, sizes.counts, args["pad"], args["stride"], args["dilation"], sizes.offsets
        numbers = [n, first, sizes.group, args["deformable_group"], sizes.channels]
        arguments: list[Argument] = [np.int64(number) for number in [*numbers, *itertools.chain(*pairs)]]
        mask: Argument = np.uint64(0) if call.inputs[_MASK] is None else _MASK
        header = f"#define CHANNEL_LAST {int(sizes.last)}\ntypedef {C_TYPES[call.dtype]} T;\n"
        code = Code("deformed_columns", header + part("deformable.cu"), real_type(call.dtype))
        return Program([flat(code, n, [*arguments, _X, _OFFSET, mask, _Y + 1])], _Y + 2)

    @staticmethod
    def _products(call: Call, sizes: _Sizes, first: int, count: int) -> list[Runner]:
        """Return the products of filters and columns: all samples for each group, or all groups for each sample if these are
        more.
        """
        by_group = sizes.group <= count
        places, weights, members = sizes.places, sizes.weights, sizes.filters // sizes.group
        found: list[Runner] = []
        for number in range(sizes.group if by_group else count):
            group, sample = (number, 0) if by_group else (0, number)
            column_step = sizes.column if by_group else weights * places
            filters = Matrix(
                _WEIGHT, weights, 0 if by_group else members * weights, start=group * members * weights, transposed=sizes.last
            )
            start = sample * sizes.column + group * weights * places
            columns = Matrix(_Y + 1, places, column_step, start=start, transposed=sizes.last)
            whole = sizes.filters * places
            inner = members * (1 if sizes.last else places)
            lead = sizes.filters if sizes.last else places
            y = Matrix(_Y, lead, whole if by_group else inner, start=(first + sample) * whole + group * inner)
            n = (members, places, weights)
            operands = (filters, columns)
            if sizes.last:
                n, operands = (places, members, weights), (columns, filters)
            accumulate = call.inputs[_BIAS] is not None
            times = count if by_group else sizes.group
            found.append(Product(*operands, y, n, call.dtype, times, is_tf32_allowed(), accumulate))
        return found


def _sizes(call: Call) -> _Sizes:
    x, weight, offset = call.inputs[:3]
    assert x is not None and weight is not None and offset is not None
    base_axis, last, group = call.args["base_axis"], bool(call.args["channel_last"]), call.args["group"]
    assert isinstance(base_axis, int) and isinstance(group, int)
    own, filters, made, moves = (
        shape[:-1] if last else shape[1:]
        for shape in (x.shape[base_axis:], weight.shape[1:], call.outputs[0].shape[base_axis:], offset.shape[base_axis:])
    )
    channels = x.shape[-1 if last else base_axis]
    return _Sizes(math.prod(x.shape[:base_axis]), channels, weight.shape[0], group, own, filters, made, moves, last)


DEFORMABLE: Final[Mapping[str, Kernel]] = {"DeformableConvolution": DeformableConvolution()}
