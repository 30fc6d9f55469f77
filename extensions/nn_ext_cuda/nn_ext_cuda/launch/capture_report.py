"""A report of the parts of plans that are recorded as CUDA graphs, and of the reasons why others are not."""

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol


class Apart(NamedTuple):
    """A function that runs apart from graphs, and why."""

    function: str
    reason: str


class Section(Protocol):
    """A part of a plan; see `nn_ext_cuda.launch.capture`."""

    def graph_sizes(self) -> list[int]: ...

    def apart(self) -> list[Apart]: ...


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The state of all plans that exist; prints as a table.

    Attributes:
        n_graphs: Number of graphs.
        n_recorded: Number of functions, copies and gradients in them.
        apart: Functions that run apart, with the reason and how often they are there.
    """

    n_graphs: int
    n_recorded: int
    apart: dict[Apart, int]

    def __str__(self) -> str:
        lines = [f"{self.n_graphs} graphs of {self.n_recorded} functions, {sum(self.apart.values())} apart"]
        width = max((len(row.function) for row in self.apart), default=0)
        lines += [f"  {count:4d} {row.function:<{width}}  {row.reason}" for row, count in self.apart.items()]
        return "\n".join(lines)


_SECTIONS: Final["weakref.WeakSet[Section]"] = weakref.WeakSet()


def note_section(section: Section) -> None:
    """Count a section as long as it lives."""
    _SECTIONS.add(section)


def graph_report() -> GraphReport:
    """Return the functions of the existing plans that run in CUDA graphs, and those that do not, with the reason."""
    sections = list(_SECTIONS)
    sizes = [size for section in sections for size in section.graph_sizes()]
    apart = Counter(row for section in sections for row in section.apart())
    return GraphReport(len(sizes), sum(sizes), dict(apart.most_common()))
