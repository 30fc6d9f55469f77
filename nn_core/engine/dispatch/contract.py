"""The contract that a plugin must meet when it is loaded; each violation is refused with the place and the remedy."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from nn_core.engine.dispatch.hookspecs import BackendInfo, FunctionPackage
from nn_core.engine.dispatch.kinds import KINDS
from nn_core.engine.dispatch.plugin_record import Plugin
from nn_core.engine.dispatch.registry import Registry
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.registrations import Registration, is_registered, recorded
from nn_core.errors import PluginError
from nn_core.operators.spec.model import FunctionSpec

_ITEMS: Final[Mapping[str, type]] = {
    "nn_core_backends": BackendInfo,
    "nn_core_functions": FunctionPackage,
    **{kind.hook: kind.info for kind in KINDS.values()},
}
#: Messages about an index name this many differences.
_MAX_LINES: Final = 8
#: The PLUGIN_API from which on API names start with the name of their plugin.
_PREFIXES_SINCE: Final = 2


def checked_items(hook: str, function: Any, result: object) -> list[Any]:
    """Return the declarations that a hook returned, checked to be a list or tuple of the right type."""
    wanted = _ITEMS[hook]
    if not isinstance(result, (list, tuple)):
        raise _wrong_result(hook, function, wanted, type(result).__name__)
    for item in result:
        if not isinstance(item, wanted):
            raise _wrong_result(hook, function, wanted, f"one with {item!r}")
    return list(result)


def _wrong_result(hook: str, function: Any, wanted: type, got: str) -> PluginError:
    # the place of the hook, not of the check: it is the author who reads this
    code = getattr(function, "__code__", None)
    place = f"{code.co_filename}:{code.co_firstlineno}: " if code else ""
    return PluginError(f"{place}{hook} must return a list of {wanted.__name__}, got {got}")


def check_functions(
    plugin: str, specs: Sequence[FunctionSpec], places: Mapping[str, str], kernels: Mapping[str, Collection[str]]
) -> None:
    """Refuse an operator that lacks a part, or is named as another plugin's.

    Args:
        plugin: Name of the plugin.
        specs: Its operators.
        places: "file:line" of each.
        kernels: Names of the functions that it has kernels for, by backend.
    """
    # a kernel on one backend is enough; on others a function may be refused
    native = {name for table in kernels.values() for name in table}
    for spec in specs:
        _check_name(plugin, spec, places[spec.name])
        _check_parts(spec, places[spec.name], native)


def unprefixed_names(plugin: Plugin, api: int, names: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the API names that do not start with the name of `plugin`; refuses them from PLUGIN_API 2 on.

    Args:
        plugin: The plugin, which has no vendor namespace.
        api: The PLUGIN_API by whose rules it is judged.
        names: (label, name) of its functions, composites and parametric functions.

    Raises:
        PluginError: when there is one, and the plugin was written for PLUGIN_API 2 or later.
    """
    prefix = f"{plugin.name}_"
    found = [(label, name) for label, name in names if not name.startswith(prefix)]
    if found and api >= _PREFIXES_SINCE:
        label, name = found[0]
        raise PluginError(
            f"{label}: an API name must start with {prefix!r}, got {name!r}\n"
            f"  hint: call it {prefix + name!r}, or state VENDOR_NAMESPACE = True: "
            f"users then find it with {plugin.name + '.'!r} in front only"
        )
    return tuple(name for _, name in found)


def _check_name(plugin: str, spec: FunctionSpec, place: str) -> None:
    if spec.name.partition(".")[0] != plugin:
        raise PluginError(
            f"{place}: names of functions must start with the name of the plugin, {plugin + '.'!r}, got {spec.name!r}"
        )
    # ``F.<plugin>`` gives the functions of a plugin
    if spec.api in installed.entry_points():
        raise PluginError(f"{place}: {spec.name}: api must not be the name of a plugin, got {spec.api!r}")


