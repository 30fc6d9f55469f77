"""Profilers of time and memory: `Profiler` for training as it runs, `GraphProfiler` for single functions."""

from nn_core.utils.profiler.graphs import GraphProfiler as GraphProfiler
from nn_core.utils.profiler.graphs import GraphProfilerCsvWriter as GraphProfilerCsvWriter
from nn_core.utils.profiler.graphs import ProfileStat as ProfileStat
from nn_core.utils.profiler.graphs import convert_time_scale as convert_time_scale
from nn_core.utils.profiler.memory import Moment as Moment
from nn_core.utils.profiler.plans import Profiler as Profiler
from nn_core.utils.profiler.plans import Row as Row
