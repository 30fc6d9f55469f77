"""The choices that a quantization-aware training has, and its steps."""

from enum import Enum


class PrecisionMode(Enum):
    """The arithmetic of quantized networks. SIM_QNN, the only one: floating-point numbers that are rounded to 8-bit levels."""

    QNN = 0
    SIM_QNN = 1
    MIXED_QNN = 2


class QNNState(Enum):
    """The steps of a quantization-aware training."""

    NON_QNN = 0
    RECORDING = 1
    TRAINING = 2
    DEPLOYMENT = 3


class RecorderPosition(Enum):
    """The places of recorders: before the functions, or after them as well."""

    BEFORE = 0
    BOTH = 1


class RoundingMethod(Enum):
    """The ways to make a power of two of a scale."""

    CEIL = "CEIL"
    ROUND = "ROUND"
    FLOOR = "FLOOR"
    NOTROUND = "NOTROUND"
