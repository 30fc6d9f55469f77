"""Training: exact checkpoints, triggers, a trainer; each part works without the others.

Modules are imported when a name of theirs is first used.
"""

from typing import TYPE_CHECKING, Final

from nn_core.engine.dispatch.attributes import lazy_attributes

if TYPE_CHECKING:
    from nn_core.training.checkpoint import checkpoints_in as checkpoints_in
    from nn_core.training.checkpoint import load_checkpoint as load_checkpoint
    from nn_core.training.checkpoint import load_newest_checkpoint as load_newest_checkpoint
    from nn_core.training.checkpoint import save_checkpoint as save_checkpoint
    from nn_core.training.ema import MovingAverage as MovingAverage
    from nn_core.training.extensions import Checkpoint as Checkpoint
    from nn_core.training.extensions import Evaluator as Evaluator
    from nn_core.training.extensions import FailOnNonFinite as FailOnNonFinite
    from nn_core.training.extensions import Log as Log
    from nn_core.training.extensions import Plot as Plot
    from nn_core.training.extensions import Print as Print
    from nn_core.training.extensions import Progress as Progress
    from nn_core.training.extensions import ReduceOnPlateau as ReduceOnPlateau
    from nn_core.training.extensions import Schedule as Schedule
    from nn_core.training.extensions import Statistics as Statistics
    from nn_core.training.extensions import StepTimes as StepTimes
    from nn_core.training.extensions import observe as observe
    from nn_core.training.finders import BatchSizes as BatchSizes
    from nn_core.training.finders import LearningRates as LearningRates
    from nn_core.training.finders import find_batch_size as find_batch_size
    from nn_core.training.finders import find_learning_rate as find_learning_rate
    from nn_core.training.fitting import Fit as Fit
    from nn_core.training.fitting import fit as fit
    from nn_core.training.hooks import clip_values as clip_values
    from nn_core.training.hooks import gradient_noise as gradient_noise
    from nn_core.training.hooks import lasso as lasso
    from nn_core.training.loss_scale import LossScale as LossScale
    from nn_core.training.losses import cosine_embedding_loss as cosine_embedding_loss
    from nn_core.training.losses import cross_entropy as cross_entropy
    from nn_core.training.losses import ctc_loss as ctc_loss
    from nn_core.training.losses import focal_loss as focal_loss
    from nn_core.training.losses import triplet_loss as triplet_loss
    from nn_core.training.metrics import Accuracy as Accuracy
    from nn_core.training.metrics import Confusion as Confusion
    from nn_core.training.metrics import Metric as Metric
    from nn_core.training.metrics import RegressionErrors as RegressionErrors
    from nn_core.training.named_metrics import AreaUnderCurve as AreaUnderCurve
    from nn_core.training.named_metrics import FunctionMetric as FunctionMetric
    from nn_core.training.predicting import predict as predict
    from nn_core.training.reporting import Observation as Observation
    from nn_core.training.reporting import observing as observing
    from nn_core.training.reporting import report as report
    from nn_core.training.reporting import report_scope as report_scope
    from nn_core.training.signals import StopSignals as StopSignals
    from nn_core.training.summary import Summary as Summary
    from nn_core.training.swa import WeightAverage as WeightAverage
    from nn_core.training.swa import renew_statistics as renew_statistics
    from nn_core.training.trainer import Trainer as Trainer
    from nn_core.training.triggers import Trigger as Trigger
    from nn_core.training.triggers import at as at
    from nn_core.training.triggers import every as every
    from nn_core.training.triggers import once as once
    from nn_core.training.updater import Updater as Updater
    from nn_core.training.watched_values import best as best
    from nn_core.training.watched_values import early_stop as early_stop

#: The public names, by module.
_MODULES: Final = {
    "checkpoint": ("checkpoints_in", "load_checkpoint", "load_newest_checkpoint", "save_checkpoint"),
    "ema": ("MovingAverage",),
    "extensions": (
        "Checkpoint",
        "Evaluator",
        "FailOnNonFinite",
        "Log",
        "Plot",
        "Print",
        "Progress",
        "ReduceOnPlateau",
        "Schedule",
        "Statistics",
        "StepTimes",
        "observe",
    ),
    "finders": ("BatchSizes", "LearningRates", "find_batch_size", "find_learning_rate"),
    "fitting": ("Fit", "fit"),
    "hooks": ("clip_values", "gradient_noise", "lasso"),
    "loss_scale": ("LossScale",),
    "losses": ("cosine_embedding_loss", "cross_entropy", "ctc_loss", "focal_loss", "triplet_loss"),
    "metrics": ("Accuracy", "Confusion", "Metric", "RegressionErrors"),
    "named_metrics": ("AreaUnderCurve", "FunctionMetric"),
    "predicting": ("predict",),
    "reporting": ("Observation", "observing", "report", "report_scope"),
    "signals": ("StopSignals",),
    "summary": ("Summary",),
    "swa": ("WeightAverage", "renew_statistics"),
    "trainer": ("Trainer",),
    "triggers": ("Trigger", "at", "every", "once"),
    "watched_values": ("best", "early_stop"),
    "updater": ("Updater",),
}

__all__ = [  # noqa: PLE0604  # the names are strings of the table
    *(name for names in _MODULES.values() for name in names),
]

__getattr__, __dir__ = lazy_attributes(__name__, _MODULES)
