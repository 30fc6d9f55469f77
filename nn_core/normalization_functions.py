"""The normalizations of ``nn_core.functions``, under the name of the module where NNabla has them."""

from collections.abc import Iterable
from typing import Any

from nn_core.functions import batch_normalization as batch_normalization
from nn_core.functions import fused_batch_normalization as fused_batch_normalization
from nn_core.functions import group_normalization as group_normalization
from nn_core.functions import instance_normalization as instance_normalization
from nn_core.functions import layer_normalization as layer_normalization
from nn_core.functions import sync_batch_normalization as sync_batch_normalization
from nn_core.functions import tensor_normalization as tensor_normalization
from nn_core.functions import weight_standardization as weight_standardization


def _force_list(value: Any) -> Any:
    """`value` if it can be iterated over, else a list of it; programs of NNabla import it."""
    return value if isinstance(value, Iterable) else [value]
