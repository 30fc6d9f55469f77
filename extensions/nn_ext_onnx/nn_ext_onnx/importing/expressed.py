"""Functions of nn_core in the place of those on the host: files of other formats hold whole numbers as float32.

float32 has all whole numbers up to 2^24. Where places in an array may be larger, there is no such form.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.folding import Evaluator
from nn_ext_onnx.importing.host import FlatPlaces, HostFunction

_LARGEST: Final = 2**24

#: Operators of ONNX on whole numbers or booleans that have the same results for floating-point numbers.
_ALIKE: Final[dict[str, Callable[..., nn.Variable]]] = {
    "Abs": F.abs,
    "Add": F.add2,
    "And": F.logical_and,
    "Equal": F.equal,
    "Greater": F.greater,
    "GreaterOrEqual": F.greater_equal,
    "Less": F.less,
    "LessOrEqual": F.less_equal,
    "Max": lambda *values: reduce(F.maximum2, values),
    "Min": lambda *values: reduce(F.minimum2, values),
    "Mul": F.mul2,
    "Neg": lambda x: x * -1.0,
    "Not": F.logical_not,
    "Or": F.logical_or,
    "Sub": F.sub2,
    "Xor": F.logical_xor,
}


def expressed(function: HostFunction, inputs: Sequence[nn.Variable]) -> list[nn.Variable] | None:
    """Return the outputs of a function on the host by functions of nn_core; None where these cannot express it."""
    compute: Any = function.compute
    if isinstance(compute, FlatPlaces):
        return _places(compute, inputs[0])
    is_plain = isinstance(compute, Evaluator) and compute.copy.domain in ("", "ai.onnx")
    alike = _ALIKE.get(compute.copy.op_type) if is_plain else None
    if alike is None or any(dtype is None or dtype.kind not in "iub" for dtype in function.dtypes):
        return None
    return [alike(*inputs)]


def _places(flat: FlatPlaces, indices: nn.Variable) -> list[nn.Variable] | None:
    last = (np.atleast_1d(flat.lengths) - 1) * np.atleast_1d(flat.strides)
    if int(last.sum()) + int(np.max(flat.offset, initial=0)) >= _LARGEST:
        return None
    lengths, strides = (_constant(values, indices.ndim) for values in (flat.lengths, flat.strides))
    places = (indices + F.less_scalar(indices, 0.0) * lengths) * strides
    total = F.sum(places, axis=-1) if flat.is_summed else places
    return [F.reshape(total + _constant(flat.offset, total.ndim), (-1,))]


def _constant(values: Any, ndim: int) -> nn.Variable:
    array = np.asarray(values, np.float32)
    return nn.Variable.from_numpy_array(array.reshape((*(1,) * (ndim - array.ndim), *array.shape)))
