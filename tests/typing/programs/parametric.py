"""Parametric."""

import nn_core as nn
import nn_core.parametric_functions as PF
from nn_core.parameter import get_parameter_or_create


@PF.parametric_function_api("scale", [("a", "Factor", "()", True)])
def scale(x: nn.Variable, power: int = 1) -> nn.Variable:
    """Multiply by a trained factor."""
    return x * get_parameter_or_create("a", (1,) * x.ndim) ** power


y: nn.Variable = scale(nn.Variable((2, 3)), power=2)
z: nn.Variable = scale(nn.Variable((2, 3)), name="other")
