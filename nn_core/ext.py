"""The one door for authors of plugins: everything that a backend or an operator package needs, and nothing else.

docs/plugins.md walks through a plugin; examples/plugin_minimal and examples/plugin_backend are complete ones.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from nn_core.context import Context as Context
from nn_core.engine.array_api_adapter import AdaptedBackend as AdaptedBackend
from nn_core.engine.arrays.casting import dtype_of as dtype_of
from nn_core.engine.dispatch.hookspecs import BackendInfo as BackendInfo
from nn_core.engine.dispatch.hookspecs import FunctionPackage as FunctionPackage
from nn_core.engine.dispatch.hookspecs import hookimpl as hookimpl
from nn_core.engine.dispatch.kinds import KINDS
from nn_core.engine.dispatch.kinds import CommandInfo as CommandInfo
from nn_core.engine.dispatch.kinds import CommunicatorInfo as CommunicatorInfo
from nn_core.engine.dispatch.kinds import CompositeInfo as CompositeInfo
from nn_core.engine.dispatch.kinds import DataInfo as DataInfo
from nn_core.engine.dispatch.kinds import FileFormatInfo as FileFormatInfo
from nn_core.engine.dispatch.kinds import InitializerInfo as InitializerInfo
from nn_core.engine.dispatch.kinds import ParametricFunctionInfo as ParametricFunctionInfo
from nn_core.engine.dispatch.kinds import PassInfo as PassInfo
from nn_core.engine.dispatch.kinds import SchedulerInfo as SchedulerInfo
from nn_core.engine.dispatch.kinds import SolverInfo as SolverInfo
from nn_core.engine.dispatch.kinds import TracerInfo as TracerInfo
from nn_core.engine.dispatch.kinds import TrainingInfo as TrainingInfo
from nn_core.engine.dispatch.kinds import ViewerInfo as ViewerInfo
from nn_core.engine.dispatch.kinds import WordInfo as WordInfo
from nn_core.engine.dispatch.known import KnownOperators as KnownOperators
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.plugin_manager import forget_prepared as forget_prepared
from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.engine.runtime.caches import Cache as Cache
from nn_core.engine.runtime.caches import register_cache as register_cache
from nn_core.engine.runtime.children import python_command as python_command
from nn_core.engine.runtime.children import repeated_command as repeated_command
from nn_core.engine.runtime.limits import end_time as end_time
from nn_core.engine.runtime.terminal import say as say
from nn_core.errors import ArgumentError as ArgumentError
from nn_core.errors import BackendNotFoundError as BackendNotFoundError
from nn_core.errors import BackendUnavailableError as BackendUnavailableError
from nn_core.errors import DTypeError as DTypeError
from nn_core.errors import FileFormatError as FileFormatError
from nn_core.errors import NNCoreError as NNCoreError
from nn_core.errors import PluginError as PluginError
from nn_core.errors import ShapeError as ShapeError
from nn_core.errors import one_line as one_line
from nn_core.errors import quoted as quoted
from nn_core.files import Entry as Entry
from nn_core.files import atomic_writer as atomic_writer
from nn_core.files import budget as budget
from nn_core.files import naming_file as naming_file
from nn_core.files import open_to_read as open_to_read
from nn_core.files import read_entries as read_entries
from nn_core.files import write_entries as write_entries
from nn_core.files.memory_file import MemoryFile as MemoryFile
from nn_core.files.memory_file import contents_of as contents_of
from nn_core.files.memory_file import crc32 as crc32
from nn_core.files.npy import read_npy as read_npy
from nn_core.files.paths import path_below as path_below
from nn_core.operators.reference.registry import kernel as kernel
from nn_core.operators.rules.fusions import ChainLink as ChainLink
from nn_core.operators.rules.fusions import Fusion as Fusion
from nn_core.operators.rules.fusions import LinkCall as LinkCall
from nn_core.operators.rules.registry import GradientCall as GradientCall
from nn_core.operators.rules.registry import gradient as gradient
from nn_core.operators.rules.registry import shape_rule as shape_rule
from nn_core.operators.spec.model import FunctionSpec as FunctionSpec
from nn_core.settings import WHEN_SWITCHED as WHEN_SWITCHED
from nn_core.settings import is_deterministic as is_deterministic
from nn_core.settings import is_enabled as is_enabled
from nn_core.settings import num_threads as num_threads
from nn_core.settings import set_num_threads as set_num_threads
from nn_core.settings import settings as settings
from nn_core.typing import Array as Array
from nn_core.typing import ArrayDesc as ArrayDesc
from nn_core.typing import Backend as Backend
from nn_core.typing import BackendExtras as BackendExtras
from nn_core.typing import Call as Call
from nn_core.typing import Kernel as Kernel
from nn_core.typing import KernelExtras as KernelExtras
from nn_core.typing import Namespace as Namespace
from nn_core.typing import Refusal as Refusal
from nn_core.typing import Runner as Runner
from nn_core.typing import Shape as Shape
from nn_core.typing import Step as Step

if TYPE_CHECKING:
    import nn_core.functions as F
    import nn_core.initializer as initializer
    import nn_core.parametric_functions as PF
    import nn_core.solvers as S
    from nn_core.engine.graph.memory import plan_memory as plan_memory
    from nn_core.engine.graph.parameter_sources import ParameterSource as ParameterSource
    from nn_core.engine.graph.parameter_sources import parameters_of as parameters_of
    from nn_core.engine.graph.tracing import TracedCall as TracedCall
    from nn_core.engine.graph.tracing import trace_calls as trace_calls
    from nn_core.io.parameters import parameter_of as parameter_of
    from nn_core.parameter import get_parameter_or_create as get_parameter_or_create
    from nn_core.parametric_functions import parametric_function_api as parametric_function_api
    from nn_core.variable import Variable as Variable

__all__ = [
    "PF",
    "WHEN_SWITCHED",
    "AdaptedBackend",
    "ArgumentError",
    "Array",
    "ArrayDesc",
    "Backend",
    "BackendInfo",
    "BackendNotFoundError",
    "BackendUnavailableError",
    "Cache",
    "Call",
    "ChainLink",
    "CommandInfo",
    "CommunicatorInfo",
    "CompositeInfo",
    "Context",
    "DTypeError",
    "DataInfo",
    "Entry",
    "F",
    "FileFormatError",
    "FileFormatInfo",
    "FunctionPackage",
    "FunctionSpec",
    "Fusion",
    "GradientCall",
    "InitializerInfo",
    "Kernel",
    "KnownOperators",
    "LinkCall",
    "MemoryFile",
    "NNCoreError",
    "Namespace",
    "ParameterSource",
    "ParametricFunctionInfo",
    "PassInfo",
    "PluginError",
    "Refusal",
    "Runner",
    "S",
    "SchedulerInfo",
    "Shape",
    "ShapeError",
    "SolverInfo",
    "Step",
    "TracedCall",
    "TracerInfo",
    "TrainingInfo",
    "Variable",
    "ViewerInfo",
    "WordInfo",
    "atomic_writer",
    "axis_lengths",
    "budget",
    "contents_of",
    "crc32",
    "dtype_of",
    "end_time",
    "find_extension",
    "function_spec",
    "get_parameter_or_create",
    "gradient",
    "hookimpl",
    "initializer",
    "is_deterministic",
    "is_enabled",
    "kernel",
    "list_offers",
    "naming_file",
    "num_threads",
    "one_line",
    "open_to_read",
    "parameter_of",
    "parameters_of",
    "parametric_function_api",
    "path_below",
    "plan_memory",
    "python_command",
    "quoted",
    "read_entries",
    "read_npy",
    "refresh",
    "register",
    "register_cache",
    "repeated_command",
    "say",
    "set_num_threads",
    "settings",
    "shape_rule",
    "trace_calls",
    "unregister",
    "write_entries",
]

#: The API for layers and composite functions, by the places that its names are imported from on demand: the module of a
#: plugin, which only describes, is imported without it.
_ON_DEMAND: Final = {
    "F": "nn_core.functions",
    "PF": "nn_core.parametric_functions",
    "S": "nn_core.solvers",
    "initializer": "nn_core.initializer",
    "get_parameter_or_create": "nn_core.parameter:get_parameter_or_create",
    "parametric_function_api": "nn_core.parametric_functions:parametric_function_api",
    "ParameterSource": "nn_core.engine.graph.parameter_sources:ParameterSource",
    "parameter_of": "nn_core.io.parameters:parameter_of",
    "parameters_of": "nn_core.engine.graph.parameter_sources:parameters_of",
    "plan_memory": "nn_core.engine.graph.memory:plan_memory",
    "Variable": "nn_core.variable:Variable",
    "TracedCall": "nn_core.engine.graph.tracing:TracedCall",
    "trace_calls": "nn_core.engine.graph.tracing:trace_calls",
}


def __getattr__(name: str) -> Any:
    """Import what is imported on demand (PEP 562)."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'nn_core.ext' has no attribute {name!r}")
    module, _, attribute = _ON_DEMAND[name].partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found


