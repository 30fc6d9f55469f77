"""The names that lines of programs use, and the head that makes a printed script run."""

from typing import Any

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.graph.apply import operator
from nn_core.ext_utils import get_extension_context
from nn_core.settings import without

HEAD = """\
from contextlib import ExitStack
from math import inf, nan

import numpy as np

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.engine.arrays.casting import dtype_of
from nn_core.ext_utils import get_extension_context
from nn_core.engine.graph.apply import operator
from nn_core.settings import without

stack = ExitStack()
"""


def fresh_namespace() -> dict[str, Any]:
    """Return the names at the start of a program."""
    return {
        "np": np,
        "nn": nn,
        "F": F,
        "PF": PF,
        "S": S,
        "get_extension_context": get_extension_context,
        "operator": operator,
        "without": without,
        "inf": float("inf"),
        "nan": float("nan"),
    }
