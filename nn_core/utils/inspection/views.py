"""Look at graphs through the viewers of plugins."""

from typing import Any

from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.refusal import fitted
from nn_core.variable import Variable


@fitted
def view(v: Variable, viewer: str) -> Any:
    """Show the graph that ends in a variable, by a viewer of a plugin.

    Args:
        v: The variable.
        viewer: Name of the viewer, or ``plugin.name``.

    Returns:
        What the viewer gives: text, a picture, the path of a file.

    Raises:
        ArgumentError: when no plugin offers a viewer of that name.
        PluginError: when several do.
    """
    offer = PLUGINS.required_offer("viewers", viewer, "viewer")
    made = PLUGINS.offers.load(offer)
    with offer.called("view"):
        return (made() if isinstance(made, type) else made).view(v)