def __dir__() -> list[str]:
    return sorted(__all__)


@fitted
def register(module: ModuleType | str, name: str | None = None) -> None:
    """Take over a module as a plugin of this process, in notebooks, tests and frozen programs.

    Args:
        module: The module that an entry point would name: hooks, and the rules and kernels of its operators. Or its name, such
            as ``__name__`` in a program that is its own plugin.
        name: Name of the plugin; None: that of the module, without "nn_ext_".

    A module of the same name that was registered before is replaced, so that a cell of a notebook may be run again.

    Raises:
        PluginError: when the name is that of an installed plugin, or the module breaks a rule; nothing of it is left then, and
            a plugin that was registered before stays.

    Example:
        >>> from types import ModuleType
        >>> from nn_core.ext import InitializerInfo, hookimpl, register, unregister
        >>> plugin = ModuleType("nn_ext_demo")
        >>> plugin.PLUGIN_API, plugin.REQUIRES_CORE = 2, ">=0.1,<1"
        >>> offers = [InitializerInfo(name="DemoOnes", target=lambda: np.ones)]
        >>> plugin.nn_core_initializers = hookimpl(lambda: offers, specname="nn_core_initializers")
        >>> register(plugin)
        >>> PF.affine(nn.Variable((2, 3)), 4, w_init=I.DemoOnes()).shape
        (2, 4)
        >>> unregister("demo")
    """
    if isinstance(module, str):
        module = sys.modules.get(module, module)
    if not isinstance(module, ModuleType):
        raise PluginError(f"register: module must be a module, or the name of one that is imported, got {described(module)}")
    PLUGINS.register(module, name or module.__name__.rpartition(".")[2].removeprefix("nn_ext_"))


