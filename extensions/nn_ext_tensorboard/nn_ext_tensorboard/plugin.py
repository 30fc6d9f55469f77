"""The plugin module: one extension of the trainer, described without importing tensorboardX."""

from collections.abc import Sequence
from typing import Final

from nn_core.ext import TrainingInfo, hookimpl

PLUGIN_API: Final = 1
REQUIRES_CORE: Final = ">=0.1,<0.2"


@hookimpl
def nn_core_training() -> Sequence[TrainingInfo]:
    """``trainer.extend("tensorboard")``."""
    return [
        TrainingInfo(
            name="tensorboard",
            role="extension",
            description="scalars, histograms, images and the graph for TensorBoard",
            target="nn_ext_tensorboard.extension:TensorBoard",
        )
    ]
