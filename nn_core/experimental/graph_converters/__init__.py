"""Converters of graphs: ``GraphConverter([TestModeModifier()]).convert(y)`` makes a changed copy of the graph of `y`."""

from nn_core.experimental.graph_converters.batch_norm_batchstat import BatchNormBatchStatModifier as BatchNormBatchStatModifier
from nn_core.experimental.graph_converters.batch_normalization_folding import AddBiasModifier as AddBiasModifier
from nn_core.experimental.graph_converters.batch_normalization_folding import (
    BatchNormalizationFoldingModifier as BatchNormalizationFoldingModifier,
)
from nn_core.experimental.graph_converters.batch_normalization_folding import (
    BatchNormalizationFoldingModifierInner as BatchNormalizationFoldingModifierInner,
)
from nn_core.experimental.graph_converters.batch_normalization_folding import (
    BatchNormalizationFoldingOppositeModifierInner as BatchNormalizationFoldingOppositeModifierInner,
)
from nn_core.experimental.graph_converters.batch_normalization_self_folding import (
    BatchNormalizationSelfFoldingModifier as BatchNormalizationSelfFoldingModifier,
)
from nn_core.experimental.graph_converters.channel_first import ChannelFirstModifier as ChannelFirstModifier
from nn_core.experimental.graph_converters.channel_last import ChannelLastModifier as ChannelLastModifier
from nn_core.experimental.graph_converters.fused_batch_normalization import (
    FusedBatchNormalizationModifier as FusedBatchNormalizationModifier,
)
from nn_core.experimental.graph_converters.graph_converter import FunctionModifier as FunctionModifier
from nn_core.experimental.graph_converters.graph_converter import GraphConverter as GraphConverter
from nn_core.experimental.graph_converters.identity import IdentityModifier as IdentityModifier
from nn_core.experimental.graph_converters.no_grad import NoGradModifier as NoGradModifier
from nn_core.experimental.graph_converters.prune import PruningModifier as PruningModifier
from nn_core.experimental.graph_converters.quantize import (
    QuantizeNonQNNToRecordingModifier as QuantizeNonQNNToRecordingModifier,
)
from nn_core.experimental.graph_converters.quantize import (
    QuantizeRecordingToTrainingModifier as QuantizeRecordingToTrainingModifier,
)
from nn_core.experimental.graph_converters.remove_function import RemoveFunctionModifier as RemoveFunctionModifier
from nn_core.experimental.graph_converters.test_mode import TestModeModifier as TestModeModifier
from nn_core.experimental.graph_converters.unfused_batch_normalization import (
    UnfusedBatchNormalizationModifier as UnfusedBatchNormalizationModifier,
)
