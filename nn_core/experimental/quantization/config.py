"""The settings of quantization-aware training."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from nn_core.errors import ArgumentError
from nn_core.experimental.quantization import choices, scales
from nn_core.experimental.quantization.choices import PrecisionMode

_SUPPORTED: Final = {"precision_mode": PrecisionMode.SIM_QNN, "dtype": np.int8}


class QATConfig:
    """The settings of a quantization-aware training, which are attributes.

    Attributes:
        bn_folding: Fold batch normalizations into the layers beside them before recording.
        bn_self_folding: Turn the batch normalizations that are left into multiplications and additions.
        channel_last: No effect: functions say it.
        channel_wise: No effect: a range is that of a whole array.
        niter_to_recording: The number of steps before recording begins.
        niter_to_training: The number of steps before training with quantized values begins; -1: never.
        precision_mode: PrecisionMode.SIM_QNN.
        record_layers: Names of the functions whose inputs are quantized; empty: all.
        skip_inputs_layers: Names of functions that are left as they are where no other layer comes before.
        skip_outputs_layers: The same where no other layer follows.
        skip_bias: Leave biases as they are.
        recorder_activation: The class that records values.
        recorder_weight: The class that records parameters.
        recorder_position: choices.RecorderPosition.BEFORE, or BOTH: results are recorded as well.
        pow2: How scales become powers of two, a RoundingMethod.
        round_mode: Of `nn_core.functions.quantize_linear`.
        narrow_range: Leave the lowest level out.
        dtype: numpy.int8.
        zero_point: No effect: the level of zero is 0.
        learning_rate_scale: What the learning rate is multiplied by when training with quantized values begins.
        ext_name: No effect.
    """

    RecorderPosition = choices.RecorderPosition
    RoundingMethod = choices.RoundingMethod

    bn_folding: bool = False
    bn_self_folding: bool = False
    channel_last: bool = False
    channel_wise: bool = False
    niter_to_recording: int = 0
    niter_to_training: int = -1
    precision_mode: PrecisionMode = PrecisionMode.SIM_QNN
    skip_bias: bool = False
    recorder_position: choices.RecorderPosition = choices.RecorderPosition.BEFORE
    pow2: choices.RoundingMethod = choices.RoundingMethod.ROUND
    round_mode: str = "HALF_TO_EVEN"
    narrow_range: bool = False
    dtype: Any = np.int8
    zero_point: bool = False
    learning_rate_scale: float = 0.1
    ext_name: str = "cudnn"

    record_layers: Sequence[str] = ()
    skip_inputs_layers: Sequence[str] = ("Convolution", "Deconvolution")
    skip_outputs_layers: Sequence[str] = ("Affine",)
    recorder_activation: Any = scales.MaxMvaRecorderCallback
    recorder_weight: Any = scales.MinMaxMinMaxRecorderCallback

    def __init__(self) -> None:
        # lists of its own, which programs append to
        self.record_layers = list(self.record_layers)
        self.skip_inputs_layers = list(self.skip_inputs_layers)
        self.skip_outputs_layers = list(self.skip_outputs_layers)

    def require_supported(self, function: str) -> None:
        """Check the settings of which one value only is there.

        Raises:
            ArgumentError: when one of them has another value.
        """
        for name, only in _SUPPORTED.items():
            if getattr(self, name) is not only:
                raise ArgumentError(f"{function}: config.{name} must be {only}, got {getattr(self, name)!r}")


class QATTensorRTConfig(QATConfig):
    """The settings for networks that TensorRT runs: normalizations are folded, and layers and activations quantized."""

    bn_folding = True
    bn_self_folding = True
    record_position = choices.RecorderPosition.BEFORE

    record_layers = ("Convolution", "Deconvolution", "Affine", "BatchMatmul", "ReLU")


#: The configuration of NNabla's `QATScheduler` unless another one is given.
qat_default_config: Final = QATTensorRTConfig()