@fitted
def refresh() -> None:
    """Look again at what is installed, without a new process.

    Plugins that were installed since are found, and what `unregister` has taken away is back. Plugins that failed, and those
    whose module was run again (``importlib.reload``), are loaded anew when they are next used. All others stay as they are.

    Example:
        >>> from nn_core.ext import refresh
        >>> refresh()
    """
    PLUGINS.refresh()


@fitted
def unregister(name: str) -> None:
    """Forget a plugin that was registered by `register`, or an installed one until `refresh` is called.

    Raises:
        BackendNotFoundError: when there is none of that name.

    Example:
        >>> from nn_core.ext import unregister
        >>> unregister("demo")
        Traceback (most recent call last):
        ...
        nn_core.errors.BackendNotFoundError: ...
    """
    PLUGINS.unregister(name)


@fitted
def list_offers(kind: str) -> dict[str, str]:
    """Return the offers of plugins of one kind ("communicators"), by ``plugin.name``, with descriptions; no target is
    imported.

    Raises:
        ArgumentError: when there is no such kind.

    Example:
        >>> from nn_core.ext import list_offers
        >>> isinstance(list_offers("communicators"), dict)
        True
    """
    return {offer.full_name: offer.info.description for offer in PLUGINS.offered(_known(kind))}


@fitted
def find_extension(kind: str, name: str, part: str = "target") -> Any:
    """Return the object that a plugin offers as `name`, or ``plugin.name``, imported now.

    Args:
        kind: "communicators", "data", "training", ...: the hook without ``nn_core_``.
        name: The name; of file formats, the extension.
        part: The part of the description to return: "read_network" of a file format.

    Raises:
        ArgumentError: when no plugin offers it.
        PluginError: when several do, or the import fails; the cause is the original exception.

    Example:
        >>> from nn_core.ext import find_extension
        >>> find_extension("communicators", "carrier_pigeon")
        Traceback (most recent call last):
        ...
        nn_core.errors.ArgumentError: ...
    """
    offer = PLUGINS.required_offer(_known(kind), name)
    found = PLUGINS.offers.load(offer, part)
    if part == "write_network":  # a plugin writes what it knows of functions, and the graph may have more
        found = import_module("nn_core.io.networks").knowing_writer(offer.plugin, found)
    return found


@fitted
def axis_lengths(command: str, given: Sequence[str]) -> dict[str, int]:
    """Return the lengths of axes by name, as commands take them in their option ``--dimension``.

    Args:
        command: Name of the command, for the message.
        given: Texts of the form ``NAME=LENGTH``.

    Raises:
        ArgumentError: when one has another form.

    Example:
        >>> from nn_core.ext import axis_lengths
        >>> axis_lengths("export-c", ["batch=8", "words=128"])
        {'batch': 8, 'words': 128}
    """
    found = {}
    for text in given:
        name, _, length = text.partition("=")
        if not name or not length.isdecimal():
            raise ArgumentError(f"{command}: --dimension must be NAME=LENGTH, got {text!r}")
        found[name] = int(length)
    return found


@fitted
def function_spec(name: str) -> FunctionSpec | None:
    """Return the specification of the operator that files call `name` ("Convolution"), of the core or of a plugin.

    Args:
        name: Name of the operator.

    Returns:
        The specification; None when there is no such operator. What only readers need, such as `formula` and `notes`, is
        empty for operators of the core: `help` of the function shows it.

    Example:
        >>> from nn_core.ext import function_spec
        >>> spec = function_spec("Convolution")
        >>> spec.api, [entry.name for entry in spec.inputs]
        ('convolution', ['x', 'weight', 'bias'])
        >>> function_spec("Convolutoin") is None
        True
    """
    return PLUGINS.function_named(name) if isinstance(name, str) else None


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ArgumentError(f"kind: must be one of {', '.join(KINDS)}, got {kind!r}")
    return kind
