"""Samples that are read together, such as a group of rows of a Parquet file, and orders that read each of them once.

A shuffled order over such data goes through the blocks in a random order, a window of a few at a time, whose samples are
mixed. The order is drawn as a whole from the generator alone, so that it is the same when training is resumed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from nn_core.data.source import DataSource

Array = np.ndarray[Any, Any]


class Blocks(NamedTuple):
    """The blocks of samples.

    Attributes:
        numbers: Number of the block of each sample.
        window: How many blocks may be mixed.
        in_order: Whether blocks come in their own order.
    """

    numbers: Array
    window: int
    in_order: bool = False

    def at(self, positions: Array | list[int] | slice) -> "Blocks":
        """Return the blocks of some samples."""
        return self._replace(numbers=self.numbers[positions])


def fixed_blocks(source: "DataSource") -> Blocks | None:
    """Return the blocks of a source that is read in the order of its samples; None when there are none, or it shuffles.

    What a shuffled source has drawn may be older than the order of the source around it, which must not depend on it.
    """
    blocks = getattr(source, "blocks", None)  # of sources that keep an order
    if blocks is None or any(member.shuffle for member in tree_of(source)):
        return None
    found: Blocks | None = blocks()
    return found


def tree_of(source: "DataSource") -> "list[DataSource]":
    """Return a source with all that it reads from, itself first."""
    found = [source]
    for inner in source.inner_sources:
        found += tree_of(inner)
    return found


def arranged(order: Array, blocks: Blocks | None) -> Array:
    """Return a random order so changed that a window of blocks is finished before the next one begins.

    Args:
        order: A permutation, drawn at random.
        blocks: The blocks; None: each sample is read by itself.
    """
    if blocks is None or not order.size:
        return order
    numbers = blocks.numbers[order]
    if blocks.in_order:
        ranks = np.unique(blocks.numbers, return_inverse=True)[1][order]
    else:
        _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        ranks = np.argsort(np.argsort(first))[inverse]  # blocks by their first sample in the order
    return order[np.argsort(ranks // blocks.window, kind="stable")]


def joined(parts: Sequence[tuple[int, Blocks | None]]) -> Blocks | None:
    """Return the blocks of several sources one after another; what is not in blocks is read one by one.

    Args:
        parts: The number of samples of each source, and its blocks.
    """
    known = [blocks for _, blocks in parts if blocks is not None]
    if not known:
        return None
    numbers, start = [], 0
    for size, blocks in parts:
        own = np.arange(size) if blocks is None else np.unique(blocks.numbers, return_inverse=True)[1]
        numbers.append(own + start)
        start += int(own.max(initial=-1)) + 1
    return Blocks(np.concatenate(numbers), min(blocks.window for blocks in known), all(blocks.in_order for blocks in known))
