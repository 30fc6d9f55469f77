"""Leaves of which the steps of a plan keep copies in a layout of their own, as long as nobody writes to them."""

from collections.abc import Sequence

from nn_core.engine.arrays.synced import Key, SyncedArray
from nn_core.typing import Step


class Weights:
    """The leaves of which steps keep copies in a layout of their own; see `Step` of `nn_core.typing`."""

    def __init__(self, leaves: Sequence[tuple[SyncedArray, Key]], steps: list[Step]) -> None:
        #: the steps to run while the leaves are unchanged
        self.steps = steps
        self._leaves = leaves
        self._seen: list[object] = []

    def are_unchanged(self) -> bool:
        """Return whether nobody can have written to the leaves since the last call."""
        seen = [held_by(synced, key) for synced, key in self._leaves]
        unchanged = None not in seen and seen == self._seen
        self._seen = seen
        return unchanged


def _is_exported(synced: SyncedArray, key: Key) -> bool:
    latest = synced.latest
    return synced.is_exported(key) or (latest is not None and latest != key and synced.is_exported(latest))


def held_by(synced: SyncedArray, key: Key) -> object:
    """Return a value that stays equal as long as an array holds the same.

    None where a plan computes the values, or a user may write unseen.
    """
    return None if synced.lease is not None or _is_exported(synced, key) else (synced, synced.modifications)
