"""Functions that a pass without gradients runs as one: chains of the table of fusions, and of those of plugins.

Values between the functions of a chain are not computed, so nobody else may read them.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.call import PreparedKernel
from nn_core.engine.graph.compile import kernel_of
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.plugin_fusion import OfferedFusion, offered_fusions
from nn_core.errors import NNCoreError
from nn_core.operators.rules.arguments import resolve_args
from nn_core.operators.rules.fusions import ChainLink, Fusion, LinkCall
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import is_enabled
from nn_core.typing import Backend, Shape, extra


def fused(roots: Sequence[Value], order: Sequence[Node], dropped: set[Node]) -> tuple[list[Node], list[SyncedArray]]:
    """Return the functions to run instead of `order`, and the arrays that are not computed any more.

    Args:
        roots: The results of the pass.
        order: Its functions in order.
        dropped: Those whose results nobody can read after the pass, if they are no roots and not persistent.
    """
    result, skipped = list(order), list[SyncedArray]()
    if not is_enabled("inference_fusion"):
        return result, skipped
    readers = _Readers(roots, order, dropped)
    for offered in offered_fusions():
        replaced: dict[Node, Node | None] = {}
        for chain, fused in _fused_chains(offered, result, readers):
            replaced |= {**dict.fromkeys(chain), chain[-1]: fused}
            skipped += [storage.data.synced for link in chain for storage in link.storages if storage is not fused.storages[0]]
        stand_ins = [replaced.get(node, node) for node in result]
        result = [node for node in stand_ins if node is not None]
    return result, skipped


class _Readers:
    """The readers of the results of a pass, and the functions that rewrite arrays.

    Args:
        roots: The results of the pass.
        order: Its functions in order.
        dropped: Those whose results nobody can read after the pass, if they are no roots and not persistent.
    """

    def __init__(self, roots: Sequence[Value], order: Sequence[Node], dropped: set[Node]) -> None:
        self._dropped = dropped
        self._place = {node: place for place, node in enumerate(order)}
        self._rewritten = [
            (place, value.storage.data.synced) for place, node in enumerate(order) for value in node.rewritten()
        ]
        #: functions, and None for the caller of the pass
        self._readers: dict[SyncedArray, list[Node | None]] = {}
        for root in roots:
            self._of(root.storage).append(None)
        for node in order:
            for value in node.inputs:
                if value is not None:
                    self._of(value.storage).append(node)

    def _of(self, storage: Storage) -> list[Node | None]:
        return self._readers.setdefault(storage.data.synced, [])

    def sole_reader(self, node: Node) -> Node | None:
        """Return the function that alone reads the first result of `node`, whose values nobody can see after the pass."""
        value = node.output(0)
        if node not in self._dropped or (value is not None and (value.persistent or value.recompute)):
            return None
        # statistics of the batch, say, which are outputs as well
        if any(self._of(storage) for storage in node.storages[1:]):
            return None
        found = self._of(node.storages[0])
        return found[0] if len(found) == 1 else None

    def separate(self, chain: Sequence[Node]) -> bool:
        """Return whether a function between those of `chain` rewrites what they read.

        Fused functions all run in the place of the last, where they would read what was written.
        """
        first, last = self._place[chain[0]], self._place[chain[-1]]
        read = {value.storage.data.synced for node in chain for value in node.inputs if value is not None}
        return any(first < place < last and array in read for place, array in self._rewritten)

    def jump(self, node: Node) -> bool:
        """Return whether a discontinuous function reads what `node` computes, unless a sum has rounded it before.

        A normalization, say, is fused as a factor and an offset. It is exactly beta where its input is the mean; the fused
        function is only near beta, and a sign or a comparison after it would give something else. What a sum, such as a
        convolution, makes of the result is rounded in any case.
        """
        seen, pending = {node}, [node]
        while pending:
            for reader in (reader for storage in pending.pop().storages for reader in self._of(storage)):
                if reader is None or reader in seen:
                    continue
                if reader.spec.has("discontinuous"):
                    return True
                seen.add(reader)
                if reader.spec.has("pointwise") or reader.spec.has("selecting"):
                    pending.append(reader)
        return False


def _fused_chains(offered: OfferedFusion, order: Sequence[Node], readers: _Readers) -> Iterator[tuple[tuple[Node, ...], Node]]:
    """Yield chains of `order` that have no function in common, each with the operator to run instead."""
    free = set(order)  # what an earlier fusion has taken is no function of `order` any more
    for node in order:
        matches = _matches(offered, node, readers, free)
        backend = kernel_of(node, {}).backend if matches and not offered.plugin else None
        # only the backend knows whether one kernel of its own is faster than several
        if backend is not None and offered.fusion.function not in extra(backend, "inference_fusions"):
            continue
        # the longest chain that the operator takes
        for match in reversed(matches):
            fused = None if readers.separate(match.nodes) else _stand_in(offered, match, backend)
            if fused is not None:
                free.difference_update(match.nodes)
                yield match.nodes, fused
                break


def _matches(offered: OfferedFusion, first: Node, readers: _Readers, free: set[Node]) -> list["_Match"]:
    """Return the whole chains of `free` functions that begin with `first`, each a function longer than the one before."""
    found: list[_Match] = []
    match, following = _Match(offered.fusion), first if first.spec.name == offered.fusion.links[0].function else None
    while following is not None and following in free:
        joined = match.joined(following) if offered.knows(following) else None
        if joined is None or (not joined.link.exact and readers.jump(following)):
            break
        match = joined
        if match.is_whole:
            found.append(match)
        following = readers.sole_reader(following)
    return found


@dataclass(frozen=True, slots=True)
class _Match:
    """Functions of a pass that the first links of a fusion describe.

    Attributes:
        fusion: The fusion.
        nodes: The functions.
        position: The position of the link that comes next.
        inputs: The inputs of the operator so far.
        args: Its arguments so far.
    """

    fusion: Fusion
    nodes: tuple[Node, ...] = ()
    position: int = 0
    inputs: Mapping[str, Value | None] = field(default_factory=dict)
    args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def link(self) -> ChainLink:
        """The link that describes the last function."""
        return self.fusion.links[self.position - 1]

    @property
    def is_whole(self) -> bool:
        """Whether the functions are a chain that may be fused."""
        return len(self.nodes) > 1 and all(link.optional for link in self.fusion.links[self.position :])

    def joined(self, node: Node) -> "_Match | None":
        """Return the match with a function, which reads the result of the last one; None where it does not fit."""
        if node.python is not None or (self.nodes and node.context is not self.nodes[-1].context):
            return None
        for position, link in enumerate(self.fusion.links[self.position :], self.position):
            match = self._with(link, position, node) if link.function == node.spec.name else None
            if match is not None or not link.optional:
                return match
        return None

    def _with(self, link: ChainLink, position: int, node: Node) -> "_Match | None":
        values = dict(zip([entry.name for entry in node.spec.inputs], node.inputs, strict=False))
        if not self._is_read(link, node, values):
            return None
        call = self._described(node, values)
        inputs = {name: values.get(own) for name, own in link.inputs.items()}
        args = {name: node.args[own] for name, own in link.args.items()} | dict(link.sets)
        args |= {name: work_out(call) for name, work_out in link.computed.items()}
        inputs |= {name: _shown(inputs.get(name), shape_of(call)) for name, shape_of in link.shaped.items()}
        if not self._has_room(inputs, args) or any(inputs[name] is None for name in link.shaped):
            return None
        if link.requires is not None and not link.requires(call):
            return None
        return _Match(self.fusion, (*self.nodes, node), position + 1, {**self.inputs, **inputs}, {**self.args, **args})

    def _has_room(self, inputs: Mapping[str, Value | None], args: Mapping[str, Any]) -> bool:
        """Return whether the operator has none of these inputs and arguments yet."""
        twice = any(value is not None and self.inputs.get(name) is not None for name, value in inputs.items())
        return not twice and self.args.keys().isdisjoint(args)

    def _is_read(self, link: ChainLink, node: Node, values: Mapping[str, Value | None]) -> bool:
        """Return whether a function reads the result of the last one where its link says so, and makes one result."""
        if not self.nodes:
            return True
        read = values[link.chain] if link.chain else node.inputs[0]
        return read is not None and read.storage is self.nodes[-1].storages[0]

    def _described(self, node: Node, values: Mapping[str, Value | None]) -> LinkCall:
        shapes = {name: None if value is None else value.storage.data.shape for name, value in values.items()}
        return LinkCall(node.args, shapes, node.storages[0].data.shape, {**self.fusion.sets, **self.args})

    def inputs_of(self, spec: FunctionSpec) -> list[Value | None]:
        """Return the inputs of the operator."""
        if self.fusion.settings is None:
            return [self.inputs.get(entry.name) for entry in spec.inputs]
        return [*self.nodes[0].inputs, *(value for node in self.nodes[1:] for value in node.inputs[1:])]


def _shown(value: Value | None, shape: Shape) -> Value | None:
    """Return the elements of a leaf in another shape; None for what is not a leaf with memory of its own."""
    if value is None or value.producer is not None or value.storage.data.is_narrowed:
        return None
    return Value(Storage(value.storage.data.view(shape)))


def _stand_in(offered: OfferedFusion, match: _Match, backend: Backend | None) -> Node | None:
    """Return the operator to run instead of a chain, by a kernel of `backend` if one is given; None where it is refused."""
    settings = offered.settings([node.args for node in match.nodes], match.args)
    node = None if settings is None else _operator(match, settings)
    kernel = None if node is None else _kernel_of(node, backend)
    if node is None or kernel is None or kernel.output_shapes[0] != node.storages[0].data.shape:
        return None
    node.add_outputs([Storage(NdArray.of_shape(shape)) for shape in kernel.output_shapes[1:]])
    offered.note(node, match.nodes)
    return node


def _operator(match: _Match, settings: Mapping[str, Any]) -> Node | None:
    """Return the operator on the inputs of a chain; None where these or the settings are not what it takes."""
    spec = spec_of(match.fusion.function)
    inputs = match.inputs_of(spec)
    if not spec.variadic and not _takes(spec, inputs):
        return None
    shapes = [None if value is None else value.storage.data.shape for value in inputs]
    try:
        return Node.standing_for(match.nodes[-1], spec, resolve_args(spec, settings, shapes), inputs)
    except NNCoreError:
        return None


def _takes(spec: FunctionSpec, inputs: Sequence[Value | None]) -> bool:
    """Return whether the operator has so many inputs, and all that it needs are given."""
    pairs = itertools.zip_longest(spec.inputs, inputs)
    return all(entry is not None and (entry.optional or value is not None) for entry, value in pairs)


def _kernel_of(node: Node, backend: Backend | None) -> PreparedKernel | None:
    """Return the kernel of an operator, which must be that of `backend` if one is given; None where there is none."""
    try:
        kernel = kernel_of(node, {})
    except NNCoreError:  # its rule is stricter than those of the chain, or nobody runs it here
        return None
    # the reference kernel would serve, and compute the functions one by one
    is_own = backend is None or (kernel.backend is backend and kernel.implementation is backend.kernels.get(node.spec.name))
    return kernel if is_own else None
