"""The door ``core.graph_def``: networks as data. Needs the package nn-ext-nnp.

``load(path)`` gives a ``ProtoGraph``; ``graph.networks[name]`` a ``ProtoNetwork`` with ``inputs``, ``outputs``, ``variables``,
``parameters`` and ``functions``, which makes a graph when it is called with variables. ``create_graph_from_variable`` goes
the other way. Tracing of functions by ``ProtoVariable`` is not there: build a graph of Variables, which computes nothing
until ``forward()``, and make a ``ProtoGraph`` of that.
"""

from typing import TYPE_CHECKING, Any

from nn_core.files.network_package import network_part

if TYPE_CHECKING:
    ProtoGraph: Any
    ProtoNetwork: Any
    create_graph_from_variable: Any
    load: Any
    save: Any

__all__ = ["ProtoGraph", "ProtoNetwork", "create_graph_from_variable", "load", "save"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'nn_core.core.graph_def' has no attribute {name!r}")
    return network_part("graph_def", name)
