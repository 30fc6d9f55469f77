"""Every specification of function_spec.yaml, by name and by API name.

Generated from function_spec.yaml by `python -m nn_core.operators.spec`; edits are lost.
"""

from collections.abc import Mapping
from typing import Final

from nn_core.operators.spec.builtin import (
    activation,
    arithmetic,
    attention,
    convolution,
    image,
    indexing,
    linear,
    loss,
    normalization,
    pooling,
    quantization,
    random,
    recurrent,
    reduction,
    shape,
)
from nn_core.operators.spec.model import FunctionSpec

SPECS: Final[tuple[FunctionSpec, ...]] = (
    *activation.SPECS,
    *arithmetic.SPECS,
    *reduction.SPECS,
    *linear.SPECS,
    *convolution.SPECS,
    *pooling.SPECS,
    *normalization.SPECS,
    *loss.SPECS,
    *shape.SPECS,
    *indexing.SPECS,
    *random.SPECS,
    *recurrent.SPECS,
    *attention.SPECS,
    *image.SPECS,
    *quantization.SPECS,
)

#: "Affine" -> specification.
BY_NAME: Final[Mapping[str, FunctionSpec]] = {spec.name: spec for spec in SPECS}

#: "affine" -> specification.
BY_API: Final[Mapping[str, FunctionSpec]] = {spec.api: spec for spec in SPECS}
