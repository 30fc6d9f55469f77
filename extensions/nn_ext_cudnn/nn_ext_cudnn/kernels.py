"""The table of kernels by name of the function; each topic has a module."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Kernel
from nn_ext_cudnn.graph.attention import FUSED_ATTENTION
from nn_ext_cudnn.graph.convolution import CONVOLUTION
from nn_ext_cudnn.graph.fused import FUSED
from nn_ext_cudnn.legacy.batch_normalization import BATCH_NORMALIZATION
from nn_ext_cudnn.legacy.pooling import POOLING
from nn_ext_cudnn.legacy.recurrent import RECURRENT
from nn_ext_cudnn.legacy.softmax import SOFTMAX

_TABLES: Final[Sequence[Mapping[str, Kernel]]] = (
    BATCH_NORMALIZATION,
    CONVOLUTION,
    FUSED,
    FUSED_ATTENTION,
    POOLING,
    RECURRENT,
    SOFTMAX,
)

KERNELS: Final[Mapping[str, Kernel]] = {name: kernel for table in _TABLES for name, kernel in table.items()}
