"""An operator as a package: after ``pip install examples/plugin_minimal`` there is ``F.acme_swish_beta``."""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import Array, FunctionPackage, GradientCall, Namespace, gradient, hookimpl, kernel

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"

SPEC = """
- name: acme.SwishBeta
  api: acme_swish_beta
  topic: activation
  doc: Swish with an adjustable slope.
  formula: y = x / (1 + exp(-beta x))
  inputs:
    x: {doc: Any array.}
  args:
    beta: {type: float, default: 1.0, doc: Slope of the gate.}
  outputs:
    y: {doc: Array of the shape of x.}
  shape: same_as x
  backward: {needs: [x, y]}
  tags: [pointwise]
"""


@kernel("acme.SwishBeta")
def swish_beta(xp: Namespace, x: Array, *, beta: float) -> Array:
    """Compute the reference, which runs on every backend."""
    return x / (1 + xp.exp(-beta * x))


@gradient("acme.SwishBeta")
def swish_beta_gradient(F: Any, g: GradientCall) -> Any:
    """Gradient rule: serves backward() and nn.grad of any order."""
    gate = F.sigmoid(g.x * g.beta)
    return g.grad * (gate + g.y * g.beta * (1 - gate))


@hookimpl
def nn_core_functions() -> Sequence[FunctionPackage]:
    """Return the contents of this plugin."""
    return [FunctionPackage(spec=SPEC)]
