"""Samples of functions that arrange elements, and of those that make arrays."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import integers, normal, values
from nn_core.testing.samples.registry import Settings, constant, convention, error, sample

convention("the gradient is that of the destination, as if nothing had been assigned", "Assign")
constant("the result is the shape of the input", "Shape")
constant("the result depends on the shape of the input alone", "EyeLike")
constant("the result is a number that stands for all inputs", "Sink")

# Joining and cutting ------------------------------------------------------------------------------------------------

sample("Concatenate", "last_axis", normal(2, 3), normal(2, 1), normal(2, 4))
sample("Concatenate", "first_axis", normal(2, 3), normal(1, 3), axis=0)
sample("Concatenate", "channels", normal(2, 3, 4, 5), normal(2, 2, 4, 5), axis=1)
sample("Concatenate", "one", normal(2, 3))
sample("Concatenate", "empty_part", normal(2, 3), normal(2, 0), axis=1)
error("Concatenate", "shapes", ShapeError, "inputs must have equal shapes except along axis", normal(2, 3), normal(3, 3))
error("Concatenate", "scalars", ArgumentError, "axis must be in", normal(), normal())

sample("Split", "first_axis", normal(3, 4))
sample("Split", "last_axis", normal(2, 3), axis=-1)
sample("Split", "integers", integers(2, 3, high=9), axis=1)
sample("Split", "one", normal(1, 4))
error("Split", "empty", ShapeError, "x must have a length of at least 1 along axis", normal(0, 3))

sample("Stack", "first_axis", normal(2, 3), normal(2, 3))
sample("Stack", "last_axis", normal(2, 3), normal(2, 3), normal(2, 3), axis=-1)
sample("Stack", "scalars", normal(), normal())
sample("Stack", "one", normal(2, 3), axis=1)
sample("Stack", "empty", normal(0, 3), normal(0, 3), axis=1)
error("Stack", "shapes", ShapeError, "inputs must have equal shapes", normal(2, 3), normal(2, 4))
error("Stack", "axis", ArgumentError, "axis must be in", normal(2), normal(2), axis=3)

sample("Slice", "plain", normal(5, 6), start=(1, 2), stop=(4, 5), step=(1, 1))
sample("Slice", "steps", normal(7, 8), start=(0, 1), stop=(7, 8), step=(2, 3))
sample("Slice", "backwards", normal(5, 6), start=(4, 5), stop=(0, 1), step=(-1, -2))
sample("Slice", "negative_places", normal(5, 6), start=(-3, -4), stop=(-1, -1), step=(1, 1))
sample("Slice", "last_axes", normal(2, 5, 6), start=(1,), stop=(4,), step=(2,))
sample("Slice", "integers", integers(5, 6, high=9), start=(1, 2), stop=(4, 5), step=(1, 1))
sample("Slice", "image", normal(2, 3, 4, 5), start=(0, 1, 1, 0), stop=(2, 3, 4, 4), step=(1, 1, 1, 2))
sample("Slice", "nothing", normal(5, 6), start=(3, 0), stop=(3, 6), step=(1, 1))
sample("Slice", "scalar", normal())
error("Slice", "step", ArgumentError, "step must not be zero", normal(5), start=(0,), stop=(5,), step=(0,))
error("Slice", "axes", ArgumentError, "must have at most one entry for each of the 1 axes", normal(5), start=(0, 0))

_PADDING: dict[str, Settings] = {"constant": {"constant_value": 1.5}, "reflect": {}, "repeat": {}}
for _mode, _args in _PADDING.items():
    sample("Pad", _mode, normal(4, 5), pad_width=(1, 2, 3, 0), mode=_mode, **_args)
    sample("Pad", f"{_mode}_image", normal(2, 3, 4, 5), pad_width=(1, 1, 2, 2), mode=_mode)
    sample("PadBackward", _mode, normal(7, 8), pad_width=(1, 2, 3, 0), mode=_mode)
    sample("PadBackward", f"{_mode}_image", normal(2, 3, 6, 9), pad_width=(1, 1, 2, 2), mode=_mode)
sample("Pad", "nothing", normal(3), pad_width=(0, 0))
sample("Pad", "empty", normal(0, 3), pad_width=(1, 1))
error("Pad", "odd", ArgumentError, "pad_width must have an even number of entries", normal(3), pad_width=(1,))
error("Pad", "negative", ArgumentError, "pad_width must not be negative", normal(3), pad_width=(-1, 1))
error("Pad", "mode", ArgumentError, "mode must be one of", normal(3), pad_width=(1, 1), mode="mirror")
error("PadBackward", "odd", ArgumentError, "pad_width must have an even number of entries", normal(3), pad_width=(1,))

# Order of axes and elements -----------------------------------------------------------------------------------------

sample("Reshape", "matrix", normal(2, 6), shape=(3, 4))
sample("Reshape", "inferred", normal(2, 3, 4), shape=(4, -1))
sample("Reshape", "copied", normal(2, 6), shape=(12,), inplace=False)
sample("Reshape", "scalar", normal(1, 1), shape=())
sample("Reshape", "integers", integers(2, 6, high=9), shape=(3, 4))
sample("Reshape", "empty", normal(0, 3), shape=(3, 0))
error("Reshape", "size", ShapeError, "must", normal(2, 3), shape=(4, 2))
error("Reshape", "two", ArgumentError, "shape must have at most one length of -1", normal(4), shape=(-1, -1))

sample("Transpose", "matrix", normal(3, 4), axes=(1, 0))
sample("Transpose", "cycle", normal(2, 3, 4), axes=(2, 0, 1))
sample("Transpose", "same", normal(2, 3), axes=(0, 1))
sample("Transpose", "image", normal(2, 3, 4, 5), axes=(0, 2, 3, 1))
sample("Transpose", "negative", normal(2, 3, 4), axes=(-1, 0, 1))
sample("Transpose", "integers", integers(2, 3, high=9), axes=(1, 0))
sample("Transpose", "wide", normal(67, 35), axes=(1, 0))
sample("Transpose", "empty", normal(0, 3), axes=(1, 0))
error("Transpose", "axes", ArgumentError, "axes must name each of the 2 axes of x once", normal(2, 3), axes=(0,))

sample("Broadcast", "row", normal(1, 4), shape=(3, 4))
sample("Broadcast", "new_axes", normal(4), shape=(2, 3, 4))
sample("Broadcast", "middle", normal(2, 1, 3), shape=(2, 4, 3))
sample("Broadcast", "same", normal(2, 3), shape=(2, 3))
sample("Broadcast", "scalar", normal(), shape=(2, 3))
sample("Broadcast", "integers", integers(1, 4, high=9), shape=(3, 4))
sample("Broadcast", "empty", normal(1, 3), shape=(0, 3))
error("Broadcast", "lengths", ShapeError, "each length of x must be 1 or that of shape", normal(2, 3), shape=(3, 3))

sample("BroadcastTo", "first", normal(2, 3, 4), normal(2), axis=0)
sample("BroadcastTo", "middle", normal(2, 3, 4), normal(3), axis=1)
sample("BroadcastTo", "last", normal(2, 3, 4), normal(3, 4))
sample("BroadcastTo", "empty", normal(0, 3), normal(3), axis=1)
error("BroadcastTo", "shape", ShapeError, "y must have the shape of", normal(2, 3, 4), normal(2), axis=1)

sample("Tile", "matrix", normal(2, 3), reps=(2, 3))
sample("Tile", "new_axes", normal(2), reps=(3, 2))
sample("Tile", "last", normal(2, 3), reps=(2,))
sample("Tile", "integers", integers(2, 3, high=9), reps=(1, 2))
sample("Tile", "empty", normal(0, 3), reps=(2, 2))
error("Tile", "reps", ArgumentError, "reps must be at least 1", normal(2), reps=(0,))

sample("Flip", "last", normal(3, 4))
sample("Flip", "both", normal(3, 4), axes=(0, 1))
sample("Flip", "first", normal(2, 3, 4), axes=(0,))
sample("Flip", "integers", integers(2, 3, high=9), axes=(1,))
sample("Flip", "empty", normal(0, 3))
error("Flip", "axes", ArgumentError, "axes must be in", normal(2, 3), axes=(2,))

for _mode in ("nearest", "reflect"):
    sample("Shift", _mode, normal(4, 5), shifts=(1, -2), border_mode=_mode)
    sample("Shift", f"{_mode}_last", normal(2, 3, 6), shifts=(3,), border_mode=_mode)
    sample("ShiftBackward", _mode, normal(4, 5), shifts=(1, -2), border_mode=_mode)
sample("Shift", "nothing", normal(3, 4))
sample("Shift", "far", normal(4), shifts=(9,))
sample("ShiftBackward", "far", normal(4), shifts=(-9,))
error("Shift", "axes", ArgumentError, "shifts must have at most one entry", normal(3), shifts=(1, 1))
error("Shift", "mode", ArgumentError, "border_mode must be one of", normal(3), shifts=(1,), border_mode="wrap")

# Diagonals, triangles and grids -------------------------------------------------------------------------------------

sample("MatrixDiag", "vector", normal(4))
sample("MatrixDiag", "batch", normal(2, 3))
sample("MatrixDiag", "empty", normal(0, 3))
error("MatrixDiag", "scalar", ShapeError, "x must have at least 1 axes", normal())
sample("MatrixDiagPart", "matrix", normal(4, 4))
sample("MatrixDiagPart", "batch", normal(2, 3, 3))
sample("MatrixDiagPart", "empty", normal(0, 3, 3))
error("MatrixDiagPart", "square", ShapeError, "the last two axes of x must have equal lengths", normal(2, 3))
for _upper in (True, False):
    for _k in (-1, 0, 2):
        sample("Trilu", f"{'upper' if _upper else 'lower'}_{_k}", normal(2, 4, 5), k=_k, upper=_upper)
sample("Trilu", "empty", normal(0, 3, 3))
error("Trilu", "vector", ShapeError, "x must have at least 2 axes", normal(3))

sample("Meshgrid", "two", normal(3), normal(4))
sample("Meshgrid", "rows_first", normal(3), normal(4), ij_indexing=True)
sample("Meshgrid", "three", normal(2), normal(3), normal(4))
sample("Meshgrid", "one", normal(3))
error("Meshgrid", "axes", ShapeError, "inputs must have one axis", normal(2, 2), normal(3))

# Copies and marks ---------------------------------------------------------------------------------------------------

for _name in ("Identity", "Unlink"):
    sample(_name, "matrix", normal(3, 4))
    sample(_name, "integers", integers(3, 4, high=9))
    sample(_name, "scalar", normal())
    sample(_name, "image", normal(2, 3, 4, 5))
    sample(_name, "empty", normal(0, 3))

sample("Assign", "matrix", normal(3, 4), normal(3, 4))
sample("Assign", "scalar", normal(), normal())
sample("Assign", "empty", normal(0, 3), normal(0, 3))
error("Assign", "shapes", ShapeError, "dst and src must have equal shapes", normal(3), normal(4))

sample("Sink", "one", normal(3, 4), smooth=False)
sample("Sink", "several", normal(3, 4), integers(2, high=9), normal(), smooth=False)
sample("Sink", "own_gradients", normal(3), normal(2), one_input_grad=False, smooth=False, gradient=False)

sample("Shape", "all", normal(2, 3, 4))
sample("Shape", "part", normal(2, 3, 4), start=1, end=2)
sample("Shape", "negative", normal(2, 3, 4), start=-2)
sample("Shape", "scalar", normal())

sample("Constant", "matrix", val=2.5, shape=(2, 3))
sample("Constant", "scalar", val=-1.0)
sample("Constant", "empty", shape=(0, 2))
error("Constant", "shape", ArgumentError, "shape must have no", shape=(-1, 2))

sample("Arange", "up", start=0.0, stop=5.0)
sample("Arange", "steps", start=1.0, stop=2.0, step=0.25)
sample("Arange", "down", start=3.0, stop=-2.0, step=-1.5)
sample("Arange", "nothing", start=3.0, stop=1.0)
error("Arange", "step", ArgumentError, "step must not be zero", start=0.0, stop=1.0, step=0.0)
error("Arange", "infinite", ArgumentError, "start, stop and step must be finite", start=0.0, stop=float("inf"))

sample("Linspace", "five", start=0.0, stop=1.0, num=5)
sample("Linspace", "one", start=2.0, stop=3.0, num=1)
sample("Linspace", "down", start=1.0, stop=-1.0, num=4)
sample("Linspace", "nothing", start=0.0, stop=1.0, num=0)
error("Linspace", "num", ArgumentError, "num must be at least 0", start=0.0, stop=1.0, num=-1)

sample("EyeLike", "square", normal(3, 3))
sample("EyeLike", "above", normal(3, 4), k=1)
sample("EyeLike", "below", normal(4, 3), k=-2)
sample("EyeLike", "integers", values([[1, 2], [3, 4]]))
error("EyeLike", "axes", ShapeError, "x must have two axes", normal(3))
