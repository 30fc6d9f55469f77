"""Parts of data loading that plugins offer: caches by name, and readers of the cells of tables by extension."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nn_core.data.source import DataSource
from nn_core.engine.dispatch.blame import require_real
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.errors import PluginError
from nn_core.random import Rng

_CELL = "cell"


def with_offered_cache(source: DataSource, cache: str, rng: Rng | None) -> DataSource:
    """Return the source that the cache called `cache` of a plugin makes of another.

    Raises:
        ArgumentError: when no plugin offers a cache of that name.
        PluginError: when what the plugin makes is no source.
    """
    offer = PLUGINS.required_offer("data", cache, "cache")
    with offer.called():
        cached = PLUGINS.offers.load(offer)(source, shuffle=source.shuffle, rng=rng)
    if not isinstance(cached, DataSource):
        raise PluginError(f"{offer.label}: must make a DataSource, got {type(cached).__name__}")
    return cached


def offered_cell(extension: str) -> "Callable[[Path], np.ndarray[Any, Any]] | None":
    """Return the function that reads the array in a file of that extension, if a plugin offers one."""
    offer = PLUGINS.offer("data", extension) if extension else None
    if offer is None or getattr(offer.info, "role", "") != _CELL:
        return None
    read = PLUGINS.offers.load(offer)

    def read_cell(path: Path) -> "np.ndarray[Any, Any]":
        with offer.called():
            array = np.asarray(read(path))
        require_real(f"{offer.label}: a cell", array)
        return array

    return read_cell


def offered_cells() -> list[str]:
    """Return the extensions for which plugins offer readers, as far as they are known without importing any."""
    return [name for name in PLUGINS.names_of("data") if name.startswith(".")]
