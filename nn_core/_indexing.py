"""NNabla's module of subscripts: kinds of keys, and what ``x[key]`` computes; see `nn_core.engine.arrays.indexing`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nn_core.engine.arrays.indexing import getitem as advanced_getitem
from nn_core.engine.arrays.indexing import getitem as basic_getitem
from nn_core.engine.arrays.indexing import setitem as advanced_setitem
from nn_core.engine.arrays.indexing import setitem as basic_setitem
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.functions.shape import broadcast as broadcast
from nn_core.variable import Variable

__all__ = [
    "advanced_getitem",
    "advanced_setitem",
    "basic_getitem",
    "basic_setitem",
    "broadcast",
    "is_nnabla_boolean_ndarray",
    "is_nnabla_boolean_variable",
    "is_numpy_boolean_ndarray",
    "is_python_boolean_sequence",
]


def is_nnabla_boolean_ndarray(idx: Any) -> bool:
    """Tell whether `idx` is an NdArray of booleans."""
    return isinstance(idx, NdArray) and idx.dtype == np.dtype(bool)


def is_nnabla_boolean_variable(idx: Any) -> bool:
    """Tell whether `idx` is a Variable of booleans."""
    return isinstance(idx, Variable) and is_nnabla_boolean_ndarray(idx.data)


def is_numpy_boolean_ndarray(idx: Any) -> bool:
    """Tell whether `idx` is a NumPy array of booleans."""
    return isinstance(idx, np.ndarray) and idx.dtype == np.dtype(bool)


def is_python_boolean_sequence(idx: Any) -> bool:
    """Tell whether `idx` is a list or tuple of one boolean or more, and of nothing else."""
    return isinstance(idx, Sequence) and len(idx) > 0 and all(isinstance(part, bool) for part in idx)
