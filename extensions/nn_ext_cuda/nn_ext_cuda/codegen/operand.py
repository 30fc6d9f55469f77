"""An array of a generated kernel: its name in expressions, its place among the arrays, what it holds."""

import re
from dataclasses import dataclass

from nn_core.ext import Shape
from nn_ext_cuda.codegen.dtypes import C_TYPES


@dataclass(frozen=True, slots=True)
class Operand:
    """An array of a generated kernel; `shape` has the rank of what it is broadcast to."""

    name: str
    place: int
    dtype: str
    shape: Shape

    @property
    def c_type(self) -> str:
        """Its C type."""
        return C_TYPES[self.dtype]


def uses(expression: str, name: str) -> bool:
    """Return whether `expression` names `name`."""
    return re.search(rf"\b{name}\b", expression) is not None
