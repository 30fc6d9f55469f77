"""Where `nn_core.operators` and `nn_core.indexing` bind what Variables and NdArrays do with functions.

The stub beside this file declares it for type checkers; a test compares both.
"""

from nn_core.array_interface import ArrayInterface


class VariableOperators(ArrayInterface):
    """The operators of a Variable, and its methods that compute."""

    __slots__ = ()


class NdArrayOperators(ArrayInterface):
    """The operators of an NdArray, and its methods that compute."""

    __slots__ = ()
