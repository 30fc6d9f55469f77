"""Checks that a plugin and its backends pass before they are admitted."""

import inspect
import re
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from nn_core.engine.dispatch.registry import Registry
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.runtime.installed import CORE_PLUGIN
from nn_core.errors import PluginError
from nn_core.typing import Backend, Refusal

if TYPE_CHECKING:
    from nn_core.engine.dispatch.hookspecs import BackendInfo

#: A range of versions may be copied into a shell: anything else is none.
_RANGE: Final = re.compile(r"[\w.,<>=!~*+ -]{1,1000}", re.ASCII)
_BACKEND_PARTS: Final = ("name", "array_class", "kernels", "namespace", "empty", "from_numpy", "to_numpy")


def core_version() -> str:
    """Return the version of the installed core."""
    import importlib_metadata  # `import nn_core` does without it

    return importlib_metadata.version("nn-core")


def stated_api(module: ModuleType) -> int:
    """Return the PLUGIN_API by whose rules a module is judged: the newest that it states, and that the core knows."""
    from nn_core.engine.dispatch.hookspecs import PLUGIN_APIS

    stated = getattr(module, "PLUGIN_API", None)
    newest = stated[-1] if isinstance(stated, tuple) and stated else stated
    return min(newest, PLUGIN_APIS[-1]) if isinstance(newest, int) else PLUGIN_APIS[-1]


def has_namespace(module: ModuleType) -> bool:
    """Return whether a module states ``VENDOR_NAMESPACE = True``: its functions are found with the name of the plugin in front
    only.

    Raises:
        PluginError: when it states something else.
    """
    stated = getattr(module, "VENDOR_NAMESPACE", False)
    if not isinstance(stated, bool):
        raise PluginError(f"VENDOR_NAMESPACE must be True or False, got {stated!r}")
    return stated


def check_versions(module: ModuleType, package: str) -> None:
    """Refuse a plugin written for another PLUGIN_API, or for another range of versions of the core."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # needed when a plugin is loaded only

    version = core_version()
    _check_api(getattr(module, "PLUGIN_API", None), version, package)
    required = getattr(module, "REQUIRES_CORE", None)
    known = required if isinstance(required, str) and _RANGE.fullmatch(required) else "~"
    try:
        fits = SpecifierSet(known).contains(version, prereleases=True)
    except InvalidSpecifier:
        raise PluginError(f"REQUIRES_CORE must be a version range such as '>=0.1,<1', got {required!r}") from None
    if not fits:
        raise PluginError(
            f"REQUIRES_CORE must allow nn-core {version}, got {required!r}\n"
            f"  hint: pip install 'nn-core{required}', or pip install --upgrade {package}"
        )


def _check_api(stated: object, version: str, package: str) -> None:
    """Refuse a plugin none of whose PLUGIN_APIs (a number, or the first and the last of several) is one of the core's."""
    from nn_core.engine.dispatch.hookspecs import PLUGIN_APIS

    bounds = stated if isinstance(stated, tuple) else (stated, stated)
    if len(bounds) == 2 and all(type(bound) is int for bound in bounds):
        if max(bounds[0], PLUGIN_APIS[0]) <= min(bounds[1], PLUGIN_APIS[-1]):
            return
        older = bounds[1] < PLUGIN_APIS[0]
    else:
        older = True
    known = f"{PLUGIN_APIS[0]} to {PLUGIN_APIS[-1]}" if len(PLUGIN_APIS) > 1 else f"{PLUGIN_APIS[0]}"
    raise PluginError(
        f"PLUGIN_API must be {known} for nn-core {version}, got {stated!r}\n"
        f"  hint: pip install --upgrade {package if older else 'nn-core'}"
    )


def required_plugins(module: ModuleType) -> tuple[str, ...]:
    """Return the plugins that `module` states as REQUIRES_PLUGINS, to be loaded before it.

    Raises:
        PluginError: when it is not a tuple or a list of names.
    """
    stated: Any = getattr(module, "REQUIRES_PLUGINS", ())
    if not isinstance(stated, (tuple, list)) or not all(isinstance(name, str) and name for name in stated):
        raise PluginError(f"REQUIRES_PLUGINS must be a tuple of names of plugins, got {stated!r}")
    return tuple(stated)


def check_backend_info(plugin: str, info: "BackendInfo") -> None:
    """Refuse a backend that could not be found by its name, or whose context takes any keyword."""
    if info.name.partition(".")[0] != plugin:
        raise PluginError(f"a backend must be named as its entry point, {plugin!r} or '{plugin}.*', got {info.name!r}")
    if info.context is not None:
        # a keyword that is misspelt has to be refused, not swallowed
        kinds = {parameter.kind for parameter in inspect.signature(info.context).parameters.values()}
        if kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}:
            raise PluginError(f"backend {info.name!r}: context must spell out its keywords, got *args or **kwargs")


def check_backend(info: "BackendInfo", backend: Backend, registry: Registry) -> None:
    """Refuse a backend that lacks a part, or is not the one announced."""
    # now and by name; else the first graph that needs it fails in the middle
    missing = [part for part in _BACKEND_PARTS if not hasattr(backend, part)]
    if missing:
        parts = ", ".join(_BACKEND_PARTS)
        raise PluginError(f"backend {info.name!r}: must have {parts}, got none of {', '.join(missing)}")
    announced, got = (info.name, info.array_class), (backend.name, backend.array_class)
    if announced != got:
        raise PluginError(f"backend {info.name!r}: name and array_class must be as announced {announced}, got {got}")
    if not isinstance(backend.kernels, Mapping):
        kind = type(backend.kernels).__name__
        raise PluginError(f"backend {info.name!r}: kernels must be a mapping by name of the function, got a {kind}")
    if info.name != CORE_PLUGIN:  # whose table has the kernels of all plugins, loaded or about to be
        check_kernel_names(f"backend {info.name!r}", list(backend.kernels), registry)


def check_kernel(what: str, kernel: object) -> None:
    """Refuse what a table has in place of a kernel, such as a function."""
    if not hasattr(kernel, "refuse"):
        raise PluginError(
            f"{what} must have the methods refuse, forward and backward, got a {type(kernel).__name__}\n"
            "  hint: nn_core.ext.Kernel describes them"
        )


def check_refusal(what: str, refusal: object) -> None:
    """Refuse an answer that is neither a Refusal nor None."""
    if not isinstance(refusal, Refusal):
        raise PluginError(f"{what} must return a Refusal or None, got {refusal!r}")


def check_kernel_names(owner: str, names: Collection[str], registry: Registry) -> None:
    """Refuse a table of kernels with a name that no function has."""
    unknown = sorted(name for name in names if registry.spec(name) is None)
    if unknown:
        close = suggestion(unknown[0], registry.all_names())
        raise PluginError(f"{owner}: kernels must be for functions that exist, got {', '.join(unknown)}{close}")
