"""Functions that a pass without gradients runs as one: a convolution and the functions after it that touch its result once.

A convolution, a batch normalization by running statistics, an addition and an activation become one FusedConvolution,
if the backend of the convolution says so (`inference_fusions`) and has a kernel for it, and if nobody else reads the
values between them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import SyncedArray
from nn_core.engine.dispatch.known import KnownOperators
from nn_core.engine.dispatch.registry import spec_of
from nn_core.engine.graph.compile import kernel_of
from nn_core.engine.graph.node import Node, Storage, Value
from nn_core.engine.graph.plugin_fusion import Rewriting, fused_by_plugins, reads
from nn_core.errors import NNCoreError
from nn_core.settings import is_enabled
from nn_core.typing import extra

_FUSED: Final = "FusedConvolution"
#: The version of operators whose arguments and inputs the chains read in full.
_KNOWN: Final = KnownOperators("0.1")
#: Arguments of the fused function that hold where no function of the chain gives its own.
_DEFAULTS: Final[Mapping[str, Any]] = {"decay_rate": 0.9, "eps": 1e-5, "nonlinearity": "identity"}


def fused(roots: Sequence[Value], order: Sequence[Node], dropped: set[Node]) -> tuple[list[Node], list[SyncedArray]]:
    """Return the functions to run instead of `order`, and the arrays that are not computed any more.

    Args:
        roots: The results of the pass.
        order: Its functions in order.
        dropped: Those whose results nobody can read after the pass, if they are no roots and not persistent.
    """
    if not is_enabled("inference_fusion"):
        return list(order), []
    readers = _readers(roots, order)
    replaced: dict[Node, Node | None] = {}
    skipped: list[SyncedArray] = []
    rewriting = Rewriting(order)
    for node in order:
        if not _begins_chain(node) or node in replaced:
            continue
        chain = _chain_of(node, readers, dropped, replaced)
        fused = None if rewriting.separates(chain.nodes) else chain.fused()
        if fused is None:
            continue
        replaced.update(dict.fromkeys(chain.nodes))
        replaced[chain.last] = fused
        skipped += chain.skipped(fused)
    result = [node for node in (replaced.get(node, node) for node in order) if node is not None]
    stood_in = set(result) - set(order)
    result, also_skipped = fused_by_plugins(
        result, lambda node: None if node in stood_in else _sole_reader(node, readers, dropped)
    )
    return result, [*skipped, *also_skipped]


def _begins_chain(node: Node) -> bool:
    return node.spec.name == "Convolution" and node.python is None and reads(_KNOWN, node)


def _chain_of(
    convolution: Node,
    readers: "Mapping[SyncedArray, Sequence[Node | None]]",
    dropped: set[Node],
    replaced: Mapping[Node, Node | None],
) -> "_Chain":
    """Return the longest chain that begins with a convolution."""
    chain = _Chain(convolution)
    while (following := _sole_reader(chain.last, readers, dropped)) is not None:
        if following in replaced or _rounds_before_jump(following, readers) or not chain.append(following):
            break
    return chain


def _rounds_before_jump(node: Node, readers: "Mapping[SyncedArray, Sequence[Node | None]]") -> bool:
    """Return whether fusing `node` would round the argument of a discontinuous function otherwise than `node` does.

    A normalization is fused as a factor and an offset. It is exactly beta where its input is the mean; the fused function is
    only near beta, and a sign or a comparison after it would give something else. What a sum, such as a convolution, makes of
    the result is rounded in any case.
    """
    if node.spec.topic != "normalization":
        return False
    seen, pending = {node}, [node]
    while pending:
        for reader in (reader for storage in pending.pop().storages for reader in readers.get(storage.data.synced, ())):
            if reader is None or reader in seen:
                continue
            if reader.spec.has("discontinuous"):
                return True
            seen.add(reader)
            if reader.spec.has("pointwise") or reader.spec.has("selecting"):
                pending.append(reader)
    return False


class _Chain:
    """A convolution and the functions after it that are fused with it."""

    def __init__(self, convolution: Node) -> None:
        self.nodes = [convolution]
        self._inputs: dict[str, Value | None] = {}
        self._args: dict[str, Any] = {}

    @property
    def last(self) -> Node:
        """The function whose result the chain gives."""
        return self.nodes[-1]

    def append(self, node: Node) -> bool:
        """Take `node` in, which reads the result of the chain; False if it cannot be fused."""
        # a function that can be fused is a method here
        take = getattr(self, f"_take_{node.spec.api}", None)
        if take is None or node.context is not self.last.context or not reads(_KNOWN, node) or not take(node):
            return False
        self.nodes.append(node)
        return True

    def fused(self) -> Node | None:
        """Return the function to run instead; None if there is nothing to fuse or the backend does not want it."""
        if len(self.nodes) == 1:
            return None
        convolution = self.nodes[0]
        backend = kernel_of(convolution, {}).backend
        # only the backend knows whether one kernel is faster than the parts
        wanted = extra(backend, "inference_fusions")
        if _FUSED not in wanted:
            return None
        names = ("bias", "beta", "gamma", "mean", "variance", "z")
        inputs = dict(zip(("x", "weight", "bias"), (*convolution.inputs, None), strict=False)) | self._inputs
        args = {
            **_DEFAULTS,
            **convolution.args,
            **self._args,
            "batch_stat": False,
            "nonlinearity_args": (),
            "pad_mode": "constant",
            "constant_value": 0.0,
        }
        spec = spec_of(_FUSED)
        ordered = {arg.name: args[arg.name] for arg in spec.args}
        values = [inputs["x"], inputs["weight"], *[inputs.get(name) for name in names]]
        node = Node.standing_for(self.last, spec, ordered, values)
        try:
            kernel = kernel_of(node, {})
        except NNCoreError:  # the rule of the fused function is stricter than those of its parts
            return None
        # the reference kernel would serve, and compute the parts one by one
        if kernel.backend is not backend or kernel.implementation is not backend.kernels.get(_FUSED):
            return None
        node.add_outputs([Storage(NdArray.of_shape(shape)) for shape in kernel.output_shapes[1:]])
        return node

    def skipped(self, fused: Node) -> list[SyncedArray]:
        """Return the arrays that are not computed where `fused` runs instead."""
        return [storage.data.synced for node in self.nodes for storage in node.storages if storage is not fused.storages[0]]

    def _take_batch_normalization(self, node: Node) -> bool:
        channel = len(node.storages[0].data.shape) - 1 if self._is_channel_last() else self.nodes[0].args["base_axis"]
        fits = not self._args and not self._inputs and node.inputs[0] is not None
        if not fits or node.args["batch_stat"] or tuple(node.args["axes"]) != (channel,):  # type: ignore[arg-type]
            return False
        # the chain has to be what is normalized, and not a statistic
        if node.inputs[0].storage is not self.last.storages[0]:  # type: ignore[union-attr]  # looked at above
            return False
        _, beta, gamma, mean, variance, *_ = node.inputs
        self._inputs |= {"beta": beta, "gamma": gamma, "mean": mean, "variance": variance}
        self._args |= {"eps": node.args["eps"], "decay_rate": node.args["decay_rate"]}
        return True

    def _take_fused_batch_normalization(self, node: Node) -> bool:
        z = node.inputs[5] if len(node.inputs) > 5 else None
        # added to itself: the fused function would have to read what it is about to compute
        if z is not None and z.storage is self.last.storages[0]:
            return False
        if not self._take_batch_normalization(node):
            return False
        self._inputs["z"] = z
        self._args["nonlinearity"] = node.args["nonlinearity"]
        return True

    def _take_add2(self, node: Node) -> bool:
        others = [v for v in node.inputs if v is not None and v.storage is not self.last.storages[0]]
        shape = node.storages[0].data.shape
        if len(others) != 1 or others[0].storage.data.shape != shape or self.last.storages[0].data.shape != shape:
            return False
        if self._inputs.get("z") is not None or "nonlinearity" in self._args:
            return False
        self._inputs["z"] = others[0]
        return True

    def _take_relu(self, node: Node) -> bool:
        if self._args.get("nonlinearity", "identity") != "identity":
            return False
        self._args["nonlinearity"] = "relu"
        return True

    def _is_channel_last(self) -> bool:
        return bool(self.nodes[0].args["channel_last"])


def _readers(roots: Sequence[Value], order: Sequence[Node]) -> dict[SyncedArray, list[Node | None]]:
    """Return the readers of each array: functions, and None for the caller of the pass."""
    readers: dict[SyncedArray, list[Node | None]] = {}
    for root in roots:
        readers.setdefault(root.storage.data.synced, []).append(None)
    for node in order:
        for value in node.inputs:
            if value is not None:
                readers.setdefault(value.storage.data.synced, []).append(node)
    return readers


def _sole_reader(node: Node, readers: Mapping[SyncedArray, Sequence[Node | None]], dropped: set[Node]) -> Node | None:
    """Return the function that alone reads the first result of `node`, whose values nobody can see after the pass."""
    value = node.output(0)
    if node not in dropped or (value is not None and (value.persistent or value.recompute)):
        return None
    # statistics of the batch, say, which are outputs as well
    if any(readers.get(storage.data.synced) for storage in node.storages[1:]):
        return None
    found = readers.get(node.storages[0].data.synced, ())
    return found[0] if len(found) == 1 else None
