"""Gradients as a part of the graph."""

from typing import Any

from nn_core.engine.graph.grad import grad as grad


class Grad:
    """NNabla's class of what `grad` does: an object of it is called with the same arguments.

    Example:
        >>> x = nn.Variable.from_numpy_array([3.0], need_grad=True)
        >>> (dx,) = Grad()([x * x], [x])
        >>> dx.forward()
        >>> dx.d.tolist()
        [6.0]
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return grad(*args, **kwargs)
