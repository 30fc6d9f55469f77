"""Samples of reductions and cumulative functions."""

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import distinct, normal, uniform, values
from nn_core.testing.samples.registry import Settings, error, sample
from nn_core.typing import Shape

_AXES: dict[str, tuple[Shape, Settings]] = {
    "all": ((3, 4), {}),
    "first": ((3, 4), {"axes": (0,)}),
    "last": ((3, 4), {"axes": (-1,)}),
    "middle": ((2, 3, 4), {"axes": (1,), "keep_dims": True}),
    "two": ((2, 3, 4), {"axes": (0, 2)}),
    "inner_two": ((2, 3, 4), {"axes": (1, 2), "keep_dims": True}),
    "spatial": ((2, 3, 4, 5), {"axes": (2, 3)}),
    "channel": ((2, 3, 4, 5), {"axes": (0, 2, 3), "keep_dims": True}),
    "none": ((2, 3), {"axes": ()}),
    "scalar": ((), {}),
    "long": ((3, 1037), {"axes": (1,)}),
    "tall": ((1037, 3), {"axes": (0,)}),
}
for _case, (_shape, _args) in _AXES.items():
    sample("Sum", _case, normal(*_shape), **_args)
    sample("Mean", _case, normal(*_shape), **_args)
    sample("Norm", _case, uniform(*_shape, low=0.3, high=2), **_args)
    sample("Prod", _case, uniform(*_shape, low=0.99 if "1037" in str(_shape) else 0.8, high=1.01), **_args)
    for _name in ("Max", "Min"):
        sample(_name, _case, distinct(*_shape, gap=0.01 if "1037" in str(_shape) else 0.25), **_args)
for _name in ("Sum", "Mean", "Norm", "Prod"):
    sample(_name, "empty", normal(0, 3), axes=(1,))
    error(_name, "axes", ArgumentError, "axes must be in", normal(2, 3), axes=(2,))
for _name in ("Sum", "Mean"):
    sample(_name, "very_long", normal(100_003))
sample("Sum", "of_nothing", normal(0, 3), axes=(0,))
sample("Prod", "of_nothing", normal(0, 3), axes=(0,))
sample("Prod", "zeros", values([[0.0, 2.0, 3.0], [0.0, 0.0, 1.0]]), axes=(1,))
sample("Norm", "signs", normal(3, 4, mean=0.0), axes=(1,))
for _p in (1.0, 1.5, 3.0):
    sample("Norm", f"p_{_p:g}", uniform(3, 4, low=-2, high=-0.3), p=_p, axes=(1,))
error("Norm", "p", ArgumentError, "p must be at least 1", normal(2, 3), p=0.5)

for _name in ("Max", "Min"):
    sample(_name, "with_index", distinct(3, 4), axes=(1,), with_index=True)
    sample(_name, "only_index", distinct(3, 4), axes=(0,), only_index=True)
    sample(_name, "index_of_all", distinct(3, 4), with_index=True, keep_dims=True)
    sample(_name, "ties", values([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), axes=(1,), with_index=True, smooth=False)
    sample(_name, "batch_empty", normal(0, 3), axes=(1,))
    error(_name, "of_nothing", ShapeError, "x must have an element along the reduced axes", normal(3, 0), axes=(1,))

for _name in ("CumSum", "CumProd"):
    _draw = normal if _name == "CumSum" else lambda *shape: uniform(*shape, low=0.5, high=1.5)
    sample(_name, "first_axis", _draw(4, 3))
    sample(_name, "vector", _draw(6))
    sample(_name, "last_axis", _draw(2, 3, 5), axis=-1)
    sample(_name, "exclusive", _draw(4, 3), axis=0, exclusive=True)
    sample(_name, "reverse", _draw(2, 5), axis=1, reverse=True)
    sample(_name, "both", _draw(2, 5), axis=1, exclusive=True, reverse=True)
    sample(_name, "empty", _draw(0, 3), axis=1)
    error(_name, "axis", ArgumentError, "axis must be in", normal(2, 3), axis=2)
sample("CumProd", "zero", values([2.0, 0.0, 3.0]), loose=10)
sample("CumProd", "zeros", values([2.0, 0.0, 3.0, 0.0]), smooth=False)

for _name in ("ReduceSum", "ReduceMean"):
    sample(_name, "matrix", normal(3, 4))
    sample(_name, "scalar", normal())
    sample(_name, "image", normal(2, 3, 4, 5))
    sample(_name, "long", normal(1037))
sample("ReduceSum", "empty", normal(0, 3))
