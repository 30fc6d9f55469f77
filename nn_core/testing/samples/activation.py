"""Samples of activation functions; the plain element-wise ones have samples already, from their specification."""

import math

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import normal, uniform, values
from nn_core.testing.samples.registry import error, sample

_BOTH_SIDES = uniform(3, 4, low=-3, high=3)
_KINKS = values([-2.5, -1.0, 0.0, -0.0, 1.0, 2.5, 6.0])

sample("ReLU", "inplace", _BOTH_SIDES, inplace=True)
sample("LeakyReLU", "settings", _BOTH_SIDES, alpha=0.3, inplace=True)
sample("LeakyReLU", "falling", _BOTH_SIDES, alpha=-0.5)
sample("LeakyReLU", "no_slope", _BOTH_SIDES, alpha=0.0)
sample("ELU", "settings", _BOTH_SIDES, alpha=0.3)
sample("SELU", "settings", _BOTH_SIDES, scale=2.0, alpha=0.5)
sample("SoftPlus", "settings", _BOTH_SIDES, beta=3.0)
for _name in ("ReLU", "LeakyReLU", "ELU", "SELU", "ReLU6", "HardSigmoid", "HardTanh", "SoftSign", "Sinc"):
    sample(_name, "kinks", _KINKS, smooth=False)
for _name in ("Sigmoid", "Swish", "Tanh", "GELU", "Mish", "LogSigmoid", "SoftPlus", "TanhShrink"):
    sample(_name, "far", values([-80.0, -30.0, -9.0, 9.0, 30.0, 80.0]))
sample("ReLU6", "wide", uniform(4, 5, low=-2, high=8))

for _name in ("Softmax", "LogSoftmax"):
    sample(_name, "last_axis", normal(4, 5, scale=2))
    sample(_name, "first_axis", normal(5, 3, scale=2), axis=0)
    sample(_name, "middle_axis", normal(2, 7, 3), axis=-2)
    sample(_name, "vector", normal(6))
    sample(_name, "long", normal(3, 1037))
    sample(_name, "many_rows", normal(257, 5))
    sample(_name, "large_numbers", uniform(2, 6, low=-80, high=80))
    sample(_name, "large", normal(515, 130), smooth=False)
    sample(_name, "one_class", normal(4, 1))
    sample(_name, "image", normal(2, 3, 4, 5), axis=1)
    sample(_name, "empty", normal(0, 4))
    error(_name, "axis", ArgumentError, "axis must be in", normal(2, 3), axis=2)

for _name in ("CReLU", "CELU"):
    sample(_name, "matrix", _BOTH_SIDES)
    sample(_name, "first_axis", _BOTH_SIDES, axis=0)
    sample(_name, "image", normal(2, 3, 4, 2))
    sample(_name, "last_axis", normal(2, 3, 4), axis=-1)
    sample(_name, "kinks", values([[0.0, 1.0, -1.0]]), smooth=False)
    sample(_name, "empty", normal(0, 3))
    error(_name, "axis", ArgumentError, "axis must be in", normal(2, 3), axis=-3)
sample("CELU", "settings", _BOTH_SIDES, alpha=0.4)

sample("PReLU", "per_channel", normal(2, 3, 4), uniform(3))
sample("PReLU", "shared", normal(2, 3, 4), uniform())
sample("PReLU", "shared_one", normal(2, 3), uniform(1))
sample("PReLU", "last_axis", normal(2, 3, 4), uniform(4), base_axis=2)
sample("PReLU", "image", normal(2, 3, 4, 5), uniform(3))
sample("PReLU", "kinks", values([[0.0, 1.0, -1.0]]), values([0.2, 0.3, 0.4]), smooth=False)
sample("PReLU", "empty", normal(0, 3), uniform(3))
error("PReLU", "slopes", ShapeError, "x1 must have the shape", normal(2, 3), uniform(2))
error("PReLU", "axis", ArgumentError, "base_axis must be in", normal(2, 3), uniform(3), base_axis=2)

for _name, _beta in (("zero", 0.0), ("infinite", math.inf), ("not_a_number", math.nan)):
    error("SoftPlus", _name, ArgumentError, "beta must be finite and not 0", normal(3), beta=_beta)
