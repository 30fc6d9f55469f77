"""Look at graphs while they run: values, numbers that are none, times."""

from nn_core.utils.inspection.base import FunctionHookCallbackBase as FunctionHookCallbackBase
from nn_core.utils.inspection.pretty_print import PrettyPrinter as PrettyPrinter
from nn_core.utils.inspection.pretty_print import pprint as pprint
from nn_core.utils.inspection.profile import CpuTimerCallback as CpuTimerCallback
from nn_core.utils.inspection.profile import TimeProfiler as TimeProfiler
from nn_core.utils.inspection.value_trace import NanInfTracer as NanInfTracer
from nn_core.utils.inspection.views import view as view
