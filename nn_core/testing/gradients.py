"""Gradients of functions that users write, compared with differences along random directions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nn_core.functions as F
from nn_core.context import Context, context_scope
from nn_core.errors import ArgumentError
from nn_core.grad import grad
from nn_core.testing.assertions import assert_allclose
from nn_core.testing.numeric import STEP, KinkError, central_difference
from nn_core.variable import Variable

#: The context in which gradients are checked unless a test gives another one.
_CONTEXT = Context(["reference:double"])


def check_gradients(
    function: Callable[..., Any],
    *arrays: Any,
    order: int = 1,
    directions: int = 3,
    rtol: float = 1e-4,
    atol: float = 1e-6,
    step: float = STEP,
    seed: int = 0,
    context: Context | None = None,
) -> None:
    """Compare the gradients of a function with central differences along random directions.

    A direction moves all elements of all arrays of numbers at once, so large arrays cost no more than small ones.

    Args:
        function: ``function(*variables)`` gives a Variable, or several in a tuple or list; the same for the same values.
        *arrays: Where the gradients are taken; integers and booleans are constants.
        order: 1: the gradients that ``backward()`` computes; 2: those of ``nn.grad`` and their gradients as well.
        directions: Number of directions.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        step: Half the distance of the two points of a difference; larger, such as 1e-3, for what computes in float32.
        seed: Of the directions.
        context: Where the function is computed; None: the reference backend, in float64.

    Raises:
        AssertionError: when a gradient is another one.
        ArgumentError: when `order` is not 1 or 2, no array has numbers, or the function has a kink or a jump at this point.

    Example:
        >>> check_gradients(lambda x, y: F.tanh(x * y), np.ones((2, 3)), np.full((2, 3), 0.5), order=2)
    """
    values = [np.asarray(array) for array in arrays]
    values = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in values]
    if order not in (1, 2) or not any(array.dtype.kind == "f" for array in values):
        raise ArgumentError(
            f"check_gradients: order must be 1 or 2, and an array must have floating-point numbers, got {order} "
            f"and {', '.join(array.dtype.name for array in values) or 'no array'}"
        )
    with context_scope(context or _CONTEXT):
        graph = _Graph(function, values, np.random.default_rng(seed))
        for number in range(directions):
            graph.check(order, f"direction {number}", rtol, atol, step)


class _Graph:
    """A number that depends on the arrays: the sum of the outputs with random weights."""

    def __init__(self, function: Callable[..., Any], values: Sequence[Any], rng: np.random.Generator) -> None:
        self._rng = rng
        self._values = values
        self._inputs = [Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f") for array in values]
        self._moved = [number for number, array in enumerate(values) if array.dtype.kind == "f"]
        outputs = function(*self._inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        parts = [F.sum(output * Variable.from_numpy_array(rng.normal(size=output.shape))) for output in outputs]
        self._total = sum(parts[1:], parts[0])
        self._leaves = [self._inputs[number] for number in self._moved]

    def check(self, order: int, where: str, rtol: float, atol: float, step: float) -> None:
        """Compare the derivatives along a direction that is drawn."""
        direction = [self._rng.normal(size=self._values[number].shape) for number in self._moved]
        norm = max(float(np.sqrt(sum(np.sum(part**2) for part in direction))), 1e-30)
        direction = [part / norm for part in direction]
        slope = self._slope(self._total, direction, step, where)
        for leaf in self._leaves:
            leaf.grad.zero()
        self._total.forward()
        self._total.backward()
        by_backward = self._along([leaf.g for leaf in self._leaves], direction)
        assert_allclose(by_backward, slope, rtol, atol, err_msg=f"backward(), {where}")
        if order == 2:
            self._check_twice(direction, slope, where, (rtol, atol), step)

    def _check_twice(
        self, direction: Sequence[Any], slope: float, where: str, tolerances: tuple[float, float], step: float
    ) -> None:
        gradients = grad([self._total], self._leaves)
        for gradient in gradients:
            gradient.forward()
        by_grad = self._along([gradient.d for gradient in gradients], direction)
        assert_allclose(by_grad, slope, *tolerances, err_msg=f"nn.grad, {where}")
        weights = [Variable.from_numpy_array(self._rng.normal(size=leaf.shape)) for leaf in self._leaves]
        parts = [F.sum(gradient * weight) for gradient, weight in zip(gradients, weights, strict=True)]
        total = sum(parts[1:], parts[0])
        second = grad([total], self._leaves)
        slope = self._slope(total, direction, step, f"second derivative, {where}")
        for gradient in second:
            gradient.forward()
        found = self._along([gradient.d for gradient in second], direction)
        assert_allclose(found, slope, *tolerances, err_msg=f"second derivative, {where}")

    @staticmethod
    def _along(gradients: Sequence[Any], direction: Sequence[Any]) -> float:
        return float(sum(np.sum(gradient * part) for gradient, part in zip(gradients, direction, strict=True)))

    def _slope(self, total: Variable, direction: Sequence[Any], step: float, where: str) -> float:
        """Return the derivative of `total` along the direction, by a difference; the inputs have their values afterwards."""

        def moved(distance: Any) -> float:
            for number, leaf, part in zip(self._moved, self._leaves, direction, strict=True):
                leaf.d = self._values[number] + distance[0] * part
            total.forward()
            return float(total.d)

        try:
            slope = central_difference(moved, [np.zeros(1)], 0, step=step)[0,]
        except KinkError as error:
            raise ArgumentError(
                f"check_gradients: function must be smooth at arrays, got a kink or a jump in {where}: {error}"
            ) from error
        finally:
            for number, leaf in zip(self._moved, self._leaves, strict=True):
                leaf.d = self._values[number]
        return slope
