"""The backward pass: gradients of one variable with respect to everything before it, compiled into a plan.

Accumulation lives here and only here: kernels and gradient rules overwrite their targets. The gradient of a leaf is
added to what it holds, unless it was set to zero, in which case the first contribution is written straight into it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_core.array import HOST, NdArray
from nn_core.errors import ShapeError
from nn_core.graph.backward_compile import active_nodes, compile_backward
from nn_core.graph.backward_data import BackwardPlan
from nn_core.graph.forward import plans_of, remember
from nn_core.graph.hooks import Hook, active_hooks
from nn_core.graph.node import Node, Vertex
from nn_core.graph.order import forward_order
from nn_core.graph.plan import is_current


def run_backward(
    root: Vertex,
    grad: Any = 1,
    clear_buffer: bool = False,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    finish: Callable[[Node], object] | None = None,
) -> None:
    """Propagate the gradient `grad` of `root` to all variables that need one."""
    if root.producer is None or not root.need_grad:
        return
    hooks = active_hooks(pre_hook, post_hook)
    plan = backward_plan(root, grad is None, clear_buffer and hooks is None)
    if plan is None:
        return
    _set_start(plan, root, grad)
    plan.run(hooks, finish)
    for source in plan.sources:
        source.release()
    for synced in plan.freed:
        synced.attach((HOST, "float32"), None, plan.gone)


def backward_plan(root: Vertex, own_start: bool, clear_buffer: bool) -> BackwardPlan | None:
    """The plan for `root` that fits which leaf gradients are zero now; compiled if there is none."""
    plans = plans_of(root)
    for overwrite in (True, False):
        plan = plans.get(("backward", own_start, clear_buffer, overwrite))
        if plan is None or not is_current(plan, (root,)):
            continue
        zeroed = all(synced.lazy == 0.0 for synced, _ in plan.leaf_grads)
        if overwrite and zeroed:
            for synced, _ in plan.leaf_grads:
                synced.lazy = None
                synced.modifications += 1
        elif overwrite:
            continue
        else:
            for synced, key in plan.leaf_grads:
                synced.readwrite(key)
        found_plan: BackwardPlan = plan
        return found_plan
    return _compile_and_remember(root, plans, own_start, clear_buffer)


def _compile_and_remember(
    root: Vertex, plans: dict[Any, Any], own_start: bool, clear_buffer: bool
) -> BackwardPlan | None:
    order = forward_order((root,))
    active, counts = active_nodes(root, order)
    leaves = [cell for cell in counts if cell.is_leaf]
    overwrite = all(leaf.cell.grad._synced.lazy == 0.0 or leaf.cell.grad._synced.head is None for leaf in leaves)
    plan = compile_backward(root, order, active, counts, own_start, clear_buffer, overwrite)
    remember(plans, ("backward", own_start, clear_buffer, overwrite), plan)
    return plan


def _set_start(plan: BackwardPlan, root: Vertex, grad: Any) -> None:
    """Write the gradient that the pass starts from."""
    buffer = plan.start
    if buffer is None:
        return
    array = buffer.array
    assert array is not None
    if isinstance(grad, NdArray):
        array[...] = grad.read(buffer.space, buffer.dtype)
        plan.start_value = None
    elif np.ndim(grad) == 0:
        value = float(grad)
        if plan.start_value != value:
            array[...] = value
            plan.start_value = value
    else:
        values = np.asarray(grad)
        if values.shape != root.shape:
            raise ShapeError(f"backward: grad must have the variable's shape {root.shape}, got {values.shape}")
        array[...] = values if buffer.space is HOST else buffer.space.from_numpy(values.astype(buffer.dtype))
        plan.start_value = None
