"""NNabla's frame of a training program; ``nn_core.training`` is the trainer of nn_core."""

from nn_core.experimental.framework.data import Data as Data
from nn_core.experimental.framework.trainer import Trainer as Trainer
from nn_core.experimental.framework.worker import Worker as Worker
