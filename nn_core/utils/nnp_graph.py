"""The door ``utils.nnp_graph``: networks of files one by one. Needs the package nn-ext-nnp.

``NnpLoader(path).get_network(name, batch_size)`` gives an ``NnpNetwork`` with ``inputs``, ``outputs`` and ``variables`` by
name; an ``NnpNetworkPass`` changes the network on the way.
"""

from typing import TYPE_CHECKING, Any

from nn_core.files.network_package import network_part

if TYPE_CHECKING:
    NnpLoader: Any
    NnpNetwork: Any
    NnpNetworkPass: Any

__all__ = ["NnpLoader", "NnpNetwork", "NnpNetworkPass"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'nn_core.utils.nnp_graph' has no attribute {name!r}")
    return network_part("nnp_graph", name)
