"""Functions and constants of cuDNN 9, as its headers ``cudnn_ops.h`` and ``cudnn_adv.h`` declare them."""

import ctypes
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final

from nn_core.ext import Refusal
from nn_ext_cudnn import library
from nn_ext_cudnn.errors import CudnnError

_P: Final = library.POINTER
_R: Final = library.RESULT
_I: Final = ctypes.c_int
_D: Final = ctypes.c_double
_N: Final = ctypes.c_size_t
_INTS: Final = ctypes.POINTER(ctypes.c_int)
_SIZE: Final = ctypes.POINTER(ctypes.c_size_t)

#: cudnnDataType_t of each dtype.
DATA_TYPES: Final[Mapping[str, int]] = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 9}


class Softmax(IntEnum):
    """cudnnSoftmaxAlgorithm_t."""

    ACCURATE = 1
    LOG = 2


#: cudnnSoftmaxMode_t: over the channels, at each place of each sample.
SOFTMAX_OVER_CHANNELS: Final = 1


class Pooling(IntEnum):
    """cudnnPoolingMode_t."""

    MAX = 0
    AVERAGE_WITH_PADDING = 1
    AVERAGE_WITHOUT_PADDING = 2


#: cudnnNanPropagation_t: a NaN under a window makes its output NaN.
PROPAGATE_NAN: Final = 1


class BatchNorm(IntEnum):
    """cudnnBatchNormMode_t: statistics of each element, of each channel, of each channel by other kernels."""

    PER_ACTIVATION = 0
    SPATIAL = 1
    SPATIAL_PERSISTENT = 2


#: cudnnBatchNormOps_t: the normalization and nothing after it.
NORMALIZE_ONLY: Final = 0


class Cell(IntEnum):
    """cudnnRNNMode_t."""

    RELU = 0
    TANH = 1
    LSTM = 2
    GRU = 3


class Bias(IntEnum):
    """cudnnRNNBiasMode_t: where biases are added, at the products with the input, with the state, or at both."""

    NONE = 0
    INPUT = 1
    BOTH = 2


class Math(IntEnum):
    """cudnnMathType_t: tensor cores where the dtype allows it (TF32 for float32), for 16 bits, nowhere."""

    DEFAULT = 0
    TENSOR_OP = 1
    FMA = 3


#: cudnnRNNAlgo_t, cudnnRNNInputMode_t, cudnnRNNDataLayout_t: products by cuBLAS, a matrix for the input, steps outermost.
RNN_STANDARD: Final = 0
RNN_LINEAR_INPUT: Final = 0
RNN_STEPS_OUTERMOST: Final = 1
#: cudnnForwardMode_t.
RNN_INFERENCE: Final = 0
RNN_TRAINING: Final = 1
#: cudnnWgradMode_t: cuDNN adds to what is there.
RNN_ADD_GRADIENTS: Final = 0

#: Tensors and poolings, softmax, batch normalization: libcudnn_ops.
OPS: Final[library.Table] = {
    "cudnnOpsVersionCheck": (),
    "cudnnCreateTensorDescriptor": (_R,),
    "cudnnSetTensorNdDescriptor": (_P, _I, _I, _INTS, _INTS),
    "cudnnGetTensorNdDescriptor": (_P, _I, _INTS, _INTS, _INTS, _INTS),
    "cudnnDestroyTensorDescriptor": (_P,),
    "cudnnSoftmaxForward": (_P, _I, _I, _P, _P, _P, _P, _P, _P),
    "cudnnSoftmaxBackward": (_P, _I, _I, _P, _P, _P, _P, _P, _P, _P, _P),
    "cudnnCreatePoolingDescriptor": (_R,),
    "cudnnSetPoolingNdDescriptor": (_P, _I, _I, _I, _INTS, _INTS, _INTS),
    "cudnnGetPoolingNdForwardOutputDim": (_P, _P, _I, _INTS),
    "cudnnDestroyPoolingDescriptor": (_P,),
    "cudnnPoolingForward": (_P, _P, _P, _P, _P, _P, _P, _P),
    "cudnnPoolingBackward": (_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P),
    "cudnnDeriveBNTensorDescriptor": (_P, _P, _I),
    "cudnnBatchNormalizationForwardInference": (_P, _I, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _D),
    "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize": (_P, _I, _I, _P, _P, _P, _P, _P, _SIZE),
    "cudnnGetBatchNormalizationBackwardExWorkspaceSize": (_P, _I, _I, _P, _P, _P, _P, _P, _P, _P, _SIZE),
    "cudnnGetBatchNormalizationTrainingExReserveSpaceSize": (_P, _I, _I, _P, _P, _SIZE),
    "cudnnBatchNormalizationForwardTrainingEx": (
        *(_P, _I, _I, _P, _P, _P, _P, _P, _P, _P, _P),
        *(_P, _P, _P, _D, _P, _P, _D, _P, _P, _P, _P, _N, _P, _N),
    ),
    "cudnnBatchNormalizationBackwardEx": (
        *(_P, _I, _I, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P),
        *(_P, _P, _P, _P, _P, _D, _P, _P, _P, _P, _N, _P, _N),
    ),
}  # fmt: skip

