"""Samples of arithmetic, comparisons, logic and elementary functions."""

from nn_core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from nn_core.testing.drawing import integers, mask, normal, uniform, values
from nn_core.testing.samples.registry import convention, error, sample

_PAIR = (uniform(3, 4, low=-2, high=2), uniform(3, 4, low=-2, high=2))
_POSITIVE = uniform(3, 4, low=0.3, high=2)
_TIES = (values([1.0, 2.0, -1.0, 0.0]), values([1.0, 1.0, 0.0, -0.0]))

convention("the gradient of rounding passes straight through", "Round", "Ceil", "Floor", "Sign")
convention("the function exists to alter the gradient", "ClipGradByValue", "ClipGradByNorm")

# Two arrays ---------------------------------------------------------------------------------------------------------

for _name in ("Add2", "BcAdd2", "Sub2", "Mul2"):
    sample(_name, "inplace", *_PAIR, inplace=True)
for _name in ("Div2", "Pow2"):
    _low, _high = (0.5, 2.0) if _name == "Div2" else (-2.0, 2.0)
    _x0, _range = (-2.0, {"low": _low, "high": _high}) if _name == "Div2" else (0.3, {"low": _low, "high": _high})
    for _case, _shapes in {
        "matrix": ((3, 4), (3, 4)),
        "broadcast": ((2, 3, 1), (1, 4)),
        "row": ((5, 7), (7,)),
        "one": ((4, 3), ()),
        "scalar": ((), ()),
        "long": ((1037,), (1037,)),
        "image": ((2, 3, 4, 5), (2, 3, 4, 5)),
        "channel": ((2, 3, 4, 2), (1, 3, 1, 1)),
    }.items():
        sample(_name, _case, uniform(*_shapes[0], low=_x0, high=2), uniform(*_shapes[1], **_range))
    sample(_name, "inplace", _POSITIVE, uniform(3, 4, **_range), inplace=True)
for _name in ("Add2", "BcAdd2", "Sub2", "Mul2", "Div2", "Pow2", "Maximum2", "Minimum2", "ATan2", "Equal", "LogicalAnd"):
    error(_name, "shapes", ShapeError, "equal or 1 on each axis", normal(2, 3), normal(2, 4))
sample("Pow2", "whole", values([-2.0, -1.5, 3.0]), values([2.0, 3.0, -1.0]), smooth=False, gradient=False)
sample("Pow2", "negative_base", values([-2.0, 2.0]), values([0.5, 0.5]), smooth=False, gradient=False)
for _name in ("Maximum2", "Minimum2"):
    sample(_name, "ties", *_TIES, smooth=False)
for _name in ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"):
    sample(_name, "ties", *_TIES)
for _name in ("LogicalAnd", "LogicalOr", "LogicalXor"):
    sample(_name, "masks", mask(4, 5), mask(4, 5))
    sample(_name, "masks_broadcast", mask(4, 1), mask(5))
    sample(_name, "numbers", values([0.0, -0.5, 2.0, 0.0]), values([3.0, 0.1, 0.0, 0.0]))
sample("ATan2", "quadrants", values([1.0, 1.0, -1.0, -1.0]), values([2.0, -2.0, 2.0, -2.0]))
sample("ATan2", "axes", values([0.0, 1.0, 0.0, -1.0]), values([1.0, 0.0, -1.0, 0.0]), smooth=False)

for _name in ("AddN", "MulN"):
    sample(_name, "one", normal(2, 3))
    sample(_name, "two", normal(2, 3), normal(2, 3))
    sample(_name, "four", normal(3, 2), normal(3, 2), normal(3, 2), normal(3, 2))
    sample(_name, "image", normal(2, 3, 4, 5), normal(2, 3, 4, 5), normal(2, 3, 4, 5))
    sample(_name, "scalar", normal(), normal(), normal())
    sample(_name, "empty", normal(0, 2), normal(0, 2))
    error(_name, "shapes", ShapeError, "all inputs must have the same shape", normal(2, 3), normal(3))
    error(_name, "none", ArgumentError, "at least 1 input must be given")
sample("MulN", "zeros", values([0.0, 2.0, 0.0]), values([3.0, 0.0, 0.0]), values([1.0, 5.0, 2.0]))

# One array and a number ---------------------------------------------------------------------------------------------

for _name in ("AddScalar", "MulScalar"):
    sample(_name, "settings", _PAIR[0], val=2.5, inplace=True)
for _name in ("RSubScalar", "MinimumScalar", "MaximumScalar"):
    sample(_name, "settings", _PAIR[0], val=0.7)
sample("RDivScalar", "settings", uniform(3, 4, low=0.5, high=2), val=-1.5)
sample("RPowScalar", "settings", _PAIR[0], val=2.5)
for _number, _case in ((2.0, "square"), (3.0, "cube"), (0.5, "root"), (-1.0, "inverse"), (0.0, "zero"), (-1.7, "odd")):
    sample("PowScalar", _case, _POSITIVE, val=_number, inplace=_number == 3.0)
sample("PowScalar", "negative_base", uniform(3, 4, low=-2, high=-0.3), val=3.0)
for _name in ("MinimumScalar", "MaximumScalar"):
    sample(_name, "ties", values([0.5, 1.0, 2.0]), val=1.0, smooth=False)
for _name in ("EqualScalar", "NotEqualScalar", "GreaterScalar", "GreaterEqualScalar", "LessScalar", "LessEqualScalar"):
    sample(_name, "ties", values([[0.5, 1.0], [1.5, 1.0]]), val=1.0)
    sample(_name, "settings", _PAIR[0], val=0.25)
