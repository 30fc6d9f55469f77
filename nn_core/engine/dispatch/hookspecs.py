"""The hooks of plugins, and the declarations that they return.

A plugin is a module named by an entry point of the group ``nn_core.extensions``. It states ``PLUGIN_API = 2`` and
``REQUIRES_CORE = ">=0.1,<1"``, and implements one hook or more. Importing it must be free of work: no driver, no
shared library, no device.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pluggy

from nn_core.context import Context
from nn_core.engine.dispatch.kinds import (
    CommandInfo,
    CommunicatorInfo,
    CompositeInfo,
    DataInfo,
    FileFormatInfo,
    InitializerInfo,
    ParametricFunctionInfo,
    PassInfo,
    SchedulerInfo,
    SolverInfo,
    TracerInfo,
    TrainingInfo,
    ViewerInfo,
    WordInfo,
)
from nn_core.engine.error_messages.refusal import fitted_constructor
from nn_core.typing import Backend, Kernel, Refusal

#: The numbers that plugins may state as PLUGIN_API. A new one comes with each change of the door that old plugins need not
#: know; the oldest goes when plugins written for it could not work any more. From 2 on API names start with the name of
#: their plugin, or are in its vendor namespace.
PLUGIN_APIS: Final = range(1, 3)

hookspec: Final = pluggy.HookspecMarker("nn_core")
hookimpl: Final = pluggy.HookimplMarker("nn_core")


def always_available() -> Refusal | None:
    """Return the probe of a backend that needs no device."""
    return None


def no_devices() -> Sequence[str]:
    """Return the devices of a backend that does not tell them apart."""
    return ()


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class BackendInfo:
    """A backend, described before anything of it is loaded.

    Attributes:
        name: The part before the colon in a context: the name of the plugin's entry point, or that and a suffix
            after a dot (``acme``, ``acme.sparse``).
        array_class: The device family. Backends that work on the same arrays share one.
        load: Makes the backend; called once, when it is first used. Drivers and libraries are loaded here.
        probe: Says in milliseconds why the backend cannot run on this machine, or None.
        description: One line for tables.
        priority: The higher, the sooner ``get_extension_context("auto")`` takes the backend.
        context: ``context(*, device_id=..., type_config=..., ...)`` makes the context that the backend recommends,
            with fallbacks after it in the list. Every keyword is spelled out. Default: this backend alone.
        devices: One line a device, for tables.

    Example:
        >>> from nn_core.ext import BackendInfo, Refusal, hookimpl
        >>> def load():
        ...     from nn_ext_acme.backend import AcmeBackend
        ...     return AcmeBackend()
        >>> @hookimpl
        ... def nn_core_backends():
        ...     return [BackendInfo(name="acme", array_class="AcmeArray", load=load, probe=lambda: Refusal("no device"))]
        >>> nn_core_backends()[0].probe()
        Refusal(reason='no device')
    """

    name: str
    array_class: str
    load: Callable[[], Backend]
    probe: Callable[[], Refusal | None] = always_available
    description: str = ""
    priority: int = 0
    context: Callable[..., Context] | None = None
    devices: Callable[[], Sequence[str]] = no_devices


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionPackage:
    """Operators that a plugin adds.

    The shape rules, gradient rules and reference kernels belong to modules that the plugin's module imports; the
    decorators ``shape_rule``, ``gradient`` and ``kernel`` have registered them by the time the hook is called.

    Attributes:
        spec: The specifications: path of a YAML file, or YAML text.
        kernels: Kernels of these functions for backends of others, ``{backend: {function: kernel}}``.
        overlays: Kernels of functions of others for backends of others, likewise. They are asked before the backend's
            own kernel, which runs the calls that they refuse.
        samples: Name of the module that adds samples of these functions by ``nn_core.testing.sample``; the conformance kit
            imports it.

    Example:
        >>> from pathlib import Path
        >>> from nn_core.ext import FunctionPackage, hookimpl
        >>> @hookimpl
        ... def nn_core_functions():
        ...     return [FunctionPackage(spec=Path("functions.yaml"), samples="nn_ext_acme.samples")]
        >>> nn_core_functions()[0].samples
        'nn_ext_acme.samples'
    """

    spec: Path | str = ""
    kernels: Mapping[str, Mapping[str, Kernel]] = field(default_factory=dict)
    overlays: Mapping[str, Mapping[str, Kernel]] = field(default_factory=dict)
    samples: str = ""


@hookspec
def nn_core_backends() -> Sequence[BackendInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the backends of the plugin, without loading them."""


@hookspec
def nn_core_functions() -> Sequence[FunctionPackage]:  # type: ignore[empty-body]  # a declaration
    """Name the operators of the plugin."""


@hookspec
def nn_core_file_formats() -> Sequence[FileFormatInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the formats of files of the plugin."""


@hookspec
def nn_core_commands() -> Sequence[CommandInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the subcommands of ``nn-core`` of the plugin."""


@hookspec
def nn_core_training() -> Sequence[TrainingInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the parts of the trainer of the plugin."""


@hookspec
def nn_core_communicators() -> Sequence[CommunicatorInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the engines of data-parallel training of the plugin."""


@hookspec
def nn_core_composites() -> Sequence[CompositeInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the functions of the plugin that are made of other functions."""


@hookspec
def nn_core_parametric_functions() -> Sequence[ParametricFunctionInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the layers of the plugin."""


@hookspec
def nn_core_solvers() -> Sequence[SolverInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the solvers of the plugin."""


@hookspec
def nn_core_initializers() -> Sequence[InitializerInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the initializers of the plugin."""


@hookspec
def nn_core_schedulers() -> Sequence[SchedulerInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the learning-rate schedulers of the plugin."""


@hookspec
def nn_core_data() -> Sequence[DataInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the sources, caches and readers of cells of the plugin."""


@hookspec
def nn_core_passes() -> Sequence[PassInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the graph passes and fusions of the plugin."""


@hookspec
def nn_core_viewers() -> Sequence[ViewerInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the viewers and monitors of the plugin."""


@hookspec
def nn_core_tracers() -> Sequence[TracerInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the tracers of functions of the plugin."""


@hookspec
def nn_core_words() -> Sequence[WordInfo]:  # type: ignore[empty-body]  # a declaration
    """Name the topics and tags of operators of the plugin."""
