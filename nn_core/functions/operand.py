"""The type of the inputs and results of functions."""

from typing import TypeVar

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.variable import Variable

#: Variables give Variables, NdArrays give NdArrays.
Operand = TypeVar("Operand", bound=Variable | NdArray)
