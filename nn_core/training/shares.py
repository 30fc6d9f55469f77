"""A share of the samples of `fit` as its validation data, and weights of classes by how often they occur."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Final, TypeGuard

import numpy as np

from nn_core.engine.error_messages.foreign_values import values_of
from nn_core.engine.error_messages.refusal import described
from nn_core.errors import ArgumentError
from nn_core.training.batches import is_batches
from nn_core.training.samples import lengths_of, packed, parts

#: The weights of classes that `class_weight` may name.
BALANCED: Final = "balanced"


def is_share(validation: Any) -> TypeGuard[float]:
    """Return whether validation data are given as a share of the training data."""
    return isinstance(validation, Real) and not isinstance(validation, (bool, Integral))


def split(train: Any, share: float, weights: Any, seed: int) -> tuple[Any, Any, Any]:
    """Return training data, validation data and weights of the training data, where `share` of the samples are held out.

    Raises:
        ArgumentError: when the share is not between 0 and 1, leaves no sample on one side, or is one of batches.
    """
    if not 0 < share < 1:
        raise ArgumentError(f"fit: validation must be a pair of arrays, or a share between 0 and 1, got {share}")
    if is_batches(train):
        raise ArgumentError("fit: a share as validation must be of arrays, got batches\n  hint: validation=other_batches")
    pair = [[values_of(part) for part in parts(given)] for given in train]
    lengths = lengths_of([array for arrays in pair for array in arrays])
    if len(lengths) != 1:  # told by the check of the pair, which follows
        return train, None, weights
    kept, held_out = _divided(lengths.pop(), share, seed)
    left = None if weights is None else np.asarray(weights)[kept]
    first, second = (tuple(packed([array[rows] for array in arrays]) for arrays in pair) for rows in (kept, held_out))
    return first, second, left


def _divided(n_samples: int, share: float, seed: int) -> tuple[Any, Any]:
    """Return the places of the samples that are kept and of those that are held out, in their order."""
    n_held_out = round(share * n_samples)
    if not 0 < n_held_out < n_samples:
        raise ArgumentError(f"fit: validation must leave samples on both sides, got {share} of {n_samples}")
    order = np.random.RandomState(seed).permutation(n_samples)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def class_weights(given: Any, train: Any) -> Any:
    """Return weights in the order of the classes, from a dictionary by class, or those that balance the labels.

    Raises:
        ArgumentError: when a dictionary does not name each class from 0, or labels are to be balanced that are not given as
            an array.
    """
    if isinstance(given, Mapping):
        if sorted(given, key=str) != sorted(range(len(given)), key=str):
            raise ArgumentError(f"fit: class_weight must have a weight for each class from 0, got {described(given)}")
        return [given[label] for label in range(len(given))]
    if not isinstance(given, str):
        return given
    if given != BALANCED:
        raise ArgumentError(f"fit: class_weight must be a list of numbers, or {BALANCED!r}, got {given!r}")
    if is_batches(train) or not isinstance(train, (tuple, list)) or len(train) != 2 or len(parts(train[1])) > 1:
        raise ArgumentError(f"fit: class_weight={BALANCED!r} must go with arrays of inputs and labels, got {described(train)}")
    labels = values_of(train[1]).reshape(-1).astype(np.int64)
    counts = np.bincount(labels)
    missing = np.flatnonzero(counts == 0)
    if missing.size:
        raise ArgumentError(f"fit: class_weight={BALANCED!r} must find samples of each class, got none of {missing[0]}")
    return (len(labels) / (len(counts) * counts)).tolist()
