"""Activations with trained parameters."""

from typing import Final

import nn_core.functions as F
from nn_core.functions.operand import Operand
from nn_core.initializer import ConstantInitializer
from nn_core.parametric_functions.initial import shape_for_parameters, trained
from nn_core.parametric_functions.scope import Initializer, layer

_QUARTERS: Final = ConstantInitializer(0.25)


@layer("prelu", [("slope", "Slope for negative inputs.", "() if shared, else (C)", True)])
def prelu(
    inp: Operand,
    base_axis: int = 1,
    shared: bool = True,
    fix_parameters: bool = False,
    slope_init: Initializer | None = None,
    name: str | None = None,
) -> Operand:
    """Rectify with a trained slope for negative inputs: x for x > 0, else slope * x.

    Args:
        inp: Input of any shape.
        base_axis: Axis of the channels.
        shared: One slope for all channels.
        slope_init: Initial slope. Default: 0.25.

    Returns:
        The shape of `inp`.

    References:
        He et al. (2015), Delving deep into rectifiers.

    Example:
        >>> PF.prelu(nn.Variable((8, 3, 16, 16)), shared=False).shape
        (8, 3, 16, 16)
    """
    shape = () if shared else (shape_for_parameters(inp)[base_axis],)
    slope_init = _QUARTERS if slope_init is None else slope_init
    return F.prelu(inp, trained("slope", shape, slope_init, fix_parameters), base_axis)