#: Recurrent networks: libcudnn_adv.
ADV: Final[library.Table] = {
    "cudnnAdvVersionCheck": (),
    "cudnnCreateDropoutDescriptor": (_R,),
    "cudnnSetDropoutDescriptor": (_P, _P, ctypes.c_float, _P, _N, ctypes.c_ulonglong),
    "cudnnDestroyDropoutDescriptor": (_P,),
    "cudnnCreateRNNDescriptor": (_R,),
    "cudnnSetRNNDescriptor_v8": (_P, _I, _I, _I, _I, _I, _I, _I, _I, _I, _I, _I, _I, _P, ctypes.c_uint),
    "cudnnDestroyRNNDescriptor": (_P,),
    "cudnnCreateRNNDataDescriptor": (_R,),
    "cudnnSetRNNDataDescriptor": (_P, _I, _I, _I, _I, _I, _INTS, _P),
    "cudnnDestroyRNNDataDescriptor": (_P,),
    "cudnnGetRNNTempSpaceSizes": (_P, _P, _I, _P, _SIZE, _SIZE),
    "cudnnGetRNNWeightSpaceSize": (_P, _P, _SIZE),
    "cudnnGetRNNWeightParams": (_P, _P, _I, _N, _P, _I, _P, _R, _P, _R),
    "cudnnRNNForward": (_P, _P, _I, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _N, _P, _N, _P, _N, _P),
    "cudnnRNNBackwardData_v8": (
        *(_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P),
        *(_P, _P, _P, _P, _N, _P, _N, _P, _N, _P),
    ),
    "cudnnRNNBackwardWeights_v8": (_P, _P, _I, _P, _P, _P, _P, _P, _P, _P, _N, _P, _N, _P, _N, _P),
}  # fmt: skip


def ops() -> Any:
    """Return the functions of `OPS`; each raises `CudnnError` where cuDNN reports one."""
    return _functions(library.library(), "ops")


def adv() -> Any:
    """Return the functions of `ADV`; each raises `CudnnError` where cuDNN reports one."""
    return _functions(library.library(), "adv")


def refuse_part(part: str) -> Refusal | None:
    """Refuse where the installed cuDNN lacks a part of it, as the wheels that make their engines at run time do.

    Args:
        part: "ops" or "adv".
    """
    return _refusal(library.library(), part)


@lru_cache(maxsize=4)
def _functions(source: object, part: str) -> Any:
    return library.functions(OPS if part == "ops" else ADV)


@lru_cache(maxsize=4)
def _refusal(source: object, part: str) -> Refusal | None:
    try:
        if part == "ops":
            ops().cudnnOpsVersionCheck()
        else:
            adv().cudnnAdvVersionCheck()
    except CudnnError as error:
        reason = str(error).partition("\n")[0]
        return Refusal(
            f"needs libcudnn_{part}, which this cuDNN lacks ({reason}): pip install nvidia-cudnn-cu13 "
            "(or nvidia-cudnn-cu12, as CuPy is), and leave CUDNN_LIB_CONFIG unset"
        )
    return None
