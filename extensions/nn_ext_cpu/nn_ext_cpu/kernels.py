"""The table of kernels by name of the function."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Kernel
from nn_ext_cpu.activation import ACTIVATION
from nn_ext_cpu.along import ALONG
from nn_ext_cpu.arithmetic import ARITHMETIC
from nn_ext_cpu.attention import ATTENTION
from nn_ext_cpu.axes import AXES
from nn_ext_cpu.classes import CLASSES
from nn_ext_cpu.contraction import CONTRACTION
from nn_ext_cpu.convolution import CONVOLUTION
from nn_ext_cpu.fourier import FOURIER
from nn_ext_cpu.image import IMAGE
from nn_ext_cpu.indexing import INDEXING
from nn_ext_cpu.integers import INTEGERS
from nn_ext_cpu.linear import LINEAR
from nn_ext_cpu.loss import LOSS
from nn_ext_cpu.normalization import NORMALIZATION
from nn_ext_cpu.order import ORDER
from nn_ext_cpu.places import PLACES
from nn_ext_cpu.pooling import POOLING
from nn_ext_cpu.quantization import QUANTIZATION
from nn_ext_cpu.random import RANDOM
from nn_ext_cpu.recurrent import RECURRENT
from nn_ext_cpu.reduction import REDUCTION
from nn_ext_cpu.resampling import RESAMPLING
from nn_ext_cpu.shape import SHAPE
from nn_ext_cpu.staged import STAGED
from nn_ext_cpu.standardization import STANDARDIZATION

_TABLES: Final[Sequence[Mapping[str, Kernel]]] = (
    ACTIVATION,
    ALONG,
    ARITHMETIC,
    ATTENTION,
    AXES,
    CLASSES,
    CONTRACTION,
    CONVOLUTION,
    FOURIER,
    IMAGE,
    INDEXING,
    INTEGERS,
    LINEAR,
    LOSS,
    NORMALIZATION,
    ORDER,
    PLACES,
    POOLING,
    QUANTIZATION,
    RANDOM,
    RECURRENT,
    REDUCTION,
    RESAMPLING,
    SHAPE,
    STAGED,
    STANDARDIZATION,
)

KERNELS: Final[Mapping[str, Kernel]] = {name: kernel for table in _TABLES for name, kernel in table.items()}
