"""Functions in a vendor namespace: ``F.vendor.cube``, ``F.vendor.double`` and ``PF.vendor.scale``."""

import nn_core.functions as F
from nn_core.ext import CompositeInfo, FunctionPackage, ParametricFunctionInfo, gradient, hookimpl, kernel
from nn_core.parameter import get_parameter_or_create

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"
VENDOR_NAMESPACE = True

SPEC = """
- name: vendor.Cube
  api: cube
  topic: activation
  doc: Cube.
  inputs:
    x: {doc: Any array.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x]}
- name: vendor.Square
  api: square
  topic: activation
  doc: Square.
  inputs:
    x: {doc: Any array.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x]}
"""


@kernel("vendor.Cube")
def cube(xp, x):
    """Reference kernel."""
    return x * x * x


@kernel("vendor.Square")
def square(xp, x):
    """Reference kernel."""
    return x * x


@gradient("vendor.Cube")
def cube_gradient(F, g):
    """Gradient rule, with an operator of the same plugin."""
    return g.grad * F.vendor.square(g.x) * 3.0


@gradient("vendor.Square")
def square_gradient(F, g):
    """Gradient rule."""
    return g.grad * g.x * 2.0


def double(x):
    """Twice x."""
    return x * 2.0


def scale(x):
    """Multiply x by a trained number."""
    return F.mul2(x, get_parameter_or_create("scale", (1,) * x.ndim, lambda shape: [[3.0]]))


@hookimpl
def nn_core_functions():
    """Operators."""
    return [FunctionPackage(spec=SPEC)]


@hookimpl
def nn_core_composites():
    """A function made of others."""
    return [CompositeInfo(name="double", target=double)]


@hookimpl
def nn_core_parametric_functions():
    """A layer."""
    return [ParametricFunctionInfo(name="scale", target=scale)]
