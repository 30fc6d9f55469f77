"""Extensions of the trainer: evaluate, schedule, watch, write, save."""

from nn_core.training.extensions.evaluator import Evaluator as Evaluator
from nn_core.training.extensions.phases import StepTimes as StepTimes
from nn_core.training.extensions.pictures import Plot as Plot
from nn_core.training.extensions.plateau import ReduceOnPlateau as ReduceOnPlateau
from nn_core.training.extensions.saving import Checkpoint as Checkpoint
from nn_core.training.extensions.tables import Log as Log
from nn_core.training.extensions.tables import Print as Print
from nn_core.training.extensions.terminal import Progress as Progress
from nn_core.training.extensions.values import FailOnNonFinite as FailOnNonFinite
from nn_core.training.extensions.values import Schedule as Schedule
from nn_core.training.extensions.values import Statistics as Statistics
from nn_core.training.extensions.values import observe as observe
