"""Parts of a graph that depend on the shapes of others, such as gradients, and are built again when these change.

A gradient rule writes the shapes that it finds into the functions it builds: the target of a reshape, the widths of a
pad. So the part as a whole is built anew for other shapes, and takes the place of the old one under the variables that
the program holds. The last few are kept, because plans are bound to them.
"""

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from nn_core.context import context_scope, get_current_context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.graph.lengths import PLAIN_SHAPES, Origin, origin_of, origins_of, renewed
from nn_core.engine.graph.modes import AUTO_FORWARD, NO_GRAD, RECOMPUTE
from nn_core.engine.graph.node import RESHAPED, Node, Value, invalidate
from nn_core.engine.graph.plan_cache import MAX_SHAPES, Shapes
from nn_core.engine.graph.reshape import change_shape


class _Ending(NamedTuple):
    """The function that gives a result, and the memory of the result."""

    node: Node
    place: int
    memory: NdArray


class Derivation:
    """The recipe of a part of a graph, from which it can be built again for other shapes.

    Args:
        build: Gives new variables for all results, each the output of a function that it makes, from what a function says
            takes the places of the sources.
        sources: The variables that the part starts from.
        results: The variables that the program has got; held weakly.
        watched: Variables whose shapes matter besides those of the sources.
        origins: Variables that only give lengths.
    """

    def __init__(
        self,
        build: Callable[[Callable[[Any], Any]], Sequence[Value]],
        sources: Sequence[Value],
        results: Sequence[Value],
        watched: Sequence[Value] = (),
        origins: Sequence[Origin] = (),
    ) -> None:
        # not the variables: an assignment may let another one take the place of one of them
        self._sources = *map(origin_of, sources), *origins
        self._origins = tuple(origins)
        self._build = build
        self._watched = tuple(dict.fromkeys((*map(origin_of, watched), *self._sources)))
        #: the functions that give the results, and which of their outputs: other variables may take these over
        self._ends = [(weakref.ref(result.producer), result.output_index) for result in results if result.producer is not None]
        self._modes = get_current_context(), NO_GRAD.get(), RECOMPUTE.get(), PLAIN_SHAPES.get()
        self._shapes = self.watched_shapes()
        self._others: dict[Shapes, list[_Ending | None]] = {}
        for result in results:
            if result.producer is not None:
                result.producer.derivation = self

    @property
    def sources(self) -> list[Any]:
        """The variables that the part starts from, and those that give lengths."""
        return [origin.value for origin in self._sources]

    @property
    def lengths(self) -> list[Value]:
        """The variables that only give lengths."""
        return [origin.value for origin in self._origins]

    @property
    def watched(self) -> list[Any]:
        """The variables whose shapes decide how the part is built."""
        return [origin.value for origin in self._watched]

    def fits(self, counterpart: Callable[[Any], Any]) -> bool:
        """Return whether the part is the same for a copy of the graph; `counterpart` returns what stands for a variable
        there.
        """
        return self._shapes == tuple([counterpart(value).plain_shape for value in self.watched])

    def rebuilt(self, counterpart: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
        """Build the part anew in a copy of the graph; returns pairs of results, those here and those in the copy."""
        nodes = [(reference(), place) for reference, place in self._ends]
        results = [None if node is None else node.output(place) for node, place in nodes]
        made = self._made(counterpart)
        return [(result, new) for result, new in zip(results, made, strict=True) if result is not None]

    def follow(self) -> None:
        """Put the part for the present shapes of the sources into the place of the one for earlier shapes."""
        shapes = self.watched_shapes()
        if shapes == self._shapes:
            return
        nodes = [(reference(), place) for reference, place in self._ends]
        # held weakly: what the program has dropped is not built again
        results = [None if node is None else node.output(place) for node, place in nodes]
        endings = self._others.pop(shapes, None) or self._built(results)
        while len(self._others) >= MAX_SHAPES - 1:
            self._others.pop(next(iter(self._others)))
        self._others[self._shapes] = [None if result is None else _detached(result) for result in results]
        self._shapes = shapes
        for number, (result, ending) in enumerate(zip(results, endings, strict=True)):
            if result is not None and ending is not None:
                self._attach(result, ending)
                self._ends[number] = weakref.ref(ending.node), ending.place
        invalidate()
        RESHAPED.advance()

    def watched_shapes(self) -> Shapes:
        """Return the present shapes that decide how the part is built."""
        return tuple([origin.value.plain_shape for origin in self._watched])

    def _built(self, results: Sequence[Value | None]) -> list[_Ending | None]:
        made = self._made(_itself)
        return [None if result is None else _ending(result, new) for result, new in zip(results, made, strict=True)]

    def _made(self, counterpart: Callable[[Any], Any]) -> Sequence[Value]:
        context, no_grad, recompute, plain = self._modes
        # as when it was built: the modes of now are those of another part of the program
        modes = AUTO_FORWARD.scope(False), NO_GRAD.scope(no_grad), RECOMPUTE.scope(recompute), PLAIN_SHAPES.scope(plain)
        with context_scope(context), modes[0], modes[1], modes[2], modes[3]:
            return self._build(counterpart)

    def _attach(self, result: Value, ending: _Ending) -> None:
        node, place, memory = ending
        result.storage.data.rest_as(memory)
        grad = result.storage.made_grad
        if grad is not None and grad.shape != memory.shape:
            change_shape(grad, memory.shape)
        node.connect(place, result)
        # whoever infers shapes finds here that this function is not set up anew but built again
        node.derivation = self


def _itself(value: Any) -> Any:
    return value


def _detached(result: Value) -> _Ending:
    """Return the function and the memory of a result; the function forgets its derivation, which holds it from now on."""
    node = result.producer
    assert node is not None
    node.derivation = None
    shape = node.setup.output_shapes[result.output_index]
    if result.storage.data.shape != shape:  # it is the gradient of a leaf as well, and was changed with that
        change_shape(result.storage.data, shape)
    memory = NdArray.of_shape(())
    memory.rest_as(result.storage.data)
    return _Ending(node, result.output_index, memory)


def _ending(result: Value, new: Value) -> _Ending:
    """Let the function of `new` compute `result`, for the functions of its part that read `new` as well."""
    node, index = new.producer, new.output_index
    assert node is not None
    memory = NdArray.of_shape(())
    memory.rest_as(new.storage.data)
    # the program holds `result`, whose arrays stay the same objects
    new.storage = result.storage
    node.storages = (*node.storages[:index], result.storage, *node.storages[index + 1 :])
    return _Ending(node, index, memory)


F = TypeVar("F", bound=Callable[..., Any])


def follows_shapes(function: F) -> F:
    """Let a function of Variables that writes their shapes into the graph be called again when they change.

    The variables that it gives must be outputs of functions that it makes, or be among its arguments.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        returned = function(*args, **kwargs)
        if not AUTO_FORWARD.get():  # dynamic graphs are built anew for other shapes
            _note(function, args, kwargs, returned)
        return returned

    return call  # type: ignore[return-value]  # the same signature


def _note(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], returned: Any) -> None:
    sources = [value for value in _flat((*args, *kwargs.values())) if isinstance(value, Value)]
    origins = origins_of((args, kwargs))
    results = _flat(returned)
    places = [place for place, result in enumerate(results) if _is_made(result, sources)]
    if (sources or origins) and places:
        kept_args, kept_kwargs = kept(args), kept(kwargs)

        def build(counterpart: Callable[[Any], Any]) -> list[Value]:
            made = _flat(function(*renewed(kept_args, counterpart), **renewed(kept_kwargs, counterpart)))
            return [made[place] for place in places]

        Derivation(build, sources, [results[place] for place in places], origins=origins)


def kept(value: Any) -> Any:
    """Return an argument for a later call: with the origins of variables, also in tuples, lists and mappings; see
    `renewed`.
    """
    if isinstance(value, Value):
        return origin_of(value)
    kind = type(value)
    if kind is tuple or kind is list:
        return kind([kept(part) for part in value])
    return {name: kept(part) for name, part in value.items()} if kind is dict else value


def _is_made(result: Any, sources: Sequence[Value]) -> bool:
    return isinstance(result, Value) and not result.is_leaf and all(result is not source for source in sources)


def _flat(value: Any) -> list[Any]:
    """Return the parts of lists and tuples, also of nested ones, in order."""
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _flat(item)]
    return [value]
