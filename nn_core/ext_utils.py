"""Extensions by name: their modules, and the contexts that they recommend."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from nn_core.context import TYPE_CONFIGS, Context
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.overlooked import overlook
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError, PluginError

if TYPE_CHECKING:
    from nn_core.engine.dispatch.hookspecs import BackendInfo

__all__ = ["get_extension_context", "import_extension_module", "list_extensions"]


@fitted
def get_extension_context(ext_name: str, **kw: object) -> Context:
    """Ask an extension for the context that it recommends; it is loaded, and fails here if it has to.

    Args:
        ext_name: Name of a backend, such as "cpu"; "auto" stands for the available one with the highest priority.
        **kw: ``device_id`` and ``type_config`` ("float", "half", "bfloat16", "double") for every backend, and what
            else the backend takes.

    Raises:
        ArgumentError: for a keyword that the backend does not take; for a `device_id` that is not a whole number of at
            least 0, and on the CPU for one that is neither 0 nor a rank of this program.
        BackendNotFoundError: when no installed package brings the backend; the message has the pip line.
        BackendUnavailableError: when there is no device for it.
        PluginError: when the extension is broken; the cause is the original exception.

    Example:
        >>> get_extension_context("reference", device_id=0, type_config="half")
        Context(backend=['reference:half'], array_class='CpuCachedArray', device_id='0')
    """
    name = PLUGINS.best_backend() if ext_name == "auto" else ext_name
    PLUGINS.backend(name)
    info = PLUGINS.info(name)
    make = info.context or _context_of(info)
    kw = _accepted(name, list(inspect.signature(make).parameters), kw)
    from nn_core.engine.dispatch.guard import guarded  # `import nn_core` does without it

    context = guarded(f"backend {name!r}: context()", None, lambda: make(**kw))
    if not isinstance(context, Context):
        raise PluginError(f"backend {name!r}: context() must return a Context, got {context!r}")
    if info.array_class == PLUGINS.info("reference").array_class:  # the device family of the host
        _check_host(name, context)
    return context.replace()  # the extension may have given one that others hold


def context_named(text: str) -> Context:
    """Return the context for the name of a backend, alone or with a number type, such as "cpu:bfloat16"."""
    name, colon, type_config = text.partition(":")
    return get_extension_context(name, **({"type_config": type_config} if colon else {}))


@fitted
def import_extension_module(ext_name: str) -> ModuleType:
    """Import the package of an extension; operators that it brings are in ``nn_core.functions`` from then on.

    Raises:
        BackendNotFoundError: when it is not installed; the message has the pip line.
        PluginError: when it is broken; the cause is the original exception.

    Example:
        >>> from nn_core.ext_utils import import_extension_module
        >>> import_extension_module("reference").__name__
        'nn_core.operators.reference'
    """
    module = PLUGINS.module(ext_name)
    return import_module(module.__package__) if module.__package__ else module


@fitted
def list_extensions() -> list[str]:
    """Names of the installed extensions, sorted; nothing is imported.

    Example:
        >>> from nn_core.ext_utils import list_extensions
        >>> "reference" in list_extensions()
        True
    """
    return PLUGINS.names()


def _accepted(name: str, known: Sequence[str], kw: Mapping[str, object]) -> dict[str, object]:
    """Return the keywords that a backend takes.

    Raises:
        ArgumentError: for another one, unless an unchanged program of NNabla runs: NNabla ignores them.
    """
    for keyword in kw:
        if keyword in known:
            continue
        text = f"get_extension_context: {name!r} takes {', '.join(known)}, got {keyword!r}"
        overlook(ArgumentError(text), "which is ignored")
    return {keyword: value for keyword, value in kw.items() if keyword in known}


def _check_host(name: str, context: Context) -> None:
    """Refuse a device other than 0, except the numbers that the processes of one program give as their own."""
    if context.device_id == "0":
        return
    from nn_core.communicators.launchers import count_ranks  # the common case does without it

    n_ranks = count_ranks()
    if int(context.device_id) >= n_ranks:
        held = "be 0" if n_ranks == 1 else f"be 0 or the rank of one of {n_ranks} processes"
        raise ArgumentError(
            f"get_extension_context: device_id must {held} on the CPU, which is one device, got {context.device_id!r}\n"
            f"  hint: get_extension_context({name!r})"
        )


def _context_of(info: "BackendInfo") -> Callable[..., Context]:
    def context(*, device_id: str | int = "0", type_config: str = "float") -> Context:
        if type_config not in TYPE_CONFIGS:
            raise ArgumentError(f"type_config: must be one of {', '.join(TYPE_CONFIGS)}, got {type_config!r}")
        return Context([f"{info.name}:{type_config}"], info.array_class, device_id)

    return context
