"""Leaves that change their shape: the shapes of the graph are inferred anew, and earlier arrays and plans come back.

Functions keep the shapes of the inputs they were set up for. When a leaf has changed, the next forward pass, or whoever
reads a shape or values before it, goes through the graph once, sets up the functions whose inputs differ, and gives the
arrays of their outputs another shape in place, so that whoever holds an array sees it. Arrays and plans of the last few
shapes are kept: a graph that alternates between batch sizes finds for each of them the memory that its plans are bound to,
and compiles nothing.
"""

import threading
from collections.abc import Callable, Container, Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.arrays.synced import HOST, SyncedArray
from nn_core.engine.graph.call import ResolvedCall, resolved_call
from nn_core.engine.graph.compile import kernel_of
from nn_core.engine.graph.lengths import ShapeOf, present_settings, present_shape
from nn_core.engine.graph.node import COMPUTED_AT_ONCE, RESHAPED, Node, Setup, Storage, Value, forward_order, invalidate
from nn_core.engine.graph.plan import plans_of
from nn_core.engine.graph.plan_cache import MAX_SHAPES
from nn_core.engine.graph.python_function import WRAPPERS
from nn_core.engine.graph.run import fetch, run
from nn_core.engine.graph.sources import leaf_shapes, with_sources
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import GraphError, ShapeError
from nn_core.typing import Shape

#: One thread at a time infers shapes: readers of a graph may be several.
_FITTING: Final = fork_safe(threading.RLock())


def fit(roots: Sequence[Value], order: list[Node], compute: Callable[[Sequence[Value]], object]) -> list[Node]:
    """Infer the shapes of a graph anew where its leaves have changed theirs, and turn to the plans for these shapes.

    Args:
        roots: The results of the graph.
        order: Its functions in order.
        compute: Runs the forward pass of some variables: for functions whose output shapes follow from values.

    Returns:
        The functions in order, of which those of gradients may be others now.

    Raises:
        ShapeError: when the shapes do not fit a function any more. The graph is as before, and works again as soon as
            the shapes do.
    """
    with _FITTING:
        order = _fitted(roots, order, compute)
    shapes = leaf_shapes(order)
    for root in roots:
        root.plans = plans_of(root).of_shapes(shapes)
        root.plans.fitted = RESHAPED.value
    return order


def infer_for_reader(value: Value) -> None:
    """Infer the shapes of what a value depends on, where a leaf has got another one since: somebody is about to read them.

    Nothing is computed: where a shape follows from values, it stays what the last pass has made it until the next one.

    Raises:
        ShapeError: when the shapes do not fit a function any more; the graph is as before.
    """
    with _FITTING:
        _fitted((value,), forward_order((value,), fitted=RESHAPED.value), None)


Node.infer_shapes = infer_for_reader


def order_for_reader(roots: Sequence[Value]) -> list[Node]:
    """Return the functions that `roots` depend on, in order, with the shapes and settings that follow from the leaves as they
    are.

    Raises:
        ShapeError: when the shapes do not fit a function any more.
    """
    for root in roots:
        _ = root.shape  # whoever reads it, infers it
    return forward_order(roots)


def _fitted(roots: Sequence[Value], order: list[Node], compute: Callable[[Sequence[Value]], object] | None) -> list[Node]:
    """Infer the shapes of functions and of the parts of a graph that are built for shapes; returns the functions in order."""
    derivations = [node.derivation for node in with_sources(order) if node.derivation is not None]
    done: set[Node] = set()
    known = True
    for derivation in derivations:  # in order, so that the sources of each are there
        known = known and _infer(with_sources(forward_order(derivation.sources, done)), compute)
        if known:
            derivation.follow()
    if derivations:
        order = forward_order(roots)
    if known and _infer(with_sources(order), compute):
        version = RESHAPED.value
        for node in order:
            if node.fitted != COMPUTED_AT_ONCE:
                node.fitted = version
    return order


def note_shapes(roots: Sequence[Value], order: Sequence[Node]) -> None:
    """Note for which shapes of the leaves passes of `roots` are about to be compiled."""
    for root in roots:
        plans = plans_of(root)
        if plans.shapes is None:
            plans.shapes = leaf_shapes(order)


class _Change(NamedTuple):
    """A function that is to be set up anew; `view` says whether its output shares the memory of its input."""

    node: Node
    setup: ResolvedCall | Setup
    view: bool


