"""Functions of Variables from functions of NumPy arrays."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nn_core.engine.error_messages.refusal import described, fitted
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import ArgumentError, ShapeError
from nn_core.variable import Variable

__all__ = ["numpy_function"]


class _NumpyFunction(PythonFunction):
    def __init__(
        self, forward: Callable[..., Any], gradient: Callable[..., Any], shape: Callable[..., Sequence[int]] | None
    ) -> None:
        super().__init__()
        self._forward, self._gradient, self._shape = forward, gradient, shape

    @property
    def name(self) -> str:
        """Name of the function that computes."""
        return getattr(self._forward, "__name__", type(self._forward).__name__)

    def setup_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Set the shape of the output."""
        shapes = [x.shape for x in inputs]
        outputs[0].reset_shape(shapes[0] if self._shape is None else tuple(self._shape(*shapes)), True)

    def forward_impl(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Compute the output."""
        outputs[0].d = self._checked("forward", self._forward(*[x.d for x in inputs]), outputs[0].shape)

    def backward_impl(
        self, inputs: Sequence[Any], outputs: Sequence[Any], propagate_down: Sequence[bool], accum: Sequence[bool]
    ) -> None:
        """Compute the gradients that are wanted."""
        (y,) = outputs
        found = self._gradient(y.g, y.d, *[x.d for x in inputs])
        grads = found if isinstance(found, tuple) else (found,)
        if len(grads) != len(inputs):
            raise ArgumentError(
                f"{self.name}: gradient must return as many arrays as there are inputs, got {len(grads)} for {len(inputs)}"
            )
        for x, grad, is_wanted, adds in zip(inputs, grads, propagate_down, accum, strict=True):
            if is_wanted:
                x.g = self._checked("gradient", grad, x.shape) + (x.g if adds else 0)

    def _checked(self, part: str, values: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        array = np.asarray(values)
        if array.shape != shape:
            raise ShapeError(f"{self.name}: {part} must return an array of the shape {shape}, got {array.shape}")
        return array


@fitted
def numpy_function(
    forward: Callable[..., Any],
    gradient: Callable[..., Any],
    shape: Callable[..., Sequence[int]] | None = None,
) -> Callable[..., Variable]:
    """Make a function of Variables from NumPy code; it runs on the host, whatever the context.

    Derive from `PythonFunction` for several outputs; compose functions of ``nn_core.functions`` for gradients of any order
    and for speed on devices.

    Args:
        forward: ``forward(*x)`` gives the output from the arrays of the inputs.
        gradient: ``gradient(dy, y, *x)`` gives the gradient of each input, a tuple if there are several, from that of the
            output, the output and the inputs.
        shape: Gives the shape of the output from those of the inputs. Default: the shape of the first input.

    Returns:
        A function of one Variable for each input.

    Raises:
        ArgumentError: when an argument is no function; in a backward pass, for another number of gradients than of inputs.
        ShapeError: in a pass, when a function returns an array of another shape.

    Example:
        >>> cube = nn.numpy_function(lambda x: x**3, lambda dy, y, x: dy * 3 * x**2)
        >>> x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
        >>> y = F.sum(cube(x))
        >>> x.grad.zero()
        >>> y.forward()
        >>> y.backward()
        >>> y.item(), x.g.tolist()
        (9.0, [3.0, 12.0])
    """
    for name, value in {"forward": forward, "gradient": gradient, "shape": len if shape is None else shape}.items():
        if not callable(value):
            raise ArgumentError(f"numpy_function: {name} must be a function, got {described(value)}")
    title = _NumpyFunction(forward, gradient, shape).name

    def apply(*inputs: Variable) -> Variable:
        if not inputs:
            raise ArgumentError(f"{title}: there must be at least one input, got none")
        result: Variable = _NumpyFunction(forward, gradient, shape)(*inputs)
        return result

    apply.__name__ = title
    return apply
