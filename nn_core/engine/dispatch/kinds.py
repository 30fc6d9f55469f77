"""The kinds of extension beside backends and operators: what describes each before it is loaded, and one row a kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from re import Pattern
from re import compile as pattern
from typing import Any, Final, TypeAlias

from nn_core.engine.error_messages.refusal import fitted_constructor

#: The target of a description: the object itself, or "package.module:attribute", which is imported when it is first used.
ImportTarget: TypeAlias = str | Callable[..., Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionInfo:
    """The fields of all descriptions.

    Attributes:
        name: Name that users type.
        description: One line for tables.
    """

    name: str
    description: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names under which it is found."""
        return (self.name,)


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormatInfo(ExtensionInfo):
    """A format of files, found by their extension; leave out what it cannot do.

    Attributes:
        extensions: Lower case, with the dot: (".nnp",).
        read: ``read(file) -> {name: Entry}``, parameters from a binary file.
        write: ``write(file, entries)``, parameters to a binary file.
        read_network: ``read_network(path, **settings)``, a network.
        write_network: ``write_network(path, contents, **settings)``, likewise.

    Example:
        >>> from nn_core.ext import FileFormatInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_file_formats():
        ...     formats = "nn_ext_acme.formats"
        ...     return [FileFormatInfo(name="acme", extensions=(".acme",), read=f"{formats}:read", write=f"{formats}:write")]
        >>> nn_core_file_formats()[0].extensions
        ('.acme',)
    """

    extensions: tuple[str, ...]
    read: ImportTarget | None = None
    write: ImportTarget | None = None
    read_network: ImportTarget | None = None
    write_network: ImportTarget | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The extensions."""
        return self.extensions


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetInfo(ExtensionInfo):
    """A description of one object.

    Attributes:
        target: The object.
    """

    target: ImportTarget


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class CommandInfo(TargetInfo):
    """A subcommand of ``nn-core``; `target` is a click command.

    Attributes:
        help: Text for ``nn-core --help``; one sentence.

    Example:
        >>> from nn_core.ext import CommandInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_commands():
        ...     return [CommandInfo(name="upload", help="Upload a network.", target="nn_ext_acme.commands:upload")]
        >>> nn_core_commands()[0].help
        'Upload a network.'
    """

    help: str


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeInfo(TargetInfo):
    """A function made of other functions, found as ``F.name``; `target` is a function of Variables or NdArrays.

    It is called again with the same arguments where the shapes of Variables change, so it must not have other effects.

    Example:
        >>> from nn_core.ext import CompositeInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_composites():
        ...     return [CompositeInfo(name="acme_swish", target=lambda x: x * F.sigmoid(x))]
        >>> nn_core_composites()[0].target(nn.Variable((2, 3))).shape
        (2, 3)
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class ParametricFunctionInfo(TargetInfo):
    """A layer, found as ``PF.name``; `target` is a function, usually made by ``parametric_function_api``.

    Example:
        >>> from nn_core.ext import ParametricFunctionInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_parametric_functions():
        ...     return [ParametricFunctionInfo(name="acme_dense", target="nn_ext_acme.layers:acme_dense")]
        >>> nn_core_parametric_functions()[0].name
        'acme_dense'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class SolverInfo(TargetInfo):
    """A solver, found as ``S.name``; `target` is a subclass of ``nn_core.solver.Solver``.

    Attributes:
        updates: Multi-tensor kernels of its rule, by backend; see ``nn_core.solvers.update.UpdateKernel``.

    Example:
        >>> from nn_core.ext import SolverInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_solvers():
        ...     return [SolverInfo(name="AcmeSgd", target="nn_ext_acme.solvers:AcmeSgd")]
        >>> nn_core_solvers()[0].name
        'AcmeSgd'
    """

    updates: Mapping[str, ImportTarget] = field(default_factory=dict)


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class InitializerInfo(TargetInfo):
    """An initializer, found as ``nn_core.initializer.name``; `target` makes a callable that takes a shape.

    Example:
        >>> from nn_core.ext import InitializerInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_initializers():
        ...     return [InitializerInfo(name="AcmeOnes", target=lambda: np.ones)]
        >>> nn_core_initializers()[0].target()((2,)).tolist()
        [1.0, 1.0]
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerInfo(TargetInfo):
    """A learning-rate scheduler, found in ``nn_core.utils.learning_rate_scheduler``; `target` is its class.

    Example:
        >>> from nn_core.ext import SchedulerInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_schedulers():
        ...     return [SchedulerInfo(name="AcmeScheduler", target="nn_ext_acme.training:AcmeScheduler")]
        >>> nn_core_schedulers()[0].name
        'AcmeScheduler'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicatorInfo(TargetInfo):
    """An engine of data-parallel training; `target` makes an `nn_core.communicators.Engine` from a context.

    Attributes:
        families: Array classes whose arrays the engine takes as they are; others go through the memory of the host.
        probe: Says in milliseconds why the engine cannot work on this machine, or None.
        priority: Of several engines that can work, the one with the highest is taken.
        devices: ``devices()`` is what ``nn-core doctor`` tells of its libraries, a line each.

    Example:
        >>> from nn_core.ext import CommunicatorInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_communicators():
        ...     return [CommunicatorInfo(name="acme", target="nn_ext_acme.engine:AcmeEngine", families=("AcmeArray",))]
        >>> nn_core_communicators()[0].families
        ('AcmeArray',)
    """

    families: tuple[str, ...] = ()
    probe: ImportTarget | None = None
    priority: int = 0
    devices: ImportTarget | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleInfo(TargetInfo):
    """A description of one of several roles of its kind.

    Attributes:
        role: The role.
    """

    role: str


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInfo(RoleInfo):
    """A part of the trainer, which ``trainer.extend(name)`` adds; `target` is its class.

    `role` is "extension", or "logger": an object with ``log(iteration, name, value)``, which gets means of reported values.

    Example:
        >>> from nn_core.ext import TrainingInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_training():
        ...     return [TrainingInfo(name="acme_log", role="logger", target="nn_ext_acme.training:AcmeLog")]
        >>> nn_core_training()[0].role
        'logger'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class DataInfo(RoleInfo):
    """A part of data loading.

    `role` is one of

    - "source": `target` is a subclass of ``DataSource``, found in ``nn_core.utils.data_source``;
    - "cache": ``target(source, shuffle=..., rng=...)`` makes a source that keeps what it has read of another, for
      ``data_iterator(..., cache=name)``;
    - "cell": ``target(path)`` reads the array in a file, for cells of ``CsvDataSource``; the name is the extension (".npz").

    Example:
        >>> from nn_core.ext import DataInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_data():
        ...     return [DataInfo(name=".acme", role="cell", target=lambda path: np.fromfile(path, np.float32))]
        >>> nn_core_data()[0].role
        'cell'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class PassInfo(RoleInfo):
    """A change of graphs.

    `role` is one of

    - "pass": `target` is a subclass of ``FunctionModifier``, or a function from a list of variables to those that take their
      place, for ``GraphConverter([name])``;
    - "fusion": `target` makes a `nn_core.ext.Fusion`, or an object with a `chain` of names, a `function` and
      ``settings(*args)``, by which passes without gradients run several functions as one.

    Example:
        >>> from nn_core.ext import PassInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_passes():
        ...     return [PassInfo(name="acme_quantize", role="pass", target="nn_ext_acme.graphs:Quantize")]
        >>> nn_core_passes()[0].role
        'pass'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerInfo(RoleInfo):
    """A way to look at things.

    `role` is "viewer": `target` makes an object with ``view(variable)``, for ``nn_core.utils.inspection.view(y, name)``; or
    "monitor": a class that is found in ``nn_core.monitor``.

    Example:
        >>> from nn_core.ext import ViewerInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_viewers():
        ...     return [ViewerInfo(name="acme_view", role="viewer", target="nn_ext_acme.viewers:View")]
        >>> nn_core_viewers()[0].role
        'viewer'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class TracerInfo(TargetInfo):
    """A tracer of functions: profilers, counters, exporters to systems that watch programs.

    `target` is called with a ``TracedCall`` after each run of a function, or a class of objects that are, for
    ``nn_core.ext.trace_calls(name)``.

    Example:
        >>> from nn_core.ext import TracerInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_tracers():
        ...     return [TracerInfo(name="acme_spans", target="nn_ext_acme.spans:Exporter")]
        >>> nn_core_tracers()[0].name
        'acme_spans'
    """


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class WordInfo(ExtensionInfo):
    """A word for specifications of operators, "<plugin>.<word>"; `description` says what it means.

    Attributes:
        role: "topic", under which operators are listed, or "tag", a property that other programs ask for.

    Example:
        >>> from nn_core.ext import WordInfo, hookimpl
        >>> @hookimpl
        ... def nn_core_words():
        ...     return [WordInfo(name="acme.graphs", role="topic", description="Functions of graphs.")]
        >>> nn_core_words()[0].role
        'topic'
    """

    role: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table of kinds.

    Attributes:
        key: Name of the kind in the index of packages and in `Plugins.offer`; the hook is ``nn_core_<key>``.
        info: The description that the hook returns.
        noun: Its name in messages.
        names: Pattern of the keys.
        roles: Values of `role`, for descriptions that have one.
        own: Place of the core's own objects of the kind: a module, or "module:TABLE"; plugins cannot offer these names.
        is_prefixed: Whether names start with that of their plugin and a dot.
        has_api_names: Whether names are those of functions that programs call: they start with that of their plugin and an
            underscore, or are in its vendor namespace.
    """

    key: str
    info: type[ExtensionInfo]
    noun: str
    names: Pattern[str] = pattern(r"[A-Za-z][A-Za-z0-9_]{,99}")
    roles: tuple[str, ...] = ()
    own: str = ""
    is_prefixed: bool = False
    has_api_names: bool = False

    @property
    def hook(self) -> str:
        """Name of the hook."""
        return f"nn_core_{self.key}"


