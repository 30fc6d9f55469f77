"""Sequences of different lengths: side by side with padding, or packed step by step without it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import nn_core.functions as F
from nn_core.engine.error_messages.refusal import fitted
from nn_core.errors import ArgumentError, ShapeError
from nn_core.variable import Variable


@dataclass(eq=False)
class PackedSequence:
    """Sequences without padding: the first elements of all, then the second ones, and so on, longest sequence first.

    Attributes:
        data: The elements. Shape (sum of lengths, D_1, ..., D_n).
        batch_sizes: How many sequences have each step. Shape (T).
        sorted_indices: Number of the original sequence of each packed one; None when they were in order.
        unsorted_indices: Number of the packed sequence of each original one; None when they were in order.
    """

    data: Variable | None = None
    batch_sizes: Variable | None = None
    sorted_indices: Variable | None = None
    unsorted_indices: Variable | None = None


@fitted
def pad_sequence(sequences: Sequence[Variable], batch_first: bool = False, padding_value: float = 0.0) -> Variable:
    """Put sequences side by side and fill them up to the length of the longest.

    Args:
        sequences: B sequences of shape (T_b, D_1, ..., D_n).
        batch_first: Make the sequences the first axis of the result.
        padding_value: Value to fill in.

    Returns:
        Shape (T, B, D_1, ..., D_n), or (B, T, D_1, ..., D_n) if `batch_first`.

    Raises:
        ArgumentError: when there is no sequence.
        ShapeError: when the elements have different shapes.

    Example:
        >>> first, second = Variable((3, 2)), Variable((1, 2))
        >>> pad_sequence([first, second]).shape
        (3, 2, 2)
    """
    _require_alike("pad_sequence", sequences)
    longest = max(sequence.shape[0] for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.shape[0]
        widths = (0, missing) + (0, 0) * (sequence.ndim - 1)
        padded.append(F.pad(sequence, widths, "constant", padding_value) if missing else sequence)
    return F.stack(*padded, axis=0 if batch_first else 1)


@fitted
def pack_padded_sequence(
    padded_sequence: Variable, lengths: Variable, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Leave the padding out of sequences that are side by side.

    Args:
        padded_sequence: Shape (T, B, D_1, ..., D_n), or (B, T, D_1, ..., D_n) if `batch_first`.
        lengths: Length of each sequence, values that are known now. Shape (B).
        batch_first: The first axis of `padded_sequence` is that of the sequences.
        enforce_sorted: The sequences must be given longest first; if not, they are sorted, by the lengths of this moment.

    Returns:
        The packed sequences.

    Raises:
        ArgumentError: when the lengths increase though `enforce_sorted`, one is not from 0 to T, or all are 0.
        ShapeError: when there is not one length for each sequence.
    """
    counts = np.array(lengths.d).astype(np.int64).ravel()
    axis = 0 if batch_first else 1
    if padded_sequence.ndim < 2 or padded_sequence.shape[axis] != counts.size:
        raise ShapeError(
            f"pack_padded_sequence: lengths must have one number for each sequence of {padded_sequence.shape}, "
            f"got {counts.size}"
        )
    n_steps = padded_sequence.shape[1 - axis]
    if bool(((counts < 0) | (counts > n_steps)).any()) or not counts.any():
        raise ArgumentError(
            f"pack_padded_sequence: lengths must be from 0 to the {n_steps} steps, not all 0, got {counts.tolist()}"
        )
    packed = PackedSequence()
    increases = bool((np.diff(counts) > 0).any())
    if increases or not counts.all():  # nothing but the order of the originals tells that there are empty sequences
        if increases and enforce_sorted:
            raise ArgumentError(
                f"pack_padded_sequence: lengths must not increase, got {counts.tolist()}\n  hint: enforce_sorted=False sorts"
            )
        order = np.argsort(-counts, kind="stable")
        packed.sorted_indices = Variable.from_numpy_array(order)
        packed.unsorted_indices = Variable.from_numpy_array(np.argsort(order, kind="stable"))
        order = order[: np.count_nonzero(counts)]  # what has no steps is left out
        padded_sequence = F.gather(padded_sequence, Variable.from_numpy_array(order), axis=axis)
        lengths = Variable.from_numpy_array(counts[order])
    packed.data, packed.batch_sizes = F.pack_padded_sequence(padded_sequence, lengths, batch_first)
    # The number of steps decides the shapes of what follows, so it is computed now.
    packed.batch_sizes = Variable.from_numpy_array(
        (counts[:, None] > np.arange(packed.batch_sizes.shape[0])).sum(axis=0).astype(np.int32)
    )
    return packed


@fitted
def pack_sequence(sequences: Sequence[Variable], batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Args:
        sequences: B sequences of shape (T_b, D_1, ..., D_n).
        batch_first: Without effect on the result; kept for programs that give it.
        enforce_sorted: The sequences must be given longest first; if not, they are sorted.

    Returns:
        The packed sequences.

    Raises:
        ArgumentError: when there is no sequence, one has no elements, or they become longer though `enforce_sorted`.
        ShapeError: when the elements have different shapes.

    Example:
        >>> packed = pack_sequence([Variable((3, 2)), Variable((1, 2))])
        >>> packed.data.shape, packed.batch_sizes.d.tolist()
        ((4, 2), [2, 1, 1])
    """
    padded = pad_sequence(sequences, batch_first)
    lengths = Variable.from_numpy_array(np.array([sequence.shape[0] for sequence in sequences], np.int32))
    return pack_padded_sequence(padded, lengths, batch_first, enforce_sorted)


@fitted
def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Variable, Variable]:
    """Put packed sequences side by side, in their original order; undoes `pack_padded_sequence`.

    Args:
        sequence: The packed sequences.
        batch_first: Make the sequences the first axis of the result.
        padding_value: Value to fill in.
        total_length: Length to fill up to; None: that of the longest.

    Returns:
        The padded sequences, (T, B, D_1, ..., D_n) or (B, T, D_1, ..., D_n), and their lengths of shape (B).

    Raises:
        ArgumentError: when `sequence` is empty.
    """
    if sequence.data is None or sequence.batch_sizes is None:
        raise ArgumentError("pad_packed_sequence: sequence must hold data and batch_sizes, got None")
    padded, lengths = F.pad_packed_sequence(sequence.data, sequence.batch_sizes, batch_first, padding_value, total_length)
    if sequence.unsorted_indices is not None:
        n_empty = sequence.unsorted_indices.shape[0] - lengths.shape[0]
        if n_empty:
            widths = (0, n_empty) + (0, 0) * (padded.ndim - 1)
            rows = padded if batch_first else F.transpose(padded, (1, 0, *range(2, padded.ndim)))
            rows = F.pad(rows, widths, "constant", padding_value)
            padded = rows if batch_first else F.transpose(rows, (1, 0, *range(2, padded.ndim)))
            lengths = F.pad(lengths, (0, n_empty))
        padded = F.gather(padded, sequence.unsorted_indices, axis=0 if batch_first else 1)
        lengths = F.gather(lengths, sequence.unsorted_indices, axis=0)
    return padded, lengths


def _require_alike(function: str, sequences: Sequence[Variable]) -> None:
    if not sequences:
        raise ArgumentError(f"{function}: there must be at least one sequence, got none")
    shapes = [sequence.shape for sequence in sequences]
    if not all(shapes) or len({shape[1:] for shape in shapes}) > 1:
        raise ShapeError(f"{function}: sequences must have elements of one shape, got {shapes}")
