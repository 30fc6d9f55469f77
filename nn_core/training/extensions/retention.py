"""Keep checkpoints of a run: the newest ones, none older than an age, and the best by a reported value."""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nn_core.training.checkpoint import number_of


class Record(NamedTuple):
    """Facts about a checkpoint without reading it.

    Attributes:
        time: When it was saved, Unix time.
        value: The value by which it is judged, smaller is better; infinite where none was reported.
    """

    time: float
    value: float


class Retention:
    """The rule by which checkpoints are removed; the newest one always stays.

    Args:
        keep: How many of them are kept, the newest; None: all.
        max_age: Seconds after which one of them is removed; None: never.
        keep_best: How many are kept besides, those with the best values.
    """

    def __init__(self, keep: int | None, max_age: float | None, keep_best: int) -> None:
        self._keep = keep
        self._max_age = max_age
        self._keep_best = keep_best
        self._records: dict[int, Record] = {}

    @property
    def removes(self) -> bool:
        """Whether anything is ever removed."""
        return self._keep is not None or self._max_age is not None

    def note(self, number: int, value: float, living: Collection[int]) -> None:
        """Take note of a checkpoint that is about to be written, and forget those that are not among `living`.

        Args:
            number: Its number.
            value: The value by which it is judged, smaller is better; NaN is none.
            living: Numbers of the checkpoints that there are.
        """
        known = {key: record for key, record in self._records.items() if key in living}
        self._records = {**known, number: Record(time.time(), math.inf if math.isnan(value) else value)}

    def copy(self) -> "Retention":
        """Return the same rule, which does not see what is noted from now on."""
        twin = Retention(self._keep, self._max_age, self._keep_best)
        twin._records = dict(self._records)
        return twin

    def kept(self, paths: Sequence[Path]) -> list[Path]:
        """Those of some checkpoints, the newest first, that are kept."""
        newest = list(paths if self._keep is None else paths[: self._keep])
        if self._max_age is not None:
            oldest = time.time() - self._max_age
            newest = [path for path in newest if path == paths[0] or self._time(path) >= oldest]
        valued = [(self._records[number_of(path)].value, path) for path in paths if number_of(path) in self._records]
        ranked = sorted([pair for pair in valued if pair[0] < math.inf], key=lambda pair: pair[0])  # stable: the newest first
        return newest + [path for _, path in ranked[: self._keep_best]]

    def get_state(self) -> dict[str, Any]:
        """Return the time and the value of each checkpoint by its number."""
        return {str(number): list(record) for number, record in self._records.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        self._records = {int(number): Record(*record) for number, record in state.items()}

    def _time(self, path: Path) -> float:
        record = self._records.get(number_of(path))
        return path.stat().st_mtime if record is None else record.time  # of an earlier version
