"""The nodes of the trees of calls that dynamic graphs follow; see `nn_core.engine.graph.trace`."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from nn_core.engine.graph.call import PreparedKernel, ResolvedCall
from nn_core.engine.runtime.holders import CURRENT_SCOPE
from nn_core.operators.spec.model import FunctionSpec
from nn_core.typing import Shape

#: The position of nodes that are at no place of a tree.
ANYWHERE: Final = -1

#: An input that no function of the walk has given: a mark, whether a gradient goes there, its shape. The mark of a parameter
#: is the address of its storage, that of the n-th array of the walk without a gradient -1 - n (-2**32 - n while it holds
#: integers), and that of what a function outside the walk has given 0. The address of a storage that is gone may come back for
#: another storage: so a node knows only what holds for both, and who needs more compares the storages.
Leaf: TypeAlias = tuple[int, bool, Shape]
#: The source of an input: a node of the trace, a leaf, or None because it was not given.
Source: TypeAlias = "TraceNode | tuple[int, bool, Shape] | None"


class TraceNode:
    """One call at one place of the tree; or all calls of one kind, of walks that have left it.

    Attributes:
        position: Number of calls before it; ANYWHERE for a node that stands for many calls, which has no sources.
        spec, given, sources: The function, its arguments as they were given, and the sources of its inputs.
        call, kernel: The function with everything about it, and its kernel.
        input_keys, output_key, space, make, forward: The parts of `kernel` that running it takes.
        need_grad: The flag of the result's variable: False, or None where it follows from `through`.
        needs, through: Which inputs need a gradient, and whether one does.
        whole: Whether all inputs come from this walk or are leaves, here and in every node before.
        following: The next nodes, by function, settings and inputs; None while there is none.
        latest: The one of them that was taken last.
        kind: Equal (as an object) for nodes whose results have one shape and dtype and alike need a gradient; None: unasked.
        layer: The call of a layer that came to no more than this call; see `nn_core.parametric_functions.repeated`.
        digest: Equal for calls whose results depend in the same way on the same parameters, wherever they are in the tree.
        scope: The address of the parameter scope in which the call was made when the tree got it, for tables of functions; not
            the scope itself, whose parameters would live as long as the tree.
        structure: The structure of the graph that ends here, with its places on the trace; see `nn_core.engine.graph.replay`.
    """

    __slots__ = (
        "call",
        "digest",
        "following",
        "forward",
        "given",
        "input_keys",
        "kernel",
        "kind",
        "latest",
        "layer",
        "make",
        "n_inputs",
        "need_grad",
        "needs",
        "output_key",
        "position",
        "scope",
        "sources",
        "space",
        "spec",
        "structure",
        "through",
        "whole",
    )

    def __init__(
        self,
        position: int,
        spec: FunctionSpec,
        given: Mapping[str, Any],
        sources: Sequence[Source],
        call: ResolvedCall,
        kernel: PreparedKernel,
    ) -> None:
        self.position = position
        self.spec = spec
        self.given = given
        self.sources = sources
        self.n_inputs = len(sources)
        self.call = call
        self.kernel = kernel
        self.input_keys: Sequence[Any] = kernel.input_keys
        self.output_key = kernel.output_keys[0]
        self.space = kernel.space
        self.make = kernel.makers[0]
        self.forward = kernel.at_once
        self.need_grad: bool | None = None
        self.needs = tuple([source is not None and needs_grad(source) for source in sources])
        self.through = any(self.needs)
        self.digest = hash((kernel, *map(_digest_of, sources)))
        self.kind: object = None
        self.whole = True
        self.following: dict[Any, TraceNode] | None = None
        self.latest: TraceNode | None = None
        self.layer: Any = None
        self.scope = id(CURRENT_SCOPE[-1]())
        self.structure: Any = None


def needs_grad(source: "TraceNode | Leaf") -> bool:
    """Return whether a gradient goes to an input."""
    if not isinstance(source, TraceNode):
        return source[1]
    return source.through if source.need_grad is None else source.need_grad


def _digest_of(source: Source) -> Any:
    if source is None or isinstance(source, TraceNode):
        return source and source.digest
    return source if source[1] else source[2]  # the numbers of arrays without a gradient depend on the calls before


class Root:
    """The start of all walks of a tree.

    Attributes:
        known: The nodes of calls off the tree, by function, settings, and the kinds of the inputs.
        kinds: The kinds of results, by shape, key, and whether they need a gradient.
    """

    __slots__ = ("following", "kinds", "known", "latest", "whole")

    def __init__(self) -> None:
        self.known: dict[Any, TraceNode] = {}
        self.kinds: dict[Any, object] = {}
        self.following: dict[Any, TraceNode] | None = None
        self.latest: TraceNode | None = None
        self.whole = True
