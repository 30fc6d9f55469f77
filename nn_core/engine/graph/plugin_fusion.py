"""The fusions that a pass may use: those of the core, and of plugins."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from nn_core.engine.dispatch.blame import PluginCall
from nn_core.engine.dispatch.exception_text import reason_of
from nn_core.engine.dispatch.extension_registry import Offer
from nn_core.engine.dispatch.known import KnownOperators
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph.fused_chain import CHAINS, FusedChain
from nn_core.engine.graph.node import Node
from nn_core.errors import ArgumentError
from nn_core.logger import logger
from nn_core.operators.rules.fusions import FUSIONS, ChainLink, Fusion
from nn_core.operators.spec.model import ArgSpec, FunctionSpec, InputSpec

#: The version of operators whose arguments and inputs the table of the core reads in full.
_KNOWN: Final = KnownOperators("0.1")


class ChainFusion(Protocol):
    """A fusion as an object of a plugin, where arguments have to be computed.

    Attributes:
        chain: Names of functions ("MulScalar", "Tanh"), each of which reads the result of the one before as its first input.
        function: Name of the operator that is run instead of them, whose result is that of the last. Its inputs are those of
            the functions, in order, without the results of the chain.
    """

    chain: Sequence[str]
    function: str

    def settings(self, *args: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the settings of the operator from those of the functions; None where they must not be run as one."""


@dataclass(frozen=True, slots=True)
class OfferedFusion:
    """A fusion, and whose it is.

    Attributes:
        fusion: The fusion.
        plugin: The plugin; empty for one of the core.
        label: Its name with the plugin's, for messages.
    """

    fusion: Fusion
    plugin: str = ""
    label: str = ""

    def knows(self, node: Node) -> bool:
        """Return whether it was written for all that the call of `node` sets."""
        if not node.spec.later:
            return True
        known = PLUGINS.known_operators(self.plugin, node.spec.name) if self.plugin else _KNOWN
        inputs = [None if value is None else value.storage.data for value in node.inputs]
        return known.refusal(node.spec, node.args, inputs) is None

    def settings(self, args: Sequence[Mapping[str, Any]], named: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the arguments of the operator; None where the functions must not be run as one.

        Args:
            args: The arguments of the functions.
            named: The arguments of the operator that links name.
        """
        if self.fusion.settings is None:
            return {**self.fusion.sets, **named}
        try:
            with PluginCall(self.plugin, f"settings() of {self.label}"):
                settings = self.fusion.settings(*map(dict, args))
                return None if settings is None else dict(settings)
        except Exception as error:
            _leave_out(self.label, reason_of(error))
            return None

    def note(self, node: Node, chain: Sequence[Node]) -> None:
        """Have the results of a plugin's operator compared with those of the chain that it is run for."""
        if self.plugin:
            CHAINS[node] = FusedChain(self.label, chain)


_OF_THE_CORE: Final = tuple(OfferedFusion(fusion) for fusion in FUSIONS)


def offered_fusions() -> Iterator[OfferedFusion]:
    """Yield the fusions of the core, and of plugins that are loaded or list fusions in the index of their package."""
    yield from _OF_THE_CORE
    for offer in PLUGINS.offered("passes", unlisted=False):
        if offer.role == "fusion":
            fusion = _sound(offer)
            if fusion is not None:
                yield OfferedFusion(fusion, offer.plugin, offer.label)


def fusion_of(offer: Offer) -> Fusion:
    """Return the fusion that a plugin offers, which may be an object with `chain`, `function` and `settings`."""
    made: Fusion | ChainFusion = PLUGINS.offers.load(offer)()
    return made if isinstance(made, Fusion) else _of_chain(made)


def _of_chain(made: ChainFusion) -> Fusion:
    chain = made.chain
    if not isinstance(chain, (tuple, list)) or not all(isinstance(name, str) for name in chain):
        raise ArgumentError(f"a chain must be a tuple of names of functions, got {described(chain)}")
    return Fusion(made.function, tuple(ChainLink(name) for name in chain), settings=made.settings)


#: The fusions that are left out, each told once.
_TOLD: Final[set[str]] = set()


def _sound(offer: Offer) -> Fusion | None:
    """Return the fusion, or None where it is none: every program would fail by it, those too that do not use its plugin."""
    try:
        with offer.called():
            fusion = fusion_of(offer)
            reason = _fault(fusion)
    except Exception as error:  # a plugin may raise anything
        reason = reason_of(error)
    if not reason:
        return fusion
    _leave_out(offer.label, reason)
    return None


def _fault(fusion: Fusion) -> str:
    """Return the reason why `fusion` cannot be used; empty where there is none."""
    if len(fusion.links) < 2:
        return f"a fusion must have a chain of two functions or more, got {len(fusion.links)}"
    spec = PLUGINS.function_named(fusion.function) if isinstance(fusion.function, str) else None
    if spec is None:
        return f"function must be an operator that is installed, got {described(fusion.function)}"
    if fusion.settings is not None:
        return ""
    return next((reason for reason in (_fault_of_link(link, spec) for link in fusion.links) if reason), "")


def _fault_of_link(link: ChainLink, operator: FunctionSpec) -> str:
    """Return which name of a link is not one of the operator, or of the function that it describes."""
    spec = PLUGINS.function_named(link.function)
    if spec is None:  # of a package that is not installed: no graph has it
        return ""
    pairs: list[tuple[str, str, Iterable[str], Sequence[InputSpec] | Sequence[ArgSpec]]] = [
        (spec.name, "input", [*link.inputs.values(), *([link.chain] if link.chain else [])], spec.inputs),
        (spec.name, "argument", link.args.values(), spec.args),
        (operator.name, "input", [*link.inputs, *link.shaped], operator.inputs),
        (operator.name, "argument", [*link.args, *link.sets, *link.computed], operator.args),
    ]
    for name, what, given, entries in pairs:
        known = {entry.name for entry in entries}
        unknown = [found for found in given if found not in known]
        if unknown:
            return f"{what}s of {name} must be among {', '.join(sorted(known))}, got {unknown[0]!r}"
    return ""


def _leave_out(label: str, reason: str) -> None:
    if label not in _TOLD:
        _TOLD.add(label)
        logger.warning("%s is left out: %s", label, reason)
