"""Fusions of plugins: several functions that a pass without gradients runs as one operator."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.dispatch.blame import PluginCall, reason_of
from nn_core.engine.dispatch.extension_registry import Offer
from nn_core.engine.dispatch.known import KnownOperators
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.compile import kernel_of
from nn_core.engine.graph.fused_chain import CHAINS, FusedChain
from nn_core.engine.graph.node import Node
from nn_core.errors import NNCoreError
from nn_core.logger import logger
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.spec.model import FunctionSpec


class Fusion(Protocol):
    """A fusion that a plugin offers.

    Attributes:
        chain: Names of functions ("MulScalar", "Tanh"), each of which reads the result of the one before as its first input.
        function: Name of the operator that is run instead of them, whose result is that of the last. Its inputs are those of
            the functions, in order, without the results of the chain.
    """

    chain: Sequence[str]
    function: str

    def settings(self, *args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the settings of the operator from those of the functions; None where they must not be run as one."""


class Rewriting:
    """The arrays that functions of a pass rewrite, such as running statistics, and when.

    Args:
        order: The functions of the pass.
    """

    def __init__(self, order: Sequence[Node]) -> None:
        self._place = {node: place for place, node in enumerate(order)}
        self._written = [(place, value.storage.data.synced) for place, node in enumerate(order) for value in node.rewritten()]

    def separates(self, chain: Sequence[Node]) -> bool:
        """Return whether a function between those of `chain` rewrites what they read.

        Fused functions all run in the place of the last, where they would read what was written.
        """
        first, last = self._place[chain[0]], self._place[chain[-1]]
        read = {value.storage.data.synced for node in chain for value in node.inputs if value is not None}
        return any(first < place < last and array in read for place, array in self._written)


#: The function that alone reads the result of another, whose values nobody can see after the pass.
SoleReader = Callable[[Node], Node | None]


def fused_by_plugins(order: Sequence[Node], sole_reader: SoleReader) -> tuple[list[Node], list[SyncedArray]]:
    """Return the functions to run instead of `order`, and the arrays that are not computed any more.

    Plugins are asked that are loaded, or that list fusions in the index of their package.
    """
    result, skipped = list(order), list[SyncedArray]()
    for plugin, label, fusion in _fusions():
        replaced: dict[Node, Node | None] = {}
        for chain, fused in _fused_chains(plugin, label, fusion, result, sole_reader):
            replaced |= {**dict.fromkeys(chain), chain[-1]: fused}
            skipped += [storage.data.synced for link in chain for storage in link.storages if storage is not fused.storages[0]]
        stand_ins = [replaced.get(node, node) for node in result]
        result = [node for node in stand_ins if node is not None]
    return result, skipped


def _fused_chains(
    plugin: str, label: str, fusion: Fusion, order: Sequence[Node], sole_reader: SoleReader
) -> Iterator[tuple[list[Node], Node]]:
    """Chains of `order` that have no function in common, each with the operator to run instead."""
    taken: set[Node] = set()
    rewriting = Rewriting(order)
    for node in order:
        chain = _chain_at(node, fusion.chain, sole_reader)
        if not chain or not taken.isdisjoint(chain) or rewriting.separates(chain) or not _is_known(plugin, chain):
            continue
        fused = _fused(plugin, label, fusion, chain)
        if fused is not None:
            taken.update(chain)
            yield chain, fused


def _is_known(plugin: str, chain: Sequence[Node]) -> bool:
    """Return whether the plugin, which puts one operator in place of `chain`, knows all that these calls set."""
    return all(reads(PLUGINS.known_operators(plugin, node.spec.name), node) for node in chain if node.spec.later)


def reads(known: KnownOperators, node: Node) -> bool:
    """Return whether who knows operators so far reads everything that the call of `node` sets."""
    inputs = [None if value is None else value.storage.data for value in node.inputs]
    return known.refusal(node.spec, node.args, inputs) is None


def _fusions() -> Iterator[tuple[str, str, Fusion]]:
    for offer in PLUGINS.offered("passes", unlisted=False):
        if offer.role == "fusion":
            fusion = _sound(offer)
            if fusion is not None:
                yield offer.plugin, offer.label, fusion


#: The fusions that are left out, each told once.
_TOLD: Final[set[str]] = set()


def _sound(offer: Offer) -> Fusion | None:
    """Return the fusion, or None where it is none: every program would fail by it, those too that do not use its plugin."""
    try:
        with offer.called():
            fusion: Fusion = PLUGINS.offers.load(offer)()
            reason, _ = _fault(fusion), fusion.settings
    except Exception as error:  # a plugin may raise anything
        reason = reason_of(error)
    if not reason:
        return fusion
    _leave_out(offer.label, reason)
    return None


def _fault(fusion: Fusion) -> str:
    """Return the reason why `fusion` cannot be used; empty where there is none."""
    if not isinstance(fusion.chain, (tuple, list)) or not all(isinstance(name, str) for name in fusion.chain):
        return f"a chain must be a tuple of names of functions, got {described(fusion.chain)}"
    if len(fusion.chain) < 2:
        return f"a fusion must have a chain of two functions or more, got {len(fusion.chain)}"
    if not isinstance(fusion.function, str) or PLUGINS.function_named(fusion.function) is None:
        return f"function must be an operator that is installed, got {described(fusion.function)}"
    return ""


def _leave_out(label: str, reason: str) -> None:
    if label not in _TOLD:
        _TOLD.add(label)
        logger.warning("%s is left out: %s", label, reason)


def _chain_at(node: Node, names: Sequence[str], sole_reader: SoleReader) -> list[Node]:
    """Return the functions of these names that begin with `node`; none where they do not follow each other."""
    chain: list[Node] = []
    following: Node | None = node
    for name in names:
        if following is None or following.python is not None or following.spec.name != name or len(following.storages) != 1:
            return []
        if chain:
            first = following.inputs[0]
            if first is None or first.storage is not chain[-1].storages[0] or following.context is not node.context:
                return []
        chain.append(following)
        following = sole_reader(following)
    return chain


def _fused(plugin: str, label: str, fusion: Fusion, chain: Sequence[Node]) -> Node | None:
    """Return the operator to run instead of `chain`; None where the plugin or the rules of the operator do not want it."""
    try:
        with PluginCall(plugin, f"settings() of {label}"):
            settings = fusion.settings(*(dict(node.args) for node in chain))
            settings = None if settings is None else dict(settings)
    except Exception as error:
        _leave_out(label, reason_of(error))
        return None
    return None if settings is None else _stand_in(label, spec_of(fusion.function), settings, chain)


def _stand_in(label: str, spec: FunctionSpec, settings: Mapping[str, Any], chain: Sequence[Node]) -> Node | None:
    inputs = [*chain[0].inputs, *(value for node in chain[1:] for value in node.inputs[1:])]
    if not spec.variadic and not sum(not entry.optional for entry in spec.inputs) <= len(inputs) <= len(spec.inputs):
        return None
    shapes = [None if value is None else value.storage.data.shape for value in inputs]
    try:
        node = Node.standing_for(chain[-1], spec, resolve_args(spec, settings, shapes), inputs)
        kernel = kernel_of(node, {})
    except NNCoreError:  # its rule is stricter than theirs, or nobody runs it here
        return None
    if list(kernel.output_shapes) != [chain[-1].storages[0].data.shape]:
        return None
    CHAINS[node] = FusedChain(label, chain)
    return node
