"""The dtypes of values, as the graph computes them: which function reads what in which dtype."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

import nn_core as nn
from nn_core.ext import FunctionSpec, function_spec
from nn_core.function import Function
from nn_core.graph_rewriting import holds_values
from nn_ext_onnx.exporting.values import DOUBLE, FLOAT, INT

_KINDS: Final[dict[str, np.dtype[Any]]] = {"index": INT, "int32": np.dtype("int32")}
#: Functions that take numbers in the dtype that they have, and compute with them.
_COMPUTING: Final = frozenset({"BitShift", "Mod2", "QLinearConv", "QLinearMatMul", "QuantizeInteger", "Unique"})
#: Functions that read the shape of an array only.
_SHAPES: Final = frozenset({"EyeLike", "Shape", "Sink"})


def spec_of(function: Function) -> FunctionSpec:
    """Return the specification of a function."""
    spec = function_spec(function.name)
    return function.node.spec if spec is None else spec


def real_of(function: Function) -> np.dtype[Any]:
    """Return the floating-point type in which a function is written: float64 in a context of it, else float32."""
    return DOUBLE if np.dtype(function.context.dtype) == DOUBLE else FLOAT


def read_as(kind: str, dtype: np.dtype[Any], real: np.dtype[Any], needs_gradient: bool) -> np.dtype[Any]:
    """Return the dtype in which a function reads an input.

    Args:
        kind: of the input, as the specification has it.
        dtype: of what is given.
        real: the floating-point type of the function.
        needs_gradient: whether the input needs a gradient: whole numbers are read as floating-point numbers then.
    """
    if kind != "same":
        return _KINDS.get(kind, real)
    return real if needs_gradient and dtype.kind in "iub" else dtype


def made_as(kind: str, inputs: Sequence[np.dtype[Any] | None], real: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of a result, from those of the inputs that are taken as they are, None for the others."""
    if kind != "same":
        return _KINDS.get(kind, real)
    return next((dtype for dtype in inputs if dtype is not None), real)


def input_kinds(spec: FunctionSpec, dtypes: Sequence[np.dtype[Any] | None]) -> list[str]:
    """Return the kind of each input, of which these are the dtypes, None for one that is not given.

    What is to be exact is taken as it is where all of it are integers, and as floating-point numbers elsewhere.
    """
    declared = [entry.dtype for entry in spec.inputs]
    kinds = [declared[min(place, len(declared) - 1)] for place in range(len(dtypes))]
    exact = [dtype for kind, dtype in zip(kinds, dtypes, strict=True) if kind == "exact" and dtype is not None]
    meaning = "same" if all(dtype.kind in "iub" for dtype in exact) else "float"
    return [meaning if kind == "exact" else kind for kind in kinds]


class LeafTypes:
    """The dtypes in which leaves are written.

    Integers and booleans are written as they are, float32 too. Numbers of type float64 are written so where their digits
    reach an output or a function that computes with them; a function that reads them as float32 gets the same from float32.

    Args:
        order: the functions of the graph, each after those that compute its inputs.
        outputs: of the graph.
    """

    def __init__(self, order: Sequence[Function], outputs: Iterable[nn.Variable]) -> None:
        self._is_index: set[Any] = set()
        #: by key: whether a function of float64 reads the value, or only something that takes numbers as they are
        self._wide: dict[Any, bool] = {key_of(variable): False for variable in outputs}
        for function in reversed(order):
            self._note(function)

    def __call__(self, variable: Any) -> np.dtype[Any]:
        """Return the dtype in which a leaf is written."""
        key = key_of(variable)
        if key in self._is_index:
            return INT
        given = np.dtype(variable.data.dtype)
        if given.kind in "iub":
            return given
        has_numbers = holds_values(variable)
        return DOUBLE if self._wide.get(key, False) or (given == DOUBLE and has_numbers and key in self._wide) else FLOAT

    def _note(self, function: Function) -> None:
        node = function.node
        if node.python is not None:
            self._note_python(function)
            return
        spec, real = spec_of(function), real_of(function)
        wanted = [self._wide[key] for key in map(key_of, function.results) if key in self._wide]
        held = [None if variable is None else np.dtype(variable.storage.data.dtype) for variable in node.inputs]
        for place, (variable, kind) in enumerate(zip(node.inputs, input_kinds(spec, held), strict=True)):
            if variable is None:
                continue
            if kind == "index":
                self._is_index.add(key_of(variable))
            elif kind != "same":
                self._demand(variable, real == DOUBLE, real == DOUBLE)
            elif place == 0 and _moves(spec):
                self._demand(variable, bool(wanted), any(wanted))
            else:
                self._demand(variable, spec.name not in _SHAPES, False)

    def _note_python(self, function: Function) -> None:
        dtypes = getattr(function.node.python, "dtypes", ())
        for variable, dtype in zip(function.inputs, [one for one in dtypes if one is not None], strict=False):
            self._demand(variable, dtype == DOUBLE, dtype == DOUBLE)

    def _demand(self, variable: Any, is_read: bool, is_computed: bool) -> None:
        if is_read:
            key = key_of(variable)
            self._wide[key] = self._wide.get(key, False) or is_computed


def _moves(spec: FunctionSpec) -> bool:
    """Return whether the results of a function are numbers of its first input."""
    return spec.name not in _COMPUTING and all(entry.dtype == "same" for entry in spec.outputs)


def key_of(variable: Any) -> Any:
    """Return the key that all objects for one variable of a graph share."""
    function = variable.parent
    return (None, variable) if function is None else (function, function.results.index(variable))