def _check_parts(spec: FunctionSpec, place: str, native: Collection[str]) -> None:
    if spec.shape == "rule" and not is_registered("shape rule", spec.name):
        _refuse_missing(place, spec, "a shape rule", "@shape_rule", "write 'shape: same_as <input>' in the spec")
    if spec.differentiable and not is_registered("gradient rule", spec.name):
        _refuse_missing(place, spec, "a gradient rule", "@gradient", "state the reason: 'backward: {none: <reason>}'")
    has_kernel = spec.name in native or is_registered("reference kernel", spec.name)
    if not has_kernel and not spec.has("composite") and not spec.has("view"):
        _refuse_missing(place, spec, "a kernel", "@kernel", "name one in FunctionPackage(kernels=...)")


def _refuse_missing(place: str, spec: FunctionSpec, what: str, decorator: str, otherwise: str) -> None:
    raise PluginError(
        f"{place}: {spec.name} must have {what}, got none\n"
        f'  hint: {decorator}("{spec.name}") in a module that the plugin imports, or {otherwise}'
    )


def check_registrations(
    plugin: Plugin, specs: Sequence[FunctionSpec], seen: Collection[Registration], registry: Registry
) -> tuple[Registration, ...]:
    """Return the rules and kernels that `plugin` registered; refuses those for functions that it does not specify.

    Args:
        plugin: The plugin.
        specs: Its operators.
        seen: The registrations from before it was imported.
        registry: Knows the operators of others, for the message.
    """
    names = {spec.name for spec in specs}
    others = other_packages(plugin)
    for entry in recorded():
        if entry in seen or entry.name in names or entry.package in others:
            continue
        spec = registry.added(entry.name)
        owner = f"plugin {spec.plugin!r}" if spec else "no plugin that is loaded"
        raise PluginError(
            f"{entry.module}: a {entry.what} must be for a function that plugin {plugin.name!r} specifies, "
            f"got {entry.name!r} of {owner}"
        )
    return tuple(entry for entry in recorded() if entry.name in names)


def other_packages(plugin: Plugin) -> set[str]:
    """Return the top-level packages of all other plugins; what they register while `plugin` imports them is not its own."""
    return {entries[0].module.partition(".")[0] for entries in installed.entry_points().values()} - {plugin.package}


def check_index(plugin: str, brought: Collection[tuple[str, str]]) -> None:
    """Refuse an index in the metadata of a package that does not list what its plugin brings.

    None at all is fine where nothing is an overlay: these have to be known before anything is looked for.
    """
    # a wrong index is worse than none: names would be looked for in the wrong plugin
    listed = {place for place, plugins in installed.index().items() if plugin in plugins}
    if not listed:
        _refuse_overlays(plugin, [name for kind, name in brought if kind == "overlays"])
        return
    lines = [f'"{kind}.{name}" = "{plugin}"' for kind, name in sorted(set(brought) - listed)]
    lines += [f'no "{kind}.{name}"' for kind, name in sorted(listed - set(brought))]
    if lines:
        # a package that is installed anew with another index would list a hundred
        rest = len(lines) - _MAX_LINES
        shown = [*lines[:_MAX_LINES], *([f"and {rest} more changes"] if rest > 0 else [])]
        raise PluginError(
            f"the index of plugin {plugin!r} must list what it brings, got another: "
            f'[project.entry-points."{installed.INDEX}"] should have {", ".join(shown)}\n'
            "  hint: where pyproject.toml says so already, install the package again (also with --editable): pip copies it"
        )


def _refuse_overlays(plugin: str, backends: Collection[str]) -> None:
    """Refuse overlays of an installed plugin that no index lists.

    Nobody would know of them before the plugin is imported for something else: calls would change their kernels then.
    """
    if backends and plugin in installed.entry_points():
        missing = ", ".join(f'"overlays.{name}" = "{plugin}"' for name in sorted(backends))
        raise PluginError(
            f"overlays of plugin {plugin!r} must be in the index of its package, got none\n"
            f'  hint: [project.entry-points."{installed.INDEX}"] should have {missing}, and what else it brings'
        )
