"""Predictions of networks for arrays, batch by batch."""

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import checked_count, described, fitted
from nn_core.errors import ArgumentError, ShapeError
from nn_core.training.fit_data import require_samples
from nn_core.training.network_calls import Network, called
from nn_core.training.samples import lengths_of, packed, parts
from nn_core.typing import Array
from nn_core.variable import Variable, forward_all


@fitted
def predict(network: Network, x: Any, batch_size: int = 256) -> Any:
    """Compute what a network gives for arrays, with the parameters that it has.

    A module is called as by ``eval()``, and a function that takes `test` with ``test=True``.

    Args:
        network: A function or module of one Variable or of several.
        x: Inputs with an axis of samples in front; a tuple of arrays for a network of several.
        batch_size: Samples that are computed at a time, which bounds the memory.

    Returns:
        An array; a tuple of arrays where the network has several outputs.

    Raises:
        ArgumentError: when there are no samples, or arrays of different lengths.

    Example:
        >>> net = nn.Sequential(nn.layers.Affine(3), F.softmax)
        >>> nn.predict(net, np.ones((10, 4)), batch_size=4).shape
        (10, 3)
    """
    if not callable(network) or isinstance(network, Variable):
        raise ArgumentError(f"predict: network must be a function or a module of the inputs, got {described(network)}")
    size = checked_count("predict: batch_size", batch_size)
    arrays = [values_of(part) for part in parts(x)]
    lengths = lengths_of(arrays)
    if len(lengths) != 1 or not all(lengths):
        raise ArgumentError(f"predict: x must be arrays of one length, with a sample at least, got {described(x)}")
    inputs = [Variable((min(size, len(array)), *array.shape[1:])) for array in arrays]
    made = called(network, inputs, test=True, caller="predict")
    return packed(computed(inputs, list(made) if isinstance(made, tuple) else [made], arrays, size))


def checked_inputs(inputs: Sequence[Variable], x: Any) -> list[Array]:
    """Return arrays for the inputs of a network that was built.

    Raises:
        ArgumentError: when there are not as many, of one length.
        ShapeError: when one has another number of axes.
    """
    arrays = [values_of(part) for part in (x if len(inputs) > 1 and isinstance(x, (tuple, list)) else parts(x))]
    if len(arrays) != len(inputs) or (len(arrays) > 1 and len(lengths_of(arrays)) != 1):
        what = "one array" if len(inputs) == 1 else f"{len(inputs)} arrays of one length"
        raise ArgumentError(f"predict: x must be {what}, got {described(x)}")
    for array, like in zip(arrays, inputs, strict=True):
        require_samples("predict", array, like)
    return arrays


def computed(inputs: Sequence[Variable], outputs: Sequence[Variable], arrays: Sequence[Array], batch_size: int) -> list[Array]:
    """Return the values of outputs for all samples of arrays, computed by batches.

    Raises:
        ShapeError: when samples have another shape than those that the network was built for, and it does not take them.
    """
    results: list[list[Array]] = [[] for _ in outputs]
    shapes = [variable.shape for variable in inputs]
    for start in range(0, len(arrays[0]), batch_size):
        for variable, array in zip(inputs, arrays, strict=True):
            batch = array[start : start + batch_size]
            variable.reset_shape(batch.shape, True)
            variable.d = batch
        try:
            forward_all(outputs, clear_buffer=True)
        except ShapeError as error:
            _raise_misfit(inputs, shapes, arrays, error)
        for kept, output in zip(results, outputs, strict=True):
            kept.append(output.d.copy())
    empty = [np.zeros((0, *output.shape[1:]), np.float32) for output in outputs]
    return [np.concatenate(kept) if kept else none for kept, none in zip(results, empty, strict=True)]


def _raise_misfit(
    inputs: Sequence[Variable], shapes: Sequence[tuple[int, ...]], arrays: Sequence[Array], error: ShapeError
) -> NoReturn:
    """Raise the error that names the shapes of samples, where they are not those that the network was built for."""
    for variable, shape in zip(inputs, shapes, strict=True):
        variable.reset_shape(shape, True)  # what was built goes on for samples that fit
    wanted, got = [shape[1:] for shape in shapes], [array.shape[1:] for array in arrays]
    if wanted == got:
        raise error
    text = f"predict: samples must have the shape that the network was built for, {_listed(wanted)}, got {_listed(got)}"
    reason = str(error).partition("\n")[0]
    raise ShapeError(f"{text}\n  {reason}") from error


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(map(str, shapes))
