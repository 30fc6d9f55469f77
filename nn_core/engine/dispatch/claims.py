"""Messages about names: claimed by several plugins, or by none."""

from collections.abc import Sequence

from nn_core.engine.error_messages.synonyms import suggestion as suggestion
from nn_core.errors import PluginError


def ambiguous(what: str, key: str, plugins: Sequence[str]) -> PluginError:
    """Return the refusal to choose between plugins that claim one name."""
    both = " and ".join(map(repr, sorted(plugins)))
    # file formats begin with a dot, which does not belong between plugin and name
    ways = ", ".join(f"{plugin}.{key.lstrip('.')}" for plugin in sorted(plugins))
    return PluginError(
        f"{what} {key!r}: must be claimed by one plugin, got {both}\n"
        f"  hint: name it with its plugin ({ways}), or block one: NN_CORE_PLUGINS=-{max(plugins)}"
    )
