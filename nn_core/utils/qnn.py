"""The door ``utils.qnn``: quantization-aware training.

`QATScheduler` changes the networks that it is given: first recorders note the range of what goes into layers, then values and
parameters are rounded to 8-bit levels in these ranges, with gradients that pass through.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from nn_core.experimental.quantization.choices import PrecisionMode as PrecisionMode
    from nn_core.experimental.quantization.choices import QNNState as QNNState
    from nn_core.experimental.quantization.config import QATConfig as QATConfig
    from nn_core.experimental.quantization.config import QATTensorRTConfig as QATTensorRTConfig
    from nn_core.experimental.quantization.ranks import FunctionsRankRecorder as FunctionsRankRecorder
    from nn_core.experimental.quantization.recorders import AbsMaxRecorder as AbsMaxRecorder
    from nn_core.experimental.quantization.recorders import MaxMaxRecorder as MaxMaxRecorder
    from nn_core.experimental.quantization.recorders import MaxMvaRecorder as MaxMvaRecorder
    from nn_core.experimental.quantization.recorders import MinMaxMinMaxRecorder as MinMaxMinMaxRecorder
    from nn_core.experimental.quantization.recorders import MinMaxMvaRecorder as MinMaxMvaRecorder
    from nn_core.experimental.quantization.recorders import abs_max_recorder as abs_max_recorder
    from nn_core.experimental.quantization.recorders import max_max_recorder as max_max_recorder
    from nn_core.experimental.quantization.recorders import max_mva_recorder as max_mva_recorder
    from nn_core.experimental.quantization.recorders import minmax_minmax_recorder as minmax_minmax_recorder
    from nn_core.experimental.quantization.recorders import minmax_mva_recorder as minmax_mva_recorder
    from nn_core.experimental.quantization.scales import AbsMaxRecorderCallback as AbsMaxRecorderCallback
    from nn_core.experimental.quantization.scales import MaxMaxRecorderCallback as MaxMaxRecorderCallback
    from nn_core.experimental.quantization.scales import MaxMvaRecorderCallback as MaxMvaRecorderCallback
    from nn_core.experimental.quantization.scales import MinMaxMinMaxRecorderCallback as MinMaxMinMaxRecorderCallback
    from nn_core.experimental.quantization.scales import MinMaxMvaRecorderCallback as MinMaxMvaRecorderCallback
    from nn_core.experimental.quantization.scheduler import QATScheduler as QATScheduler

__all__ = [
    "AbsMaxRecorder",
    "AbsMaxRecorderCallback",
    "FunctionsRankRecorder",
    "MaxMaxRecorder",
    "MaxMaxRecorderCallback",
    "MaxMvaRecorder",
    "MaxMvaRecorderCallback",
    "MinMaxMinMaxRecorder",
    "MinMaxMinMaxRecorderCallback",
    "MinMaxMvaRecorder",
    "MinMaxMvaRecorderCallback",
    "PrecisionMode",
    "QATConfig",
    "QATScheduler",
    "QATTensorRTConfig",
    "QNNState",
    "abs_max_recorder",
    "max_max_recorder",
    "max_mva_recorder",
    "minmax_minmax_recorder",
    "minmax_mva_recorder",
]

#: The names by the module that has them.
_MODULES: Final = {
    "choices": ("PrecisionMode", "QNNState"),
    "config": ("QATConfig", "QATTensorRTConfig", "qat_default_config"),
    "ranks": ("FunctionsRankRecorder",),
    "recorders": (
        "AbsMaxRecorder",
        "MaxMaxRecorder",
        "MaxMvaRecorder",
        "MinMaxMinMaxRecorder",
        "MinMaxMvaRecorder",
        "abs_max_recorder",
        "max_max_recorder",
        "max_mva_recorder",
        "minmax_minmax_recorder",
        "minmax_mva_recorder",
    ),
    "scales": (
        "AbsMaxRecorderCallback",
        "MaxMaxRecorderCallback",
        "MaxMvaRecorderCallback",
        "MinMaxMinMaxRecorderCallback",
        "MinMaxMvaRecorderCallback",
    ),
    "scheduler": ("QATScheduler",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"nn_core.experimental.quantization.{module}"), name)
    raise AttributeError(f"module 'nn_core.utils.qnn' has no attribute {name!r}")