def _infer(order: Sequence[Node], compute: Callable[[Sequence[Value]], object] | None) -> bool:
    """Set functions up for the shapes of their inputs; False where that takes values, and nothing is to be computed."""
    # first all shapes are inferred, then all are written: where a function refuses, the graph stays as it was
    changes: list[_Change] = []
    shapes: dict[Storage, Shape] = {}

    def shape_of(value: Value) -> Shape:
        return shapes.get(value.storage, value.storage.data.shape)

    for node in order:
        given = tuple([None if value is None else shape_of(value) for value in node.inputs])
        same = given == node.setup.shapes and not _lost_its_source(node, shapes)
        if same and not has_other_lengths(node, shape_of):
            if compute is not None:  # readers see what was done by hand; a pass refuses it
                _require_outputs(node)
            continue
        if node.spec.has("dynamic_shape"):
            if compute is None:
                return False
            _carry_out(changes)
            changes.clear()
            shapes.clear()
            # its output shapes follow from values, for which everything before it must have its new shapes
            _set_up_by_values(node, given, compute)
            continue
        setup = _set_up(node, given, shape_of)
        if len(setup.output_shapes) != len(node.storages):
            raise ShapeError(
                f"{node.spec.api}: the number of outputs of a graph must stay {len(node.storages)}, got "
                f"{len(setup.output_shapes)} for inputs of shape {', '.join(map(str, given))}"
            )
        changes.append(_Change(node, setup, _is_shared(node)))
        shapes.update(zip(node.storages, setup.output_shapes, strict=True))
    _carry_out(changes)
    return True


def has_other_lengths(node: Node, shape_of: ShapeOf) -> bool:
    """Return whether settings that follow from the shapes of variables have become others."""
    setup = node.setup
    if not setup.sources:
        return False
    present = present_settings(node.spec.api, setup.lengths, shape_of)
    return any(setup.given[name] != value for name, value in present.items())


def _resolved_again(node: Node, shapes: tuple[Shape | None, ...], shape_of: ShapeOf) -> ResolvedCall:
    """Return the call of a function for inputs of other shapes, with settings that follow from shapes as they are now."""
    setup = node.setup
    if not setup.sources:
        return resolved_call(node.spec, setup.given, shapes)
    settings = {**setup.given, **present_settings(node.spec.api, setup.lengths, shape_of)}
    return resolved_call(node.spec, settings, shapes).with_lengths(setup.lengths)


def _set_up(node: Node, shapes: tuple[Shape | None, ...], shape_of: ShapeOf) -> ResolvedCall | Setup:
    """Return the settings and output shapes of a function for inputs of other shapes."""
    if node.python is not None:
        return _python_setup(node, shapes)
    try:
        return _resolved_again(node, shapes, shape_of)
    except ShapeError as error:
        if "hint:" in str(error):
            raise
        raise ShapeError(
            f"{error}\n  hint: shapes that were given as numbers stay when a leaf gets another one, and so do those that "
            "x[...], dot and attention find under auto_forward(): give -1, or build the graph again"
        ) from None


def _require_outputs(node: Node) -> None:
    """Refuse outputs whose shape was changed by hand: only a function says what shape its outputs have."""
    if node.spec.has("dynamic_shape"):
        return
    for index, (storage, shape) in enumerate(zip(node.storages, node.setup.output_shapes, strict=True)):
        if storage.data.shape != shape and not _is_private(node, index):
            raise ShapeError(
                f"{node.spec.api}: output {index} must keep the shape {shape} that the function gives it, got "
                f"{storage.data.shape}\n  hint: change the shapes of leaves; use F.reshape for another view of a result"
            )


def _is_private(node: Node, index: int) -> bool:
    call = node.setup
    if not isinstance(call, ResolvedCall):
        return False
    return call.output_entries[index].private


def _is_shared(node: Node) -> bool:
    """Return whether the output of `node` is the memory that its input has, or had with another shape."""
    if not isinstance(node.setup, ResolvedCall) or not node.setup.view or node.inputs[0] is None:
        return False
    result = node.storages[0].data
    return node.inputs[0].storage.data.synced is result.synced or not result.is_whole


def _lost_its_source(node: Node, changed: Container[Storage]) -> bool:
    """Return whether the output of `node` is a view of memory that its input has no more, or will not have."""
    if not _is_shared(node):
        return False
    assert node.inputs[0] is not None
    source = node.inputs[0].storage
    return source in changed or source.data.synced is not node.storages[0].data.synced


def _python_setup(node: Node, shapes: tuple[Shape | None, ...]) -> Setup:
    """Let a function in Python say the shapes of its outputs for inputs of other shapes."""
    # on variables of its own: the graph is not to change before all functions have agreed
    wrap = WRAPPERS["variable"]
    inputs = [None if shape is None else wrap(Storage(NdArray.of_shape(shape)), None) for shape in shapes]
    outputs = [wrap(Storage(NdArray.of_shape(())), None) for _ in node.storages]
    node.python.setup_impl(inputs, outputs)
    return Setup(shapes, tuple([output.plain_shape for output in outputs]))


def _set_up_by_values(node: Node, shapes: tuple[Shape | None, ...], compute: Callable[[Sequence[Value]], object]) -> None:
    """Run a function whose output shapes are known only afterwards, after what it depends on."""
    _carry_out([_Change(node, _resolved_again(node, shapes, present_shape), False)])
    compute([value for value in node.inputs if value is not None and not value.is_leaf])
    inputs = [None if value is None else value.storage.data for value in node.inputs]
    run(kernel_of(node, {}), inputs, [storage.data for storage in node.storages])
    for storage in node.storages:
        if storage.made_grad is not None and storage.made_grad.shape != storage.data.shape:
            change_shape(storage.made_grad, storage.data.shape)


