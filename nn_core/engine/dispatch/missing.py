"""Messages about plugins that are not there, or do not load, and about names that only they could have."""

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

from nn_core.engine.dispatch.plugin_record import Failure, Plugin, State
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.runtime import installed
from nn_core.errors import BackendUnavailableError, NNCoreError, PluginError
from nn_core.settings import settings


class KnownPlugins(Protocol):
    """The part of `nn_core.engine.dispatch.plugin_manager.Plugins` that messages read."""

    def names(self) -> list[str]:
        """Return the names of the plugins."""
        ...

    def asked_for(self) -> list[Plugin]:
        """Return those that were asked for, sound or not."""
        ...

    def owners_by_prefix(self, key: str) -> list[str]:
        """Return those whose name is the prefix of `key`."""
        ...


def not_installed(plugins: KnownPlugins, name: str) -> str:
    """Return the message that no plugin is called `name`."""
    known = installed.without_others(plugins.names(), "backends")
    text = f"a backend must be among those installed ({', '.join(known) or 'none'}), got {name!r}"
    if name in installed.installed_plugins() and not settings().allows_plugin(name):
        return f"{text}\n  hint: NN_CORE_PLUGINS blocks it: {settings().how_to_allow(name)}"
    own: Mapping[str, str] = installed.OWN_PACKAGES
    if name in own:  # no other is suggested, since nobody may have made it
        return f"{text}\n  hint: pip install {own[name]}"
    device = "; those of NVIDIA's GPUs are 'cudnn' and 'cuda'" if name.lower() == "gpu" else ""
    return f"{text}{suggestion(name, known)}\n  hint: nn-core doctor lists the backends that are installed{device}"


def load_error(plugin: Plugin, name: str, failure: Failure) -> NNCoreError:
    """Return the exception for the use of a plugin, or of its backend called `name`, that has failed."""
    if failure.state is State.NO_DEVICE:
        return BackendUnavailableError(f"backend {name!r}: a device must be usable, got: {failure.reason}")
    error = PluginError(f"plugin {plugin.label}: must load, got: {failure.reason}\n  {plugin.hint}")
    error.__cause__ = failure.cause
    return error


def absence(plugins: KnownPlugins, kinds: Sequence[str], key: str) -> tuple[str, BaseException | None]:
    """Return lines for the message that nobody has `key`, and its cause: which plugin lists it, or may have it, and failed."""
    listed = {name for kind in kinds for name in installed.index().get((kind, key), ())}
    failed = [plugin for plugin in plugins.asked_for() if plugin.failure is not None]
    owners = [plugin for plugin in failed if plugin.name in {*listed, *plugins.owners_by_prefix(key)}]
    if owners:
        error = load_error(owners[0], owners[0].name, cast("Failure", owners[0].failure))
        return f"\n  {error}", error
    names = ", ".join(plugin.label for plugin in failed)
    return (f"\n  hint: plugins that did not load may have it: {names}; nn-core doctor says why" if names else ""), None
