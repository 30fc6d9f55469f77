"""The description of this package for the core: names, and where things are. Nothing here does any work."""

from collections.abc import Sequence
from pathlib import Path

from nn_core.ext import (
    CommandInfo,
    CommunicatorInfo,
    CompositeInfo,
    DataInfo,
    FileFormatInfo,
    FunctionPackage,
    InitializerInfo,
    ParametricFunctionInfo,
    PassInfo,
    SchedulerInfo,
    SolverInfo,
    TracerInfo,
    TrainingInfo,
    ViewerInfo,
    WordInfo,
    hookimpl,
)
from nn_ext_kinds.kernels import Abs

PLUGIN_API = 2
REQUIRES_CORE = ">=0.1,<1"
REQUIRES_PLUGINS = ("reference",)


@hookimpl
def nn_core_file_formats() -> Sequence[FileFormatInfo]:
    """Parameters as JSON: ``nn.save_parameters("weights.jsonw")``."""
    where = "nn_ext_kinds.formats"
    return [FileFormatInfo(name="jsonw", extensions=(".jsonw",), read=f"{where}:read", write=f"{where}:write")]


@hookimpl
def nn_core_commands() -> Sequence[CommandInfo]:
    """``nn-core sizes FILE``."""
    return [CommandInfo(name="sizes", help="Print the sizes of saved parameters.", target="nn_ext_kinds.commands:sizes")]


@hookimpl
def nn_core_training() -> Sequence[TrainingInfo]:
    """Return a logger for the trainer."""
    return [TrainingInfo(name="LossLogger", role="logger", target="nn_ext_kinds.training:LossLogger")]


@hookimpl
def nn_core_communicators() -> Sequence[CommunicatorInfo]:
    """Return an engine of communicators, for one process."""
    return [CommunicatorInfo(name="counted", target="nn_ext_kinds.training:Counted")]


@hookimpl
def nn_core_composites() -> Sequence[CompositeInfo]:
    """``F.kinds_mean_square(x)``."""
    return [CompositeInfo(name="kinds_mean_square", target="nn_ext_kinds.functions:mean_square")]


@hookimpl
def nn_core_parametric_functions() -> Sequence[ParametricFunctionInfo]:
    """``PF.kinds_scale(x)``."""
    return [ParametricFunctionInfo(name="kinds_scale", target="nn_ext_kinds.layers:scale")]


@hookimpl
def nn_core_solvers() -> Sequence[SolverInfo]:
    """``S.SignSgd(lr)``, with a multi-tensor kernel for the reference backend."""
    where = "nn_ext_kinds.solvers"
    return [SolverInfo(name="SignSgd", target=f"{where}:SignSgd", updates={"reference": f"{where}:SIGN_SGD"})]


@hookimpl
def nn_core_initializers() -> Sequence[InitializerInfo]:
    """``nn_core.initializer.CheckerInitializer(value)``."""
    return [InitializerInfo(name="CheckerInitializer", target="nn_ext_kinds.layers:CheckerInitializer")]


@hookimpl
def nn_core_schedulers() -> Sequence[SchedulerInfo]:
    """``TriangleScheduler`` in nn_core.utils.learning_rate_scheduler."""
    return [SchedulerInfo(name="TriangleScheduler", target="nn_ext_kinds.solvers:TriangleScheduler")]


@hookimpl
def nn_core_data() -> Sequence[DataInfo]:
    """Return a source of data, a cache, and a reader of the cells of tables."""
    where = "nn_ext_kinds.data"
    return [
        DataInfo(name="CountingSource", role="source", target=f"{where}:CountingSource"),
        DataInfo(name="FirstEpochCache", role="cache", target=f"{where}:FirstEpochCache"),
        DataInfo(name=".txt", role="cell", target=f"{where}:read_text"),
    ]


@hookimpl
def nn_core_passes() -> Sequence[PassInfo]:
    """Return a pass over graphs, and functions that are run as one."""
    where = "nn_ext_kinds.graphs"
    return [
        PassInfo(name="drop_dropout", role="pass", target=f"{where}:DropDropout"),
        PassInfo(name="sigmoid_then_relu", role="fusion", target=f"{where}:SigmoidThenRelu"),
    ]


@hookimpl
def nn_core_viewers() -> Sequence[ViewerInfo]:
    """Return a viewer of graphs, and a monitor."""
    where = "nn_ext_kinds.graphs"
    return [
        ViewerInfo(name="TextViewer", role="viewer", target=f"{where}:TextViewer"),
        ViewerInfo(name="LastValueMonitor", role="monitor", target=f"{where}:LastValueMonitor"),
    ]


@hookimpl
def nn_core_tracers() -> Sequence[TracerInfo]:
    """Return a counter of calls: ``with trace_calls("CallCounter") as counter: ...``."""
    return [TracerInfo(name="CallCounter", target="nn_ext_kinds.graphs:CallCounter")]


@hookimpl
def nn_core_words() -> Sequence[WordInfo]:
    """Return a topic and a tag of operators: ``nn-core ops --topic kinds.counting``."""
    return [
        WordInfo(name="kinds.counting", role="topic", description="Functions that count."),
        WordInfo(name="kinds.exact", role="tag", description="Results are exact in every dtype."),
    ]


@hookimpl
def nn_core_functions() -> Sequence[FunctionPackage]:
    """Return an operator with a topic and a tag of this plugin, and an overlay: a kernel for operator and backend of the
    core.
    """
    spec = Path(__file__).with_name("functions.yaml")
    return [FunctionPackage(spec=spec, overlays={"reference": {"Abs": Abs()}}, samples="nn_ext_kinds.samples")]