_ROWS: Final = (
    Kind("file_formats", FileFormatInfo, "file format", pattern(r"(\.[a-z0-9_]+)+"), own="nn_core.files:FORMATS"),
    Kind("commands", CommandInfo, "command", pattern(r"[a-z][a-z0-9_-]*")),
    Kind("training", TrainingInfo, "part of the trainer", roles=("extension", "logger")),
    Kind("communicators", CommunicatorInfo, "communicator", pattern(r"[a-z][a-z0-9_]*")),
    Kind(
        "composites",
        CompositeInfo,
        "function",
        pattern(r"[a-z][a-z0-9_]*"),
        own="nn_core.functions:__all__",
        has_api_names=True,
    ),
    Kind(
        "parametric_functions",
        ParametricFunctionInfo,
        "parametric function",
        own="nn_core.parametric_functions",
        has_api_names=True,
    ),
    Kind("solvers", SolverInfo, "solver", own="nn_core.solvers"),
    Kind("initializers", InitializerInfo, "initializer", own="nn_core.initializer"),
    Kind("schedulers", SchedulerInfo, "scheduler", own="nn_core.utils.learning_rate_scheduler"),
    Kind("data", DataInfo, "part of data loading", pattern(r"\.?[A-Za-z][A-Za-z0-9_]{,99}"), ("source", "cache", "cell")),
    Kind("passes", PassInfo, "graph pass", roles=("pass", "fusion")),
    Kind("viewers", ViewerInfo, "viewer", roles=("viewer", "monitor"), own="nn_core.monitor"),
    Kind("tracers", TracerInfo, "tracer"),
    Kind("words", WordInfo, "word", pattern(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*"), ("topic", "tag"), is_prefixed=True),
)
#: Every kind that is only offered by name, by its key. Backends and functions have rules of their own.
KINDS: Final[Mapping[str, Kind]] = {kind.key: kind for kind in _ROWS}
