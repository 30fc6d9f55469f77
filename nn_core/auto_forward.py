"""Dynamic graphs: functions that are computed at the moment they are called."""

from nn_core.engine.graph.modes import auto_forward as auto_forward
from nn_core.engine.graph.modes import get_auto_forward as get_auto_forward
from nn_core.engine.graph.modes import set_auto_forward as set_auto_forward
