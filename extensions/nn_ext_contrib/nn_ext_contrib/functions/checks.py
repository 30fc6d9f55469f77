"""Checks of arguments that several functions share."""

from nn_core.ext import ShapeError, Variable


def require_ndim(function: str, name: str, x: Variable, ndim: int, axes: str) -> None:
    """Refuse an array with another number of axes."""
    if x.ndim != ndim:
        raise ShapeError(f"{function}: {name} must have shape {axes}, got {x.shape}")


def require_same_shape(function: str, **arrays: Variable) -> None:
    """Refuse arrays of different shapes."""
    shapes = [array.shape for array in arrays.values()]
    if len(set(shapes)) > 1:
        names, got = " and ".join(arrays), " and ".join(map(str, shapes))
        raise ShapeError(f"{function}: {names} must have the same shape, got {got}")
