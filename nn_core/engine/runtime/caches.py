"""Caches of work that is reused: work that was prepared, packed weights, memory of backward passes. One budget for all.

The budget is `cache_mb()` megabytes, by default 1,024. At most half of it is for prepared functions, shapes and templates of
backward passes, where the oldest entries make room; they are counted by estimate. The rest is for caches that bound
themselves, such as the packed weights of a backend.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from nn_core.engine.error_messages.refusal import fitted, fitted_constructor
from nn_core.settings import WHEN_SWITCHED, cache_mb

Key = TypeVar("Key")
Value = TypeVar("Value")


@fitted_constructor
@dataclass(frozen=True, slots=True)
class Cache:
    """One cache of the process.

    Attributes:
        name: For reports.
        count: How many entries there are; None: it does not know.
        n_bytes: How much memory they take.
        clear: Drops all of them.
        limit: Tells a cache that bounds itself how many bytes it may take; None: it is trimmed by `trim`.
        trim: Drops the oldest entries, until the rest takes at most so many bytes.

    Example:
        >>> from nn_core.ext import Cache
        >>> tables = {}
        >>> def n_bytes():
        ...     return sum(table.nbytes for table in tables.values())
        >>> cache = Cache("tables of acme", lambda: len(tables), n_bytes, tables.clear)
        >>> tables["sin"] = np.zeros(100)
        >>> cache.count(), cache.n_bytes()
        (1, 800)
    """

    name: str
    count: Callable[[], int | None]
    n_bytes: Callable[[], int]
    clear: Callable[[], object]
    limit: Callable[[int], object] | None = None
    trim: Callable[[int], object] | None = None


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The content of a cache in numbers.

    Attributes:
        name: Of the cache.
        count: Entries; None: not known.
        n_bytes: Memory, estimated for what Python and libraries keep for prepared functions.
    """

    name: str
    count: int | None
    n_bytes: int


_CACHES: Final[dict[str, Cache]] = {}


@fitted
def register_cache(cache: Cache) -> None:
    """Let a cache take part in the budget; a later one of its name takes its place.

    Args:
        cache: The cache; `nn_core.clear_caches` clears it, too.

    Example:
        >>> from nn_core.ext import Cache, register_cache
        >>> tables = {"sin": np.zeros(100)}
        >>> register_cache(Cache("tables of demo", lambda: len(tables), lambda: 800 * len(tables), tables.clear))
        >>> nn.clear_caches()
        >>> tables
        {}
    """
    _CACHES[cache.name] = cache
    balance()


def caches() -> list[CacheReport]:
    """Return the present content of the caches of this process."""
    return [CacheReport(cache.name, cache.count(), cache.n_bytes()) for cache in _CACHES.values()]


@fitted
def clear_caches() -> None:
    """Drop all that is kept to be found again; it is made anew when it is needed.

    Plans of graphs belong to their variables and stay. Arrays, parameters and results do not change.

    Example:
        >>> nn.clear_caches()
    """
    for cache in list(_CACHES.values()):
        cache.clear()


def balance() -> None:
    """Keep the caches within the budget."""
    budget = cache_mb() * 2**20
    trimmed = [cache for cache in _CACHES.values() if cache.trim is not None]
    used = {cache.name: cache.n_bytes() for cache in trimmed}
    while sum(used.values()) > budget // 2:
        largest = max(trimmed, key=lambda cache: used[cache.name])
        # to three quarters, so that a full cache is not trimmed for each entry
        target = max(0, used[largest.name] - max(sum(used.values()) - budget * 3 // 8, 1))
        if largest.trim is not None:
            largest.trim(target)
        if used[largest.name] == largest.n_bytes():  # it keeps what it has
            break
        used[largest.name] = largest.n_bytes()
    rest = budget - sum(used.values())
    for cache in _CACHES.values():
        if cache.limit is not None:
            cache.limit(rest)
            rest -= cache.n_bytes()


class KeyedCache(dict[Key, Value], Generic[Key, Value]):
    """A dictionary that takes part in the budget; look-ups are those of `dict`, entries are added by `store`.

    Args:
        name: For reports.
        entry_bytes: Average size of an entry, with all that it keeps alive.
        max_entries: More, and the oldest half is dropped, whatever the budget is.
    """

    __slots__ = ("_entry_bytes", "_max_entries")

    def __init__(self, name: str, entry_bytes: int, max_entries: int) -> None:
        super().__init__()
        self._entry_bytes = entry_bytes
        self._max_entries = max_entries
        register_cache(Cache(name, self.__len__, self.n_bytes, self.clear, trim=self.trim))

    def n_bytes(self) -> int:
        """Estimate the memory that the entries take."""
        return len(self) * self._entry_bytes

    def store(self, key: Key, value: Value) -> None:
        """Add an entry, and drop old ones where there are too many."""
        self[key] = value
        if len(self) > self._max_entries:
            self.trim(self._max_entries // 2 * self._entry_bytes)
        if len(self) % 16 == 0:  # the budget is much larger than sixteen entries
            balance()

    def trim(self, n_bytes: int) -> None:
        """Drop the oldest entries, until the rest takes at most `n_bytes`."""
        surplus = len(self) - n_bytes // self._entry_bytes
        for key in list(self)[: max(surplus, 0)]:
            self.pop(key, None)  # another thread may trim as well


WHEN_SWITCHED.append(balance)
