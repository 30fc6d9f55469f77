"""The table of kernels by name of the function; each topic has a module."""

from collections.abc import Mapping, Sequence
from typing import Final

from nn_core.ext import Kernel
from nn_ext_cuda.kernels.activation import ACTIVATION
from nn_ext_cuda.kernels.arithmetic import ARITHMETIC
from nn_ext_cuda.kernels.attention import ATTENTION
from nn_ext_cuda.kernels.augmenting import AUGMENTING
from nn_ext_cuda.kernels.boxes import BOXES
from nn_ext_cuda.kernels.contraction import CONTRACTION
from nn_ext_cuda.kernels.convolution import CONVOLUTION
from nn_ext_cuda.kernels.deformable import DEFORMABLE
from nn_ext_cuda.kernels.factors import FACTORS
from nn_ext_cuda.kernels.filling import FILLING
from nn_ext_cuda.kernels.fourier import FOURIER
from nn_ext_cuda.kernels.image import IMAGE
from nn_ext_cuda.kernels.indexing import INDEXING
from nn_ext_cuda.kernels.lengths import LENGTHS
from nn_ext_cuda.kernels.linear import LINEAR
from nn_ext_cuda.kernels.loss import LOSS
from nn_ext_cuda.kernels.means import MEANS
from nn_ext_cuda.kernels.normalization import NORMALIZATION
from nn_ext_cuda.kernels.patches import PATCHES
from nn_ext_cuda.kernels.placing import PLACING
from nn_ext_cuda.kernels.pooling import POOLING
from nn_ext_cuda.kernels.quantization import QUANTIZATION
from nn_ext_cuda.kernels.quantized_layers import QUANTIZED_LAYERS
from nn_ext_cuda.kernels.random import RANDOM
from nn_ext_cuda.kernels.recurrent import RECURRENT
from nn_ext_cuda.kernels.reduction import REDUCTION
from nn_ext_cuda.kernels.regions import REGIONS
from nn_ext_cuda.kernels.resizing import RESIZING
from nn_ext_cuda.kernels.scattering import SCATTERING
from nn_ext_cuda.kernels.shape import SHAPE
from nn_ext_cuda.kernels.sorting import SORTING
from nn_ext_cuda.kernels.warping import WARPING
from nn_ext_cuda.kernels.weights import WEIGHTS

_TABLES: Final[Sequence[Mapping[str, Kernel]]] = (
    ACTIVATION,
    ARITHMETIC,
    ATTENTION,
    AUGMENTING,
    BOXES,
    CONTRACTION,
    CONVOLUTION,
    DEFORMABLE,
    FACTORS,
    FILLING,
    FOURIER,
    IMAGE,
    INDEXING,
    LENGTHS,
    LINEAR,
    LOSS,
    MEANS,
    NORMALIZATION,
    PATCHES,
    PLACING,
    POOLING,
    QUANTIZATION,
    QUANTIZED_LAYERS,
    RANDOM,
    RECURRENT,
    REDUCTION,
    REGIONS,
    RESIZING,
    SCATTERING,
    SHAPE,
    SORTING,
    WARPING,
    WEIGHTS,
)

KERNELS: Final[Mapping[str, Kernel]] = {name: kernel for table in _TABLES for name, kernel in table.items()}
