"""An operator with an API name that starts with the name of its plugin: ``F.prefixed_cube``."""

from nn_core.ext import FunctionPackage, gradient, hookimpl, kernel

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"

SPEC = """
- name: prefixed.Cube
  api: prefixed_cube
  topic: activation
  doc: Cube.
  inputs:
    x: {doc: Any array.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x]}
"""


@kernel("prefixed.Cube")
def cube(xp, x):
    """Reference kernel."""
    return x * x * x


@gradient("prefixed.Cube")
def cube_gradient(F, g):
    """Gradient rule."""
    return g.grad * g.x * g.x * 3.0


@hookimpl
def nn_core_functions():
    """The contents of this plugin."""
    return [FunctionPackage(spec=SPEC)]
