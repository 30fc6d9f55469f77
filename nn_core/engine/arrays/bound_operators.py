"""The classes to which `operators` and `indexing` bind the operators of Variables and NdArrays.

The stub next to this file declares them for type checkers; a test compares both.
"""

from nn_core.engine.arrays.interface import ArrayInterface


class VariableOperators(ArrayInterface):
    """The operators of a Variable, and its methods that compute."""

    __slots__ = ()


class NdArrayOperators(ArrayInterface):
    """The operators of an NdArray, and its methods that compute."""

    __slots__ = ()
