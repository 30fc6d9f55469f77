"""Several sources as one: one after another, or side by side."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from nn_core.data.blocks import Blocks, joined
from nn_core.data.source import DataSource, OrderedDataSource, Sample
from nn_core.engine.error_messages.refusal import described, door, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.random import Rng


def _require_sources(name: str, given: Any) -> None:
    """Refuse what is no list of data sources; a Variable has rows as well, maybe very many of them."""
    if not isinstance(given, Sequence) or not all(hasattr(one, "variables") for one in given):
        raise ArgumentError(f"{name}: data_source_list must be a list of data sources, got {described(given)}")


@fitted_methods()
class _Combined(OrderedDataSource):
    """Sources that begin and end their epochs together."""

    _sources: list[DataSource]

    @property
    def inner_sources(self) -> Sequence[DataSource]:
        """The sources."""
        return self._sources

    def reset(self) -> None:
        """Start an epoch, of all sources."""
        for source in self._sources:
            source.reset()
        super().reset()

    def close(self) -> None:
        """Close all sources."""
        for source in self._sources:
            source.close()


@fitted_methods()
class ConcatDataSource(_Combined):
    """The samples of several sources, one after another.

    Args:
        data_source_list: The sources; they have the same variables.
        shuffle: Reshuffle for each epoch.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is no source, or their variables differ.

    Example:
        >>> from nn_core.data import SimpleDataSource
        >>> source = ConcatDataSource([SimpleDataSource(lambda i: i, 3), SimpleDataSource(lambda i: -i, 2)], shuffle=False)
        >>> [source.next() for _ in range(source.size)]
        [(0,), (1,), (2,), (0,), (-1,)]
    """

    @door
    def __init__(
        self,
        data_source_list: Sequence[DataSource],
        shuffle: bool = True,
        rng: Rng | None = None,
    ) -> None:
        _require_sources("ConcatDataSource", data_source_list)
        if not data_source_list:
            raise ArgumentError("ConcatDataSource: there must be at least one source, got none")
        variables = [tuple(source.variables) for source in data_source_list]
        if len(set(variables)) > 1:
            raise ArgumentError(f"ConcatDataSource: the sources must have the same variables, got {variables}")
        self._sources = list(data_source_list)
        self._ends = list(accumulate(source.size for source in self._sources))
        super().__init__(self._ends[-1], variables[0], shuffle, rng)

    def _sample(self, index: int) -> Sample:
        number = bisect_right(self._ends, index)
        return self._sources[number]._get_data(index - (self._ends[number - 1] if number else 0))

    def blocks(self) -> Blocks | None:
        """Those of all sources, whose orders are drawn before that of this one."""
        return joined(
            [
                (source.size, source.blocks_of_positions() if isinstance(source, OrderedDataSource) else None)
                for source in self._sources
            ]
        )


@fitted_methods()
class ZippedDataSource(_Combined):
    """The samples of several sources side by side: the variables of the first, then those of the second, and so on.

    Args:
        data_source_list: The sources, of one size.
        shuffle: Reshuffle for each epoch, all sources alike.
        rng: Generator of the orders; None: one with a fixed seed.

    Raises:
        ArgumentError: when there is no source, sizes differ, or two variables have one name.

    Example:
        >>> from pathlib import Path
        >>> from nn_core.data import CsvDataSource
        >>> _, _ = Path("x.csv").write_text("x\\n1\\n2\\n"), Path("y.csv").write_text("y\\n10\\n20\\n")
        >>> source = ZippedDataSource([CsvDataSource("x.csv"), CsvDataSource("y.csv")])
        >>> source.variables, source.next()
        (['x', 'y'], (array([1.], dtype=float32), array([10.], dtype=float32)))
    """

    @door
    def __init__(self, data_source_list: Sequence[DataSource], shuffle: bool = False, rng: Rng | None = None) -> None:
        _require_sources("ZippedDataSource", data_source_list)
        sizes = [source.size for source in data_source_list]
        if len(set(sizes)) != 1:
            raise ArgumentError(f"ZippedDataSource: the sources must have one size, got {sizes}")
        variables = [name for source in data_source_list for name in source.variables]
        if len(set(variables)) < len(variables):
            raise ArgumentError(f"ZippedDataSource: the variables must have different names, got {variables}")
        super().__init__(sizes[0], variables, shuffle, rng)
        self._sources = list(data_source_list)

    def _sample(self, index: int) -> Sample:
        return tuple([value for source in self._sources for value in source._get_data(index)])

    def blocks(self) -> Blocks | None:
        """Those of the first source that has some; the orders of all are drawn before that of this one."""
        found = [source.blocks_of_positions() for source in self._sources if isinstance(source, OrderedDataSource)]
        return next((blocks for blocks in found if blocks is not None), None)
