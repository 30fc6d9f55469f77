"""Write an operator with a kernel and a gradient."""

import numpy as np

import nn_core as nn
from nn_core import F, ext

PLUGIN_API, REQUIRES_CORE = 1, ">=0.1,<1"
SPEC = """
- {name: tasks.SoftSquare, api: soft_square, topic: activation, doc: A square at 0., shape: same_as x,
   inputs: {x: {doc: Any array.}}, args: {a: {type: float, default: 1.0, doc: Where it becomes linear.}},
   outputs: {y: {doc: Squares.}}, backward: {needs: [x]}}
"""


@ext.kernel("tasks.SoftSquare")
def soft_square(xp, x, *, a):
    return a * a * (xp.sqrt(1 + (x / a) ** 2) - 1)


@ext.gradient("tasks.SoftSquare")
def soft_square_gradient(F, g):
    return g.grad * g.x / F.pow_scalar(1 + (g.x / g.a) ** 2, 0.5)


@ext.hookimpl
def nn_core_functions():
    return [ext.FunctionPackage(spec=SPEC)]


ext.register(__name__, "tasks")
x = nn.Variable.from_numpy_array([-2.0, 0.0, 3.0], need_grad=True)
y = F.sum(F.soft_square(x, a=2.0))
y.backward()
assert np.allclose(x.g, [-2 / 2**0.5, 0, 3 / 3.25**0.5])
