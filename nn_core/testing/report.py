"""Summary of a run of the conformance tests: the number of tests and comparisons, by backend."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nn_core.testing.support import Status, support_table


@dataclass(slots=True)
class Report:
    """Counts of one process; those of the workers of pytest-xdist are added up."""

    tests: Counter[str] = field(default_factory=Counter)
    comparisons: int = 0
    backends: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)

    def add(self, other: Mapping[str, Any]) -> None:
        """Add what another process has counted."""
        self.tests.update(other["tests"])
        self.comparisons += other["comparisons"]
        self.functions.update(other["functions"])
        self.backends += [name for name in other["backends"] if name not in self.backends]

    def to_plain(self) -> dict[str, Any]:
        """Return the counts as plain values, to be sent to another process."""
        return {
            "tests": dict(self.tests),
            "comparisons": self.comparisons,
            "backends": self.backends,
            "functions": sorted(self.functions),
        }

    def lines(self, backends: Sequence[str]) -> list[str]:
        """Return a summary: who runs how many functions, and how much was checked."""
        lines = [f"{'backend':<12}{'dtype':<10}" + "".join(f"{status.value:>12}" for status in Status)]
        columns = support_table(backends, self.functions).columns if backends else {}
        for (backend, dtype), column in columns.items():
            counts = Counter(cell.status for cell in column.values())
            lines.append(f"{backend:<12}{dtype:<10}" + "".join(f"{counts[status]:>12}" for status in Status))
        tests = ", ".join(f"{name.removeprefix('test_')} {count}" for name, count in sorted(self.tests.items()))
        return [*lines, f"{self.tests.total()} checks with {self.comparisons} comparisons: {tests}"]
