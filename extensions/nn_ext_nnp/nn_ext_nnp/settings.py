"""Settings and inputs of functions, between messages and nn_core."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import ArgumentError, FileFormatError, FunctionSpec, function_spec
from nn_ext_nnp.schema import functions

#: Settings of files that nn_core's functions do not have.
_NOT_OURS: Final = ("comm",)


def spec_of(name: str) -> FunctionSpec:
    """Return a function of files as nn_core knows it.

    Raises:
        FileFormatError: when it knows nothing.
    """
    spec = function_spec(name)
    if spec is None:
        raise FileFormatError(f"functions must be those of nn_core, got {name!r}")
    return spec


def read_settings(function: Any, batch_size: int) -> dict[str, Any]:
    """Return the settings of a Function message; an absent parameter field stands for the defaults.

    A first entry of -1 in a setting called `shape` becomes `batch_size`.
    """
    kind = functions()[function.type]
    if kind.field is None or not function.HasField(kind.field):
        return {}
    parameter = getattr(function, kind.field)
    follow = _with_defaults(function.type)
    found: dict[str, Any] = {}
    for name, code in kind.settings.items():
        if name in _NOT_OURS:
            continue
        value = _value_of(getattr(parameter, name), code)
        if isinstance(value, list) and not value and name in follow:
            continue  # not written: the default is none, or follows from the inputs
        if name == "shape" and value and value[0] == -1:
            value[0] = batch_size
        found[name] = value
    return found


def _with_defaults(kind: str) -> set[str]:
    """Return the names of the settings that are none by default, or follow from the inputs."""
    return {arg.name for arg in spec_of(kind).args if arg.default_rule or arg.default is None}


def _value_of(field: Any, code: str) -> Any:
    if code == "Shape":
        return list(field.dim)
    return [as_written(number, code) for number in field] if code.endswith("*") else as_written(field, code)


def write_settings(function: Any, settings: dict[str, Any]) -> None:
    """Put all settings into a Function message.

    Raises:
        ArgumentError: when the message has none of that name, or a value fits no field.
    """
    kind = functions().get(function.type)
    if kind is None:
        raise ArgumentError(f"save: functions must be those of NNabla 1.39, got {function.type!r}")
    unknown = set(settings) - set(kind.settings)
    if unknown:
        raise ArgumentError(f"save: settings of {function.type} must be those of NNabla 1.39, got {sorted(unknown)}")
    if kind.field is None or not kind.settings:
        return
    parameter = getattr(function, kind.field)
    parameter.SetInParent()
    for name, code in kind.settings.items():
        if name in settings:
            _write_one(parameter, name, code, settings[name])


def _write_one(parameter: Any, name: str, code: str, value: Any) -> None:
    if value is None:
        return
    if code == "Shape":
        target = getattr(parameter, name)
        target.SetInParent()
        target.dim.extend(int(v) for v in (value if isinstance(value, (list, tuple)) else [value]))
    elif code.endswith("*"):
        getattr(parameter, name).extend(value if isinstance(value, (list, tuple)) else [value])
    else:
        setattr(parameter, name, value)


def place_inputs(kind: str, inputs: Sequence[Any], settings: dict[str, Any]) -> list[Any]:
    """Return the inputs at their places in the specification, None where files leave out optional ones.

    Raises:
        FileFormatError: when there are more than the function has, or fewer than it needs.
    """
    spec = spec_of(kind)
    if spec.variadic:
        return list(inputs)
    names = [entry.name for entry in spec.inputs]
    left_out = _left_out(kind, inputs, settings)
    places = [name for name in names if name not in left_out]
    needed = sum(not entry.optional for entry in spec.inputs)
    if len(inputs) > len(places) or len(inputs) < needed:
        raise FileFormatError(f"{kind} must have from {needed} to {len(places)} inputs, got {len(inputs)}")
    given = dict(zip(places, inputs, strict=False))
    return [given.get(name) for name in names]


def _left_out(kind: str, inputs: Sequence[Any], settings: dict[str, Any]) -> set[str]:
    """Names of the optional inputs that the settings, the number or the shapes of the others rule out."""
    left_out = {name for name, flag in (("beta", "no_bias"), ("gamma", "no_scale")) if settings.get(flag)}
    if kind in ("RNN", "LSTM", "GRU") and settings.get("num_layers", 1) == 1:
        left_out.add("weight")
    if kind == "FusedConvolution" and len(inputs) in (6, 7) and inputs[2].ndim > 1:
        left_out.add("bias")
    if kind == "DeformableConvolution" and len(inputs) == 4:
        left_out.add("mask" if inputs[3].ndim == 1 else "bias")
    return left_out


def as_written(value: Any, code: str) -> Any:
    """Return a number of a message as its text has it: 0.9, and not the float32 that is nearest to it."""
    return float(str(np.float32(value))) if code.startswith("f") else value