for _name in ("LogicalAndScalar", "LogicalOrScalar", "LogicalXorScalar"):
    for _flag in (True, False):
        sample(_name, str(_flag).lower(), mask(4, 5), val=_flag)
    sample(_name, "image", mask(2, 3, 4, 5), val=True)
    sample(_name, "numbers", values([0.0, -0.5, 2.0]), val=True)
    sample(_name, "empty", mask(0, 3), val=False)
    error(_name, "missing", ArgumentTypeError, "val must be given", mask(2))
    error(_name, "number", ArgumentError, "val must be True or False", mask(2), val=2)
error("AddScalar", "text", ArgumentTypeError, "val must be a number", normal(2), val="1")
error("MulScalar", "unknown", ArgumentError, "arguments must be among val, inplace, got 'value'", normal(2), value=1)

# One array ----------------------------------------------------------------------------------------------------------

sample("Sign", "settings", values([-2.0, 0.0, 3.0]), alpha=0.5)
sample("Sign", "minus", values([-2.0, 0.0, 3.0]), alpha=-1.0)
sample("LogicalNot", "masks", mask(4, 5))
sample("Round", "halves", values([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]))
for _name in ("Ceil", "Floor"):
    sample(_name, "whole", values([-2.0, 0.0, 3.0, -0.0]))
sample("Abs", "kink", values([-1.0, 0.0, 2.0]), smooth=False)
sample("Exp", "far", values([-60.0, -20.0, 10.0]))
sample("Log", "far", values([1e-4, 1e-2, 1e3]), loose=4, smooth=False)
sample("Sin", "far", values([-300.0, -20.0, 47.0, 1000.0]), loose=4)
sample("Cos", "far", values([-300.0, -20.0, 47.0, 1000.0]), loose=4)
sample("Erf", "far", values([-6.0, -4.0, 4.0, 6.0]))
for _name in ("Exp", "Tanh", "Add2", "Mul2"):
    _inputs = [uniform(100_003, low=-2, high=2)] * (2 if _name.endswith("2") else 1)
    sample(_name, "very_long", *_inputs)
_HOLES = {"ResetNaN": float("nan"), "ResetInf": float("inf")}
for _name, _hole in _HOLES.items():
    sample(_name, "settings", values([1.0, _hole, -_hole, 2.0]), val=0.5, smooth=False)

# Others -------------------------------------------------------------------------------------------------------------

_DIVISORS = (uniform(3, 4, low=-6, high=6), values([[1.7, -1.3, 2.3, 0.9]]))
for _fmod in (False, True):
    sample("Mod2", f"fmod_{_fmod}".lower(), *_DIVISORS, fmod=_fmod, loose=4)
    sample("Mod2", f"integers_{_fmod}".lower(), integers(3, 4, low=-9, high=9), values([[2, -3, 5, 7]]), fmod=_fmod)
sample("Mod2", "scalar", values(5.3), values(2.0))
sample("Mod2", "empty", normal(0, 3), normal(0, 3))
error("Mod2", "shapes", ShapeError, "equal or 1 on each axis", normal(2, 3), normal(2, 4))

sample("BitShift", "left", integers(3, 4, high=50), integers(3, 4, high=5))
sample("BitShift", "right", integers(3, 4, high=5000), integers(4, high=5), direction="RIGHT")
sample("BitShift", "empty", integers(0, high=2), integers(0, high=2))
error("BitShift", "floats", DTypeError, "x must hold integers", normal(2), integers(2, high=2))
error(
    "BitShift",
    "direction",
    ArgumentError,
    "direction must be one of",
    integers(2, high=2),
    integers(2, high=2),
    direction="UP",
)

sample("Where", "matrix", integers(3, 4, high=2), normal(3, 4), normal(3, 4))
sample("Where", "rows", integers(3, high=2), normal(3, 4), normal(3, 4))
sample("Where", "scalar", integers(high=2), normal(2), normal(2))
sample("Where", "floats", mask(3, 4), normal(3, 4), normal(3, 4), smooth=False)
sample("Where", "image", integers(2, 3, 4, 5, high=2), normal(2, 3, 4, 5), normal(2, 3, 4, 5))
sample("Where", "empty", mask(0, 2), normal(0, 2), normal(0, 2))
error("Where", "shapes", ShapeError, "x_true and x_false must have the same shape", mask(2), normal(2), normal(3))
error("Where", "condition", ShapeError, "x_true must start with the shape of condition", mask(3), normal(2), normal(2))

sample("ClipGradByValue", "matrix", normal(3, 4), uniform(3, 4, low=-1, high=-0.1), uniform(3, 4, low=0.1))
sample("ClipGradByValue", "scalar", normal(3, 4), values(-0.2), values(0.3))
sample("ClipGradByValue", "empty", normal(0, 4), values(-0.2), values(0.3))
error("ClipGradByValue", "shapes", ShapeError, "min must broadcast to the shape of x", normal(3), normal(2, 3), normal(3))

sample("ClipGradByNorm", "all", normal(3, 4))
sample("ClipGradByNorm", "settings", normal(3, 4), clip_norm=0.5, axes=(0,))
sample("ClipGradByNorm", "empty", normal(0, 4))
error("ClipGradByNorm", "axes", ArgumentError, "axes must be in", normal(2, 3), axes=(2,))
