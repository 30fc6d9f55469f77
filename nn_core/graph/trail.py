"""What a thread has called so far in a dynamic graph, and what followed the same calls before.

A program calls the same functions on the same parameters in each step. The calls are a walk through a tree: its nodes
are `Step`, and what a call is made of (the function, its settings, where each input comes from) says which branch is
taken. Who makes a call that was made at this place before finds there what had to be worked out for it the first time;
and as the place stands for all that was called before, it also knows the structure of the graph.

A `Trail` is one walk. It ends with a backward pass, or when it has become long; the next one starts at the root again.
"""

import threading
import weakref
from collections.abc import Mapping
from typing import Any, Final

from nn_core.context import Context
from nn_core.graph.execute import Prepared
from nn_core.graph.node import NEED_GRAD_EPOCH, TRAILS, Vertex
from nn_core.graph.recipe import WHEN_FORGOTTEN, Recipe
from nn_core.settings import is_enabled
from nn_core.spec.model import FunctionSpec
from nn_core.synced import SyncedArray
from nn_core.variable import Variable

#: A walk of so many calls ends; with so many steps a tree is dropped.
MAX_LENGTH: Final = 2048
MAX_STEPS: Final = 2**15


class Step:
    """One call at one place of the tree.

    Attributes:
        recipe, prepared: The function and its kernel.
        need_grad: What the variable of the result gets: False, or None where it follows from `through`.
        through: Whether an input needs a gradient.
        whole: Whether all inputs come from this walk or are leaves, here and in every step before.
        mark: Stands for the result in the keys of later calls: an even negative number.
        following: The next steps by the key of the call.
        structure: Where the parts of the graph that ends here lie on the trail; see `nn_core.graph.replay`.
    """

    __slots__ = ("following", "mark", "need_grad", "prepared", "recipe", "structure", "through", "whole")

    recipe: Recipe
    prepared: Prepared

    def __init__(self, position: int) -> None:
        self.mark = -2 * (position + 1)
        self.need_grad: bool | None = None
        self.through = False
        self.whole = True
        self.following: dict[Any, Step] = {}
        self.structure: Any = None


class Trail:
    """One walk, of one thread in one context.

    Attributes:
        results: What each step has given, held weakly; the position of a step is its index here.
        broken: Whether somebody has asked for a node or a cell of the walk, and may have changed what it holds.
    """

    __slots__ = ("__weakref__", "_arrays", "_numbers", "_tree", "broken", "context", "epoch", "results", "step")

    def __init__(self, tree: "_Tree", context: Context) -> None:
        self.context = context
        #: need_grad and other flags of vertices are what they were when the walk began, as long as this is the epoch
        self.epoch = NEED_GRAD_EPOCH[0]
        self.step = tree.root(context)
        self.results: list[weakref.ref[Variable]] = []
        self.broken = False
        self._tree = tree
        self._arrays: list[weakref.ref[SyncedArray]] = []
        self._numbers: dict[int, int] = {}
        TRAILS[id(self)] = self

    def key_of(
        self, spec: FunctionSpec, inputs: tuple[Any, ...], args: Mapping[str, Any], no_grad: bool
    ) -> tuple[Any, ...] | None:
        """What distinguishes a call from others at this place; None for one that is not followed.

        Parameters are told apart by the address of their cell. That of a cell which is gone may come back for another
        one: so a step only knows what holds for both, and who needs more compares the cells.
        """
        key: list[Any] = [spec, no_grad]
        if args:
            key.append(tuple(args.items()))
        for vertex in inputs:
            if type(vertex) is Variable:
                step = vertex.step
                if step is not None:
                    key.append(step.mark if vertex.trail is self else (vertex.need_grad, step.recipe.output_shapes[0]))
                    continue
                cell = vertex._cell
                assert cell is not None
                if vertex._producer is not None:
                    key.append((vertex.need_grad, cell.data._shape))
                elif vertex._need_grad:
                    key += (id(cell), cell.data._shape)
                else:
                    data = cell.data
                    key += (self._mark_of(data._synced) if data._synced.tenure is None else 0, data._shape)
            elif vertex is None:
                key.append(None)
            else:
                return None
        return tuple(key)

    def _mark_of(self, synced: SyncedArray) -> int:
        """An odd negative number that stands for an array without a gradient."""
        number = self._numbers.get(id(synced))
        if number is None or self._arrays[number]() is not synced:
            number = self._numbers[id(synced)] = len(self._arrays)
            self._arrays.append(weakref.ref(synced))
        return -2 * number - 1

    def branch(self, key: tuple[Any, ...], recipe: Recipe, prepared: Prepared, inputs: tuple[Any, ...], no_grad: bool) -> Step:
        """The step for a call that is made at this place for the first time."""
        before = self.step
        step = Step(len(self.results))
        step.recipe, step.prepared = recipe, prepared
        if no_grad or not recipe.differentiable:
            step.need_grad = False
        else:
            step.through = any(vertex is not None and vertex.need_grad for vertex in inputs)
        step.whole = before.whole and all(vertex is None or self._belongs(vertex) for vertex in inputs)
        before.following[key] = step
        self._tree.n_steps += 1
        return step

    def _belongs(self, vertex: Vertex) -> bool:
        return vertex.trail is self or (vertex.is_leaf and (bool(vertex._need_grad) or vertex.cell.data._synced.tenure is None))

    def end(self) -> None:
        """Let the next call of the thread start at the root."""
        if self._tree.trail is self:
            self._tree.trail = None

    def number_of(self, synced: SyncedArray) -> int:
        """The number of an array that a call of this walk has read; see `array`."""
        return self._numbers[id(synced)]

    def array(self, number: int) -> SyncedArray | None:
        """The array of a number, if it is still there."""
        return self._arrays[number]()


class _Tree(threading.local):
    """The steps of one thread, by context, and the walk that it is on."""

    def __init__(self) -> None:
        self.trail: Trail | None = None
        self.n_steps = 0
        self._roots: dict[Context, Step] = {}
        self.enabled = is_enabled("replay")

    def root(self, context: Context) -> Step:
        if self.n_steps > MAX_STEPS:
            self._roots.clear()
            self.n_steps = 0
        root = self._roots.get(context)
        if root is None:
            root = self._roots[context] = Step(-1)
        return root


_TREES = [_Tree()]


def current_trail(context: Context) -> Trail | None:
    """The walk that this thread is on in `context`; None where walks are switched off."""
    tree = _TREES[0]
    trail = tree.trail
    if (
        trail is None
        or trail.context is not context
        or trail.epoch != NEED_GRAD_EPOCH[0]
        or len(trail.results) >= MAX_LENGTH
    ):
        if not tree.enabled:
            return None
        trail = tree.trail = Trail(tree, context)
    return trail


def _forget() -> None:
    """Drop the steps of all threads: kernels may have changed."""
    _TREES[0] = _Tree()


WHEN_FORGOTTEN.append(_forget)