class OtherShapeError(GraphError):
    """A function whose shapes follow from values has found other ones than those for which a plan was compiled."""

    def __init__(self, node: Node, shapes: Sequence[Shape]) -> None:
        super().__init__(
            f"{node.spec.api}: outputs must keep the shapes {[storage.data.shape for storage in node.storages]} that the "
            f"forward pass has found, got {shapes}\n  hint: call forward() again after an input was written to"
        )
        self.node = node
        self.shapes = shapes


def adopt_found(found: OtherShapeError) -> None:
    """Give the outputs of a function the shapes that it has found; those that follow from them are inferred next."""
    for storage, shape in zip(found.node.storages, found.shapes, strict=False):
        if storage.data.shape == shape:
            continue
        change_shape(storage.data, shape)
        storage.data.synced.clear()
        storage.data.synced.expect()
        if storage.made_grad is not None and storage.made_grad.shape != shape:
            change_shape(storage.made_grad, shape)
    invalidate()
    RESHAPED.advance()


def _carry_out(changes: Sequence[_Change]) -> None:
    for node, setup, view in changes:
        before = node.setup.output_shapes
        node.setup = setup
        # it was chosen for other shapes
        node.kernel = None
        if isinstance(setup, ResolvedCall):
            node.args = setup.args
        for storage, old, new in zip(node.storages, before, setup.output_shapes, strict=True):
            if view:
                assert node.inputs[0] is not None
                _share(storage.data, node.inputs[0].storage.data, new)
            elif old != new:
                change_shape(storage.data, new, old)
                # no value has this shape; reading one before the next forward pass is an error
                storage.data.synced.clear()
                storage.data.synced.expect()
            if storage.made_grad is not None and storage.made_grad.shape != new:
                change_shape(storage.made_grad, new)
    if changes:
        invalidate()
        RESHAPED.advance()


# Arrays ---------------------------------------------------------------------------------------------------------------

#: The memory that arrays had with other shapes, which plans for these shapes are bound to.
_EARLIER: Final[WeakKeyDictionary[NdArray, dict[Shape, SyncedArray]]] = WeakKeyDictionary()


def change_shape(array: NdArray, shape: Shape, place: Shape | None = None) -> None:
    """Give `array` another shape in place, and the memory that it had with it before; all values become zero.

    `place` is the shape under which the present memory is kept, by default the array's own.
    """
    _keep(array, array.shape if place is None else place)
    # plans for these shapes are bound to it: with it they hold again
    synced = _EARLIER.get(array, {}).pop(shape, None)
    if synced is None or _is_held_by_users(synced):
        synced = SyncedArray(shape)
    else:
        synced.fill(0.0)  # ends what plans have lent it: they lend it anew when they run
    array.rest_on(synced, synced.shape)


def change_leaf_shape(array: NdArray, shape: Shape, size: int) -> None:
    """Give the array of a leaf another shape in place; its values stay if their number does."""
    if size != array.size:
        change_shape(array, shape)
        return
    key = (HOST, array.synced.dtype)
    fill = array.synced.pending_fill
    values = fetch(array, key) if array.synced.latest is not None and fill is None else None
    uncomputed = array.synced.lease is UNCOMPUTED
    change_shape(array, shape)
    if uncomputed:
        array.synced.expect()
    if values is not None:
        copies = array.synced.copies
        if key not in copies or copies[key].ctypes.data != values.ctypes.data:
            copies[key] = values.reshape(shape)
        array.synced.write(key)
    elif fill is not None:
        array.fill(fill)


def _is_held_by_users(synced: SyncedArray) -> bool:
    """Return whether somebody else holds memory that is the array's own, and does not expect it to change."""
    return synced.lease is None and any(map(synced.is_exported, synced.copies))


def _keep(array: NdArray, place: Shape) -> None:
    """Keep the memory of an array that is about to get another one, if anything was ever there."""
    synced = array.synced
    if not array.is_whole or (synced.latest is None and not synced.bound):
        return
    earlier = _EARLIER.setdefault(array, {})
    earlier.pop(place, None)
    while len(earlier) >= MAX_SHAPES:
        earlier.pop(next(iter(earlier)))
    earlier[place] = synced


def _share(array: NdArray, source: NdArray, shape: Shape) -> None:
    """Let `array` be a view of `source`, or an array of its own where that cannot be."""
    if source.is_narrowed:
        change_shape(array, shape)
    else:
        array.rest_on(source.synced, shape)


__all__ = [
    "OtherShapeError",
    "adopt_found",
    "change_leaf_shape",
    "fit",
    "has_other_lengths",
    "infer_for_reader",
    "note_shapes",
    "order_for_reader",
]
