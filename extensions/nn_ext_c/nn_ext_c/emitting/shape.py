"""Functions that move elements, and those that make constants.

A function that only moves elements is run once on the numbers of its elements. What comes out says where each element
of the result comes from, and strides, tables or a copy are read off it.
"""

from typing import Final

import numpy as np

from nn_ext_c.emitting.registry import EMITTERS, Call, Emitter, NotExportableError, copied, emitter, reshaped, shown
from nn_ext_c.loops import number
from nn_ext_c.program import Value

#: Functions of one input that move its elements, with the number that is between them, if there is one.
MOVEMENTS: Final = {
    "Broadcast": None,
    "Flip": None,
    "MatrixDiag": "0.0f",
    "MatrixDiagPart": None,
    "Pad": "constant_value",
    "Shift": "0.0f",
    "Slice": None,
    "Split": None,
    "Tile": None,
    "Transpose": None,
    "Trilu": "0.0f",
    "Unpooling": None,
}


def movement(border: str | None) -> Emitter:
    """Return the emitter of a function of `MOVEMENTS`."""

    def emit(call: Call) -> list[Value]:
        return moved(call, border)

    return emit


def moved(call: Call, border: str | None = None) -> list[Value]:
    """Return the elements of x where the function puts them."""
    x, settings = call.x, call.args
    text = border or "0.0f"
    if border == "constant_value":
        text = number(call.args[border])
        settings = {**settings, border: 0.0}
    places = x.places().reshape(-1)
    values = []
    for found in call.moved(settings):
        shows = np.where(found == 0, -1, places[found - 1])
        values.append(shown(call.program, call.name, x.buffer, shows, text))
    return values


EMITTERS.update({name: movement(border) for name, border in MOVEMENTS.items()})


@emitter("PadBackward")
def _pad_backward(call: Call) -> list[Value]:
    if call.args["mode"] != "constant":
        raise NotExportableError("mode must be 'constant'")
    return moved(call)


@emitter("Reshape")
def _reshape(call: Call) -> Value:
    return reshaped(call.program, call.name, call.x, call.output_shape)


@emitter("Concatenate")
def _concatenate(call: Call) -> Value:
    axis = call.args["axis"] % len(call.shape)
    y = call.program.new(call.output_shape, call.x.buffer.dtype)
    start = 0
    for index in range(len(call.inputs)):
        x = call[index]
        copied(call.program, call.name, x, y.at(axis, start, x.shape[axis]))
        start += x.shape[axis]
    return y


@emitter("Stack")
def _stack(call: Call) -> Value:
    axis = call.args["axis"] % len(call.output_shape)
    y = call.program.new(call.output_shape, call.x.buffer.dtype)
    for index in range(len(call.inputs)):
        copied(call.program, call.name, call[index], y.pick(axis, index))
    return y


@emitter("BroadcastTo")
def _broadcast_to(call: Call) -> Value:
    """Return the second input in the shape of the first, from an axis on, or at its end."""
    y, n = call[1], len(call.shape)
    first = n - len(y.shape) if call.args["axis"] < 0 else call.args["axis"]
    return reshaped(call.program, call.name, y, y.shape + (1,) * (n - first - len(y.shape))).broadcast(call.shape)


@emitter("Shape", "EyeLike")
def _of_shape(call: Call) -> Value:
    """Return a constant, because the shape is one."""
    (values,) = call.moved(call.args)
    return call.program.constant(values)
