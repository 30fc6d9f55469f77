"""The backward pass: gradients of one variable with respect to everything before it, compiled into a plan.

Accumulation lives here and only here: kernels and gradient rules overwrite their targets. The gradient of a leaf is
added to what it holds, unless it was set to zero, in which case the first contribution is written straight into it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.engine.error_messages.refusal import described
from nn_core.engine.graph import direct, replay
from nn_core.engine.graph.backward_data import BackwardPlan, ForwardData
from nn_core.engine.graph.completion import Completions, with_completions
from nn_core.engine.graph.failure import name_pass, raise_lack_in
from nn_core.engine.graph.gradient_compiler import GradientCompiler
from nn_core.engine.graph.gradient_sums import GradientTarget
from nn_core.engine.graph.hooks import POST_HOOKS, PRE_HOOKS, Hook, NodeHook, active_hooks
from nn_core.engine.graph.lengths import present_shape
from nn_core.engine.graph.node import Node, Storage, Value, forward_order
from nn_core.engine.graph.plan import current_plan, plans_of, remember, signature_of
from nn_core.engine.graph.plan_cache import refuse_turn
from nn_core.engine.graph.private_outputs import has_private_outputs, outdated_among
from nn_core.engine.graph.reshape import has_other_lengths
from nn_core.engine.graph.shared_layers import warn_of_shared_layers
from nn_core.engine.graph.trace_node import ANYWHERE
from nn_core.engine.runtime.atomic_calls import atomically
from nn_core.engine.runtime.context_values import MEMO
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.logger import logger
from nn_core.operators.spec.model import FunctionSpec
from nn_core.settings import is_enabled, keeps_values

#: Hooks before and after each function.
NodeHooks: TypeAlias = tuple[list[NodeHook], list[NodeHook]]
#: Kinds of dtypes of NumPy that a gradient cannot have: complex numbers, objects, texts, dates.
_NO_NUMBERS: Final = "cOSUmM"


def run_backward(
    root: Value,
    grad: Any = 1,
    clear_buffer: bool = False,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    finish: Callable[[Node], object] | None = None,
    completions: Completions | None = None,
) -> None:
    """Propagate the gradient `grad` of `root` to all variables that need one.

    With hooks, or something to `finish`, and in passes that nothing is compiled for, `completions` is left out.
    """
    if root.is_leaf or not root.need_grad:
        _warn_of_no_gradient(root)
        return
    _end_traces(root)
    grad = _checked_start(root, grad)
    hooks = _hooks(pre_hook, post_hook)
    clear_buffer = _clears(clear_buffer)
    if completions is not None:
        completions = _unseen(completions, hooks, finish)
    plan: BackwardPlan | None = None
    # a pass that nobody looks into, of a graph that was made for this one pass
    if clear_buffer and hooks is None and _may_replay(root, grad, finish):
        plan = _run_replayed(root, grad, completions)
        if plan is None:
            return
    turn = plans_of(root).turn
    (is_mine,) = atomically(turn.acquire, (False,))
    if not is_mine:
        raise refuse_turn("backward")
    try:
        plan = plan or backward_plan(root, grad is None, clear_buffer and hooks is None, completions)
        plan.set_start(grad)
        _run_seen(root, plan, grad, hooks, finish)
        plan.give_up_forward_data()
    except BaseException as error:
        _give_zeros_back(plan, error)
        raise
    finally:
        turn.release()


def _give_zeros_back(plan: BackwardPlan | None, error: BaseException) -> None:
    if plan is not None:
        plan.give_zeros_back(error)


def _checked_start(root: Value, grad: Any) -> Any:
    """Check the gradient that a pass starts from: a number, an array that fits `root`, or None.

    Raises:
        ArgumentError: when it is neither.
        ShapeError: when it is an array of another shape.
    """
    if grad is None or (type(grad) is int and grad == 1):  # what nearly all passes start from
        return grad
    # here, before anything is compiled: whatever fails later is not the caller's argument
    try:
        start = grad if isinstance(grad, (float, NdArray)) else np.asarray(grad)
    except ValueError as error:
        raise ArgumentError(f"backward: grad must be a number or an array, got {described(grad)}") from error
    if isinstance(start, np.ndarray) and start.dtype.kind in _NO_NUMBERS:
        raise ArgumentError(f"backward: grad must be a number or an array of numbers, got {described(grad)}")
    shape = np.shape(start) if isinstance(start, (float, np.ndarray)) else start.shape
    if shape not in ((), root.plain_shape):
        raise ShapeError(f"backward: grad must have the variable's shape {root.plain_shape}, got {shape}")
    return start


def _clears(clear_buffer: bool) -> bool:
    """Return whether a pass frees what its flag says, which a setting may forbid."""
    return clear_buffer and not keeps_values()


def _hooks(pre: Hook | None, post: Hook | None) -> NodeHooks | None:
    if pre is None and post is None and not PRE_HOOKS and not POST_HOOKS:
        return None
    return active_hooks(pre, post, is_backward=True)


def _run_seen(
    root: Value, plan: BackwardPlan, grad: Any, hooks: NodeHooks | None, finish: Callable[[Node], object] | None
) -> None:
    """Run a plan; hooks read the gradient that it starts from as that of `root`, and it starts from what they leave there."""
    if hooks is None or plan.start is None:
        plan.run(hooks, finish)
        return
    storage, own = root.storage, root.storage.grad
    values = grad.data if isinstance(grad, NdArray) else grad
    shown = storage.grad = NdArray.from_numpy_array(np.full(root.plain_shape, values, dtype_of(plan.start.dtype)))
    as_given = shown.modification_count

    def take(node: Node) -> None:
        if node is root.producer and shown.modification_count != as_given:
            plan.set_start(shown)

    try:
        plan.run(([*hooks[0], take], hooks[1]), finish)
    finally:
        storage.grad = own


def _unseen(completions: Completions | None, *observers: object) -> Completions | None:
    """`completions`, unless somebody looks at gradients, who must not see them on their way."""
    return completions if all(observer is None for observer in observers) else None


def _end_traces(root: Value) -> None:
    """End the trace of the graph and that of this thread: the next step begins at the root of the tree."""
    for trace in (root._trace, MEMO.get()):
        if trace is not None:
            trace.end()


def _may_replay(root: Value, grad: Any, finish: object) -> bool:
    # with None a pass reads the gradient of the root, which no template knows; and a root with plans is part of a
    # static graph
    return finish is None and grad is not None and not root.plans and is_enabled("replay")


def _warn_of_no_gradient(root: Value) -> None:
    """Log once per process that a pass could not compute anything; programs written for NNabla continue from there."""
    if not _HAS_WARNED:
        _HAS_WARNED.append(True)
        what = "no function computes it" if root.is_leaf else "nothing before it needs a gradient"
        logger.warning(
            "backward: the variable must depend on one with need_grad=True, got one of shape %s, and %s; no gradient was "
            "computed (this is logged once)",
            root.plain_shape,
            what,
        )


#: Holds something as soon as the warning was given.
_HAS_WARNED: Final[list[bool]] = []


def _run_replayed(root: Value, grad: Any, completions: Completions | None) -> BackwardPlan | None:
    """Run the pass of a graph that was computed as it was built, by the template of its structure.

    Returns:
        None when that is done, else a plan that is still to be run.
    """
    followed = replay.is_followed(root)
    # the structures of an irregular program never come back: only one that does is worth compiling
    is_new = followed and _is_new_on_trace(root)
    if is_new and direct.run_followed(root, grad):
        return None
    structure = _structure_of(root, followed)
    if structure is None:
        return backward_plan(root, False, True, completions)
    template = _fitting_template(structure, completions)
    if template is None:
        is_new = is_new if followed else direct.is_new(structure.key)
        if is_new and _run_directly(structure, root, grad):
            return None
        plan, overwrite = _compiled(root, forward_order((root,)), False, True, completions)
        template = replay.remember(structure, (overwrite, completions), plan)
        if template is None:
            # bound to this graph, so it is kept with it
            remember(plans_of(root), ("backward", False, True, completions, overwrite), plan)
            return plan
    _run_template(template, structure, root, grad)
    return None


def _structure_of(root: Value, followed: bool) -> replay.Structure | None:
    """Return the structure of a graph whose pass a template can run; None where it has to be compiled for the graph."""
    if _spec_of(root).has("sink"):  # it keeps its inputs' values
        return None
    structure = replay.structure_of(root, followed)
    if structure is None or structure.all_lazy:
        return structure
    return None if outdated_among(structure.order) else structure


def _run_template(template: replay.Template, structure: replay.Structure, root: Value, grad: Any) -> None:
    """Run a template whose leaf gradients are as it expects; if it fails, those that were zero are zero again."""
    try:
        template.plan.set_start(grad)
        template.run(structure, root)
    except BaseException as error:
        template.plan.give_zeros_back(error)
        name_pass(error, "backward", [_spec_of_part(part).api for part in structure.order])
        raise
    template.plan.zeroed = None


def _is_new_on_trace(root: Value) -> bool:
    node = root.trace_node
    # a walk that has left the tree is that of an irregular program
    return node.position == ANYWHERE or (node.structure is None and direct.is_new(node.digest))


def _spec_of(root: Value) -> FunctionSpec:
    spec: FunctionSpec = root.producer.spec if root.trace_node is None else root.trace_node.spec  # type: ignore[union-attr]  # no leaf
    return spec


def _spec_of_part(part: replay.GraphCall) -> FunctionSpec:
    return part.spec if isinstance(part, Node) else _spec_of(part)


def _run_directly(structure: replay.Structure, root: Value, grad: Any) -> bool:
    _require_fitted([part for part in structure.order if isinstance(part, Node)])
    return direct.run(structure, root, grad)


def _fitting_template(structure: replay.Structure, completions: Completions | None) -> replay.Template | None:
    """Return the template that overwrites the gradients of the leaves where all are zero, else the one that adds to them."""
    for overwrite in (True, False):
        template = replay.find(structure, (overwrite, completions))
        if template is not None and template.plan.take_zeros(overwrite):
            return template
    return None


def backward_plan(root: Value, own_start: bool, clear_buffer: bool, completions: Completions | None = None) -> BackwardPlan:
    """Return the plan for `root` that fits which leaf gradients are zero now; compiled if there is none."""
    kind = own_start, clear_buffer, completions
    plan = _kept_plan(root, kind)
    if plan is not None:
        return plan
    order = forward_order((root,))
    outdated = outdated_among(order)
    plan = _kept_plan(root, kind, outdated) if outdated else None
    if plan is None:
        plan, overwrite = _compiled(root, order, own_start, clear_buffer, completions, outdated)
        remember(plans_of(root), ("backward", *kind, overwrite, *outdated), plan)
    return plan


def _kept_plan(root: Value, kind: tuple[Any, ...], outdated: Sequence[Node] = ()) -> BackwardPlan | None:
    """Return the plan that was kept for passes which compute the private outputs of just `outdated` functions again.

    None where there is none that fits the graph and which leaf gradients are zero now.
    """
    plans = plans_of(root)
    for overwrite in (True, False):
        plan: BackwardPlan | None = current_plan(plans, ("backward", *kind, overwrite, *outdated), (root,))
        if plan is None or (not outdated and plan.private and plan.is_outdated()):
            continue
        if plan.take_zeros(overwrite):
            return plan
    return None


def _compiled(
    root: Value,
    order: Sequence[Node],
    own_start: bool,
    clear_buffer: bool,
    completions: Completions | None,
    outdated: Sequence[Node] = (),
) -> tuple[BackwardPlan, bool]:
    """Return a new plan, and whether it overwrites the gradients of the leaves because all of them are zero."""
    _require_fitted(order)
    warn_of_shared_layers(order)
    active, targets = active_nodes(root, order)
    overwrite = True
    for target in targets:
        if target.is_leaf:
            grad = target.storage.grad
            overwrite = overwrite and not grad.is_narrowed and grad.is_unwritten
    plan = compile_backward(root, order, active, targets, own_start, clear_buffer, overwrite, outdated)
    if completions is not None:
        plan.entries = with_completions(plan.entries, plan.leaf_grads, completions)
    return plan, overwrite


def _require_fitted(order: Iterable[Node]) -> None:
    """Refuse a backward pass through functions whose inputs have got other shapes since the forward pass."""
    for node in order:
        given = tuple([None if value is None else value.plain_shape for value in node.inputs])
        if given != node.setup.shapes or has_other_lengths(node, present_shape):
            shapes = ", ".join("none" if shape is None else str(shape) for shape in given)
            raise GraphError(
                f"backward: the inputs of {node.spec.api} must have the shapes of the forward pass, got {shapes}\n"
                "  hint: call forward() after reset_shape()"
            )


def active_nodes(root: Value, order: Sequence[Node]) -> tuple[list[Node], list[GradientTarget]]:
    """Return the nodes that a gradient of `root` reaches, last first, and the targets of their gradients."""
    reached: dict[Storage, GradientTarget] = {root.storage: GradientTarget(root)}
    active: list[Node] = []
    for node in reversed(order):
        if not node.need_grad or not any(storage in reached for storage in node.storages) or not _has_gradient(node):
            continue
        active.append(node)
        for value in node.inputs:
            if value is not None and value.need_grad:
                target = reached.get(value.storage)
                if target is None:
                    target = reached[value.storage] = GradientTarget(value)
                target.expected += 1  # a single contribution to a view can be that view of the gradient, without a copy
    return active, list(reached.values())


def _has_gradient(node: Node) -> bool:
    return node.python is not None or node.spec.differentiable


def compile_backward(
    root: Value,
    order: Sequence[Node],
    active: Sequence[Node],
    found: Sequence[GradientTarget],
    own_start: bool,
    clear_buffer: bool,
    overwrite: bool,
    outdated: Sequence[Node] = (),
) -> BackwardPlan:
    """Resolve the gradient of every node, place every array, and write down what the arrays hold afterwards.

    The private outputs of `outdated` functions are computed again.
    """
    plan = BackwardPlan(clear_buffer)
    plan.private = [node for node in active if has_private_outputs(node)]
    data = ForwardData(plan, root, order, clear_buffer, outdated)
    targets: dict[Storage, GradientTarget] = {target.storage: target for target in found}
    work = GradientCompiler(plan, data, targets, overwrite)
    node = order[-1]
    try:
        work.start(root, own_start)
        for node in active:
            work.add(node)
    except MemoryError as error:
        raise_lack_in(node, error, "backward")
    work.finish(root, clear_buffer)
    data.release()
    # before `bind`: moving arrays into the plan counts GRAPH_VERSION up, and `bind` notes the number
    plan.adopt()
    if overwrite:
        plan.overwrite_leaves()
    plan.bind(signature_of(order, (root,)), [*plan.bindings, *plan.bound_leaves()])
    return plan
