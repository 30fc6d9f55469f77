"""Functions of files applied to variables, with those that are not the same in nn_core."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import nn_core as nn
import nn_core.functions as F
from nn_core import function as operators

#: Functions of files whose channels are last, while those of nn_core have them before rows and columns.
OTHER_LAYOUT: Final = ("PatchCorrelation",)
#: Functions that files let return the statistics of the batch as well.
_WITH_STATISTICS: Final[dict[str, Callable[..., Any]]] = {
    "BatchNormalization": F.batch_normalization,
    "FusedBatchNormalization": F.fused_batch_normalization,
}


def apply_function(kind: str, inputs: Sequence[nn.Variable | None], settings: dict[str, Any], n_outputs: int) -> Any:
    """Apply the function that files call `kind`, in the current context."""
    if kind in _WITH_STATISTICS and n_outputs == 3:
        known = {name: value for name, value in settings.items() if name not in ("no_scale", "no_bias")}
        return _WITH_STATISTICS[kind](*inputs, **known, output_stat=True)
    make = getattr(operators, kind)(nn.get_current_context(), **settings)
    if kind in OTHER_LAYOUT:
        y = make(*[F.transpose(x, (0, 3, 1, 2)) for x in inputs if x is not None])
        return F.transpose(y, (0, 3, 4, 1, 2))
    return make(*inputs)
