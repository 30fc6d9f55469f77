"""Weights of other frameworks: tensors of a file under the names and in the layouts of nn_core's layers.

A `Layout` says how a framework names and stores the parameters of each kind of layer; the rest is the same for all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.errors import ArgumentError, NNCoreError, ShapeError
from nn_core.files import Entry, PathOrFile, extension_of, naming_file, read_entries
from nn_core.io.parameters import LoadReport
from nn_core.typing import Shape
from nn_core.variable import Variable

Values = np.ndarray[Any, Any]
#: Puts the tensors of a recurrent layer together: reads tensors by their names in the layer, for a key and a shape.
Recurrent = Callable[[Callable[[str], Values], str, Shape], Values]


@dataclass(frozen=True, slots=True)
class Layout:
    """How a framework names and stores parameters.

    Attributes:
        names: For each key of nn_core's layers the endings that its tensor may have, behind the name of the layer.
        converted: Brings values of a tensor into our order of axes: gets kind of layer, key, values, shape of the parameter.
        recurrent: The same for recurrent layers, by kind.
        separator: Between the name of a layer and that of a tensor in it.
        ignored: Endings of tensors without a counterpart.
        cells: By kind of a recurrent layer, the name of the cell in it that may have the tensors.
        cell_endings: What may follow the names of these tensors.
    """

    names: Mapping[str, tuple[str, ...]]
    converted: Callable[[str, str, Values, Shape], Values]
    recurrent: Mapping[str, Recurrent]
    separator: str
    ignored: tuple[str, ...] = ()
    cells: Mapping[str, str] = field(default_factory=dict)
    cell_endings: tuple[str, ...] = ("",)


@dataclass(slots=True)
class Conversion:
    """Values for parameters, as far as they were found.

    Attributes:
        function: For messages.
        tensors: What the file has.
        layout: Of the framework that wrote it.
        values: By name of the parameter.
        used: Names of the tensors that were read.
    """

    function: str
    tensors: Mapping[str, Entry]
    layout: Layout
    values: dict[str, Values] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def take(self, name: str, shape: Shape, layer: str) -> None:
        """Find the values of the parameter called `name` in the tensors of `layer`."""
        kind, key = _kind_and_key(name)
        if kind in self.layout.recurrent:
            self._put(name, shape, self._recurrent(kind, key, name, shape, layer), layer)
        else:
            tensor = self._first(name, [f"{layer}{ending}" for ending in self.layout.names.get(key, ("?",))])
            self._put(name, shape, self.layout.converted(kind, key, self._values(tensor), shape), tensor)

    def take_alone(self, name: str, shape: Shape, tensor: str) -> None:
        """Find the values of a parameter that is no part of a layer."""
        self._put(name, shape, self._values(self._first(name, [tensor])), tensor)

    def _put(self, name: str, shape: Shape, values: Values, source: str) -> None:
        if values.shape != shape and _long(values.shape) == _long(shape):
            values = values.reshape(shape)  # (C,) is (1, C, 1, 1) here; (C, 1, 3, 3) is (C, 3, 3) in depthwise kernels
        if values.shape != shape:
            raise ShapeError(f"{self.function}: {source!r} must fit {name!r} of shape {shape}, got {values.shape}")
        self.values[name] = values

    def _recurrent(self, kind: str, key: str, name: str, shape: Shape, layer: str) -> Values:
        scopes = [f"{layer}{self.layout.separator}"]
        if kind in self.layout.cells:
            scopes.append(f"{scopes[0]}{self.layout.cells[kind]}{self.layout.separator}")

        def read(tensor: str) -> Values:
            names = [f"{scope}{tensor}{end}" for scope in scopes for end in self.layout.cell_endings]
            return self._values(self._first(name, names))

        try:
            return self.layout.recurrent[kind](read, key, shape)
        except NNCoreError:
            raise
        except ValueError as error:  # of NumPy: the gates or the lengths are others
            raise ShapeError(f"{self.function}: {layer!r} must fit {name!r} of shape {shape}, got {error}") from error

    def _first(self, name: str, candidates: list[str]) -> str:
        for tensor in candidates:
            if tensor in self.tensors:
                return tensor
        raise ArgumentError(f"{self.function}: the file must have {candidates[0]!r} for the parameter {name!r}, got none")

    def _values(self, tensor: str) -> Values:
        self.used.add(tensor)
        return np.asarray(self.tensors[tensor].values)


def converted(
    function: str, tensors: Mapping[str, Entry], layers: Mapping[str, str] | None, own: Mapping[str, Variable], layout: Layout
) -> Conversion:
    """Return the values that `own` parameters get from the tensors of a file; nothing is changed.

    Args:
        function: For messages.
        tensors: By name.
        layers: For each layer of the file its scope here, or the name of a single parameter; None: the same names, see
            `foreign_name`.
        own: The parameters.
        layout: Of the framework.
    """
    conversion = Conversion(function, tensors, layout)
    for name, parameter in own.items() if layers is None else ():
        conversion.take(name, parameter.shape, foreign_name(name, layout.separator))
    for layer, scope in (layers or {}).items():
        if scope in own:
            conversion.take_alone(scope, own[scope].shape, layer)
            continue
        for name in _names_in(function, scope, own):
            conversion.take(name, own[name].shape, layer)
    return conversion


def foreign_name(name: str, separator: str) -> str:
    """Return the name of the layer of a parameter where the same names are used: without marks of modules and kinds of
    layers.
    """
    scopes = name.split("/")[: -3 if _kind_and_key(name)[0] == "lstm_cell" else -2]
    return separator.join(scope.removeprefix("@") for scope in scopes)


def load_foreign(
    function: str,
    path: PathOrFile,
    layers: Mapping[str, str] | None,
    parameters: ParameterSource | None,
    layout: Layout,
) -> LoadReport:
    """Let parameters take over the tensors of a file of another framework: all of them or, after an error, none."""
    with naming_file(path):
        is_path = not hasattr(path, "read")
        tensors = read_entries(path, extension_of(function, path, None if is_path else ".safetensors"))
        own = parameters_of(function, parameters, argument="parameters")
        conversion = converted(function, tensors, layers, own, layout)
        for name, array in conversion.values.items():
            own[name].d = array
    missing = tuple(name for name in own if name not in conversion.values)
    unexpected = tuple(name for name in tensors if name not in conversion.used and not name.endswith(layout.ignored))
    return LoadReport(loaded=tuple(conversion.values), missing=missing, unexpected=unexpected)


def _kind_and_key(name: str) -> tuple[str, str]:
    """Return the kind of a layer and the name of the parameter in it; an LSTM cell is an affine layer inside ``lstm``."""
    *_, outer, kind, key = ["", "", *name.split("/")]
    return ("lstm_cell" if (outer, kind) == ("lstm", "affine") else kind), key


def _names_in(function: str, scope: str, own: Mapping[str, Variable]) -> list[str]:
    names = [name for name in own if name.startswith(f"{scope}/")]
    if not names:
        known = ", ".join(sorted({name.rpartition("/")[0] for name in own})) or "no parameters at all"
        raise ArgumentError(f"{function}: layers must name scopes with parameters, got {scope!r} among {known}")
    return names


def _long(shape: Shape) -> Shape:
    return tuple(length for length in shape if length != 1)
