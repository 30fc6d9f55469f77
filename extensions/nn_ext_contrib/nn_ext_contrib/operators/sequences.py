"""The common part of operators on padded sequences. T steps, B sequences, K classes."""

from nn_core.ext import ArgumentError, Array, Namespace, Shape, ShapeError

#: The logarithm of zero: finite, so that differences are, and far below every logarithm of a probability.
LOG_ZERO = -1e30


def check_lengths(n_sequences: int, **lengths: Shape | None) -> None:
    """Refuse lengths that are not one number for each sequence."""
    for name, shape in lengths.items():
        if shape is not None and shape != (n_sequences,):
            raise ShapeError(f"{name} must have shape ({n_sequences},), one number for each sequence, got {shape}")


def lengths_of(xp: Namespace, function: str, name: str, given: Array | None, n_sequences: int, most: int, least: int) -> Array:
    """Return the length of each sequence; the longest for all where none are given."""
    if given is None:
        return xp.full((n_sequences,), most, dtype=xp.int64)
    if n_sequences and (int(xp.min(given)) < least or int(xp.max(given)) > most):
        low, high = int(xp.min(given)), int(xp.max(given))
        raise ArgumentError(f"{function}: {name} must be in [{least}, {most}], got values from {low} to {high}")
    return given


def check_labels(xp: Namespace, function: str, labels: Array, n_classes: int) -> None:
    """Refuse labels that are no class."""
    if labels.size and (int(xp.min(labels)) < 0 or int(xp.max(labels)) >= n_classes):
        low, high = int(xp.min(labels)), int(xp.max(labels))
        raise ArgumentError(f"{function}: labels must be in [0, {n_classes}), got values from {low} to {high}")


def widen(xp: Namespace, x: Array) -> Array:
    """`x` in float32 if it is in half precision."""
    return x if x.dtype.itemsize >= 4 else x.astype(xp.float32)
