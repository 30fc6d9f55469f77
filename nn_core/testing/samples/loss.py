"""Samples of losses and of counts of mistakes."""

from nn_core.errors import ArgumentError, ArgumentTypeError, ShapeError
from nn_core.testing.drawing import integers, mask, normal, uniform, values
from nn_core.testing.samples.registry import error, sample

_TIES = (values([[1.0, 2.0, -3.0, 0.5]]), values([[1.0, 1.0, -1.0, 0.0]]))

for _name in ("SigmoidCrossEntropy", "BinaryCrossEntropy"):
    _x = normal(4, 3, scale=2) if _name.startswith("S") else uniform(4, 3, low=0.05, high=0.95)
    sample(_name, "labels", _x, mask(4, 3))
    sample(_name, "soft_labels", _x, uniform(4, 3, low=0.1, high=0.9))
sample("SigmoidCrossEntropy", "far", values([-60.0, -20.0, 20.0, 60.0]), values([0.0, 1.0, 0.0, 1.0]))
for _name in ("SquaredError", "AbsoluteError", "HuberLoss"):
    sample(_name, "ties", *_TIES, smooth=False)
sample("HuberLoss", "settings", normal(4, 3, scale=2), normal(4, 3), delta=0.4)
sample("EpsilonInsensitiveLoss", "matrix", normal(4, 3), normal(4, 3), epsilon=0.3)
sample("EpsilonInsensitiveLoss", "broadcast", normal(2, 1, 3), normal(4, 1), epsilon=0.3)
sample("EpsilonInsensitiveLoss", "ties", *_TIES, epsilon=1.0, smooth=False)
sample("EpsilonInsensitiveLoss", "long", normal(1037), normal(1037), epsilon=0.5)
sample("EpsilonInsensitiveLoss", "empty", normal(0, 3), normal(0, 3), epsilon=0.5)
error("EpsilonInsensitiveLoss", "epsilon", ArgumentTypeError, "epsilon must be given", normal(2), normal(2))
error("HuberLoss", "delta", ArgumentError, "delta must be at least 0", normal(2), normal(2), delta=-1.0)
for _name in ("SigmoidCrossEntropy", "BinaryCrossEntropy", "SquaredError", "AbsoluteError", "HuberLoss"):
    error(_name, "shapes", ShapeError, "equal or 1 on each axis", normal(2, 3), normal(2, 4))

for _name in ("SoftmaxCrossEntropy", "CategoricalCrossEntropy"):
    _draw = normal if _name.startswith("S") else lambda *shape: uniform(*shape, low=0.1, high=0.9)
    sample(_name, "matrix", _draw(4, 3), integers(4, 1, high=3))
    sample(_name, "first_axis", _draw(3, 4), integers(1, 4, high=3), axis=0)
    sample(_name, "image", _draw(2, 5, 3, 4), integers(2, 1, 3, 4, high=5), axis=1)
    sample(_name, "vector", _draw(5), integers(1, high=5))
    sample(_name, "ignored", _draw(4, 3), values([[0], [-1], [2], [-1]]))
    sample(_name, "many_classes", _draw(5, 1037), integers(5, 1, high=1037))
    sample(_name, "large", _draw(515, 130), integers(515, 1, high=130), smooth=False)
    sample(_name, "empty", _draw(0, 3), integers(0, 1, high=3))
    error(_name, "labels", ShapeError, "target must have the shape of x", normal(4, 3), integers(4, 2, high=3))
    error(_name, "class", ArgumentError, "target must .*below.* 3", normal(2, 3), values([[0], [3]]))
    error(_name, "axis", ArgumentError, "axis must be in", normal(2, 3), integers(2, 1, high=3), axis=2)
sample("SoftmaxCrossEntropy", "large_numbers", uniform(4, 3, low=-80, high=80), integers(4, 1, high=3))

sample("ClassMask", "matrix", integers(4, 1, high=3), n_classes=3, axis=1)
sample("ClassMask", "first_axis", integers(1, 4, high=3), n_classes=5, axis=0)
sample("ClassMask", "outside", values([[0], [-1], [2]]), n_classes=3, axis=1)
sample("ClassMask", "empty", integers(0, 1, high=3), n_classes=3, axis=1)
error("ClassMask", "length", ShapeError, "target must have length 1 on axis", integers(4, 2, high=3), n_classes=3, axis=1)
error("ClassMask", "missing", ArgumentError, "n_classes must be given", integers(4, 1, high=3), axis=1)

sample("KLMultinomial", "matrix", uniform(4, 3, low=0.1, high=0.9), uniform(4, 3, low=0.1, high=0.9))
sample("KLMultinomial", "axes", uniform(2, 3, 4, low=0.1, high=0.9), uniform(2, 3, 4, low=0.1, high=0.9), base_axis=2)
sample("KLMultinomial", "empty", uniform(0, 3, low=0.1), uniform(0, 3, low=0.1))
error("KLMultinomial", "shapes", ShapeError, "p and q must have the same shape", uniform(2, 3), uniform(2, 4))

sample("TopNError", "matrix", normal(5, 4), integers(5, 1, high=4))
sample("TopNError", "best_two", normal(5, 4), integers(5, 1, high=4), n=2)
sample("TopNError", "axis", normal(2, 4, 3), integers(2, 1, 3, high=4), axis=1)
sample("TopNError", "ties", values([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), values([[1], [2]]))
sample("TopNError", "empty", normal(0, 4), integers(0, 1, high=4))
error("TopNError", "labels", ShapeError, "target must have the shape of x", normal(4, 3), integers(4, 2, high=3))
error("TopNError", "n", ArgumentError, "n must be at least 1", normal(4, 3), integers(4, 1, high=3), n=0)

sample("BinaryError", "labels", uniform(4, 3), mask(4, 3))
sample("BinaryError", "half", values([0.5, 0.49, 0.51]), values([1.0, 1.0, 0.0]))

sample("ConfusionMatrix", "matrix", normal(8, 3), integers(8, 1, high=3))
sample("ConfusionMatrix", "axis", normal(4, 3, 2), integers(4, 1, 2, high=3), axis=1)
sample("ConfusionMatrix", "empty", normal(0, 3), integers(0, 1, high=3))
error("ConfusionMatrix", "labels", ShapeError, "target must have the shape of x", normal(4, 3), integers(4, 2, high=3))
