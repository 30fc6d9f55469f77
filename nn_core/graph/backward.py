"""The backward pass: gradients of one variable with respect to everything before it, compiled into a plan.

Accumulation lives here and only here: kernels and gradient rules overwrite their targets. The gradient of a leaf is
added to what it holds, unless it was set to zero, in which case the first contribution is written straight into it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from nn_core.array import NdArray
from nn_core.errors import GraphError, ShapeError
from nn_core.graph import direct, replay
from nn_core.graph.backward_compile import active_nodes, compile_backward
from nn_core.graph.backward_data import BackwardPlan
from nn_core.graph.hooks import Hook, active_hooks
from nn_core.graph.node import Node, Vertex
from nn_core.graph.order import forward_order
from nn_core.graph.plan import current_plan, plans_of, remember
from nn_core.graph.plans import refuse_turn
from nn_core.graph.reshape import require_fitted
from nn_core.logger import logger
from nn_core.settings import is_enabled
from nn_core.state import MEMO
from nn_core.synced import HOST, UNCOMPUTED, ready
from nn_core.typing import Shape


def run_backward(
    root: Vertex,
    grad: Any = 1,
    clear_buffer: bool = False,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    finish: Callable[[Node], object] | None = None,
) -> None:
    """Propagate the gradient `grad` of `root` to all variables that need one."""
    if root.is_leaf or not root.need_grad:
        _warn_of_no_gradient(root)
        return
    _require_computed(root)
    _end_traces(root)
    hooks = active_hooks(pre_hook, post_hook)
    plan: BackwardPlan | None = None
    # a pass that nobody looks into, of a graph that was made for this one pass
    if clear_buffer and hooks is None and finish is None and _may_replay(root, grad):
        plan = _run_replayed(root, grad)
        if plan is None:
            return
    turn = plans_of(root).turn
    (is_mine,) = map(turn.acquire, (False,))  # not divided from the `try` by Ctrl-C
    if not is_mine:
        raise refuse_turn("backward")
    try:
        plan = plan or backward_plan(root, grad is None, clear_buffer and hooks is None)
        set_start(plan, root, grad)
        plan.run(hooks, finish)
        plan.give_up_forward_data()
    finally:
        turn.release()


def _end_traces(root: Vertex) -> None:
    """End the trace of the graph and that of this thread: the next step begins at the root of the tree."""
    for trace in (root._trace, MEMO.get()):
        if trace is not None:
            trace.end()


def _may_replay(root: Vertex, grad: Any) -> bool:
    return grad is not None and not root.plans and is_enabled("replay")


def _require_computed(root: Vertex) -> None:
    cell = root._cell
    if cell is not None and cell.data.synced.lease is UNCOMPUTED:
        raise GraphError(
            f"backward: the variable must be computed first, got the output of {root.producer!r}, which has not run\n"
            "  hint: call forward() before backward()"
        )


def _warn_of_no_gradient(root: Vertex) -> None:
    """Log once in a process that a pass could not compute anything; NNabla's programs go on from there."""
    if not _HAS_WARNED:
        _HAS_WARNED.append(True)
        what = "no function computes it" if root.is_leaf else "nothing before it needs a gradient"
        logger.warning(
            "backward: the variable must depend on one with need_grad=True, got one of shape %s, and %s; no gradient was "
            "computed (this is logged once)",
            root.shape,
            what,
        )


#: Holds something as soon as the warning was given.
_HAS_WARNED: Final[list[bool]] = []


def _run_replayed(root: Vertex, grad: Any) -> BackwardPlan | None:
    """Run the pass of a graph that was computed as it was built, by the template of its structure.

    Returns:
        None when that is done, else a plan that is still to be run.
    """
    spec = root.producer.spec if root.trace_node is None else root.trace_node.spec  # type: ignore[union-attr]  # root is no leaf
    structure = None if spec.has("sink") else replay.structure_of(root)  # a sink keeps the values of its inputs
    if structure is None:
        return backward_plan(root, False, True)
    template = _fitting_template(structure)
    if template is None:
        if direct.is_new(structure) and direct.can_run(structure):
            require_fitted([part for part in structure.order if isinstance(part, Node)])
            direct.run(structure, root, grad)
            return None
        plan, overwrite = _compiled(root, forward_order((root,)), False, True)
        template = replay.remember(structure, overwrite, plan)
        if template is None:
            remember(plans_of(root), ("backward", False, True, overwrite), plan)
            return plan
    set_start(template.plan, root, grad)
    template.run(structure, root)
    return None


def _fitting_template(structure: replay.Structure) -> replay.Template | None:
    """The template that overwrites the gradients of the leaves where all are zero, else the one that adds to them."""
    for overwrite in (True, False):
        template = replay.find(structure, overwrite)
        if template is not None and template.plan.take_zeros(overwrite):
            return template
    return None


def backward_plan(root: Vertex, own_start: bool, clear_buffer: bool) -> BackwardPlan:
    """The plan for `root` that fits which leaf gradients are zero now; compiled if there is none."""
    plans = plans_of(root)
    for overwrite in (True, False):
        plan: BackwardPlan | None = current_plan(plans, ("backward", own_start, clear_buffer, overwrite), (root,))
        if plan is not None and plan.take_zeros(overwrite):
            return plan
    plan, overwrite = _compiled(root, forward_order((root,)), own_start, clear_buffer)
    remember(plans, ("backward", own_start, clear_buffer, overwrite), plan)
    return plan


def _compiled(root: Vertex, order: Sequence[Node], own_start: bool, clear_buffer: bool) -> tuple[BackwardPlan, bool]:
    """A new plan, and whether it overwrites the gradients of the leaves because all of them are zero."""
    require_fitted(order)
    active, targets = active_nodes(root, order)
    overwrite = True
    for target in targets:
        if target.is_leaf:
            grad = target.cell.grad
            overwrite = overwrite and not grad.is_narrowed and grad.is_unwritten
    return compile_backward(root, order, active, targets, own_start, clear_buffer, overwrite), overwrite


def _require_shape(root: Vertex, shape: Shape) -> None:
    if shape != root.shape:
        raise ShapeError(f"backward: grad must have the variable's shape {root.shape}, got {shape}")


def set_start(plan: BackwardPlan, root: Vertex, grad: Any) -> None:
    """Write the gradient that the pass starts from."""
    buffer = plan.start
    if buffer is None:
        return
    array = buffer.array
    assert array is not None
    if type(grad) is int and grad == plan.start_value:
        return
    if isinstance(grad, NdArray):
        _require_shape(root, grad.shape)
        ready(buffer.space)
        array[...] = grad.read(buffer.space, buffer.dtype)
        plan.start_value = None
    elif np.ndim(grad) == 0:
        value = float(grad)
        if plan.start_value != value:
            ready(buffer.space)
            array[...] = value
            plan.start_value = value
    else:
        values = np.asarray(grad)
        _require_shape(root, values.shape)
        ready(buffer.space)
        array[...] = values if buffer.space is HOST else buffer.space.from_numpy(values.astype(buffer.dtype))
        plan.start_value = None
