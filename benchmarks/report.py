"""The figures of a run: a row a workload, means of the ratios, and the whole as a page in Markdown."""

import platform
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.measure import Worker

#: what a ratio is taken to: the fastest peer of a row, and PyTorch as most people run it
BEST, EAGER = "best peer", "torch"
EXPLANATION = (
    "Median milliseconds a step (smallest and largest median of a round). Ratios: our median to theirs; below 1 nn_core "
    "is faster. JAX runs a whole step as one compiled function, also where the others build the graph anew in each step."
)


@dataclass(frozen=True)
class Figure:
    """Milliseconds of a step in one framework: median, and the smallest and largest median of a round."""

    version: str
    ms: float
    spread_ms: tuple[float, float]

    def __str__(self) -> str:
        low, high = self.spread_ms
        return f"{self.ms:.3g} ({low:.3g}-{high:.3g})" if self.ms < 100 else f"{self.ms:.0f} ({low:.0f}-{high:.0f})"


@dataclass(frozen=True)
class Row:
    """One workload in all frameworks that ran it."""

    workload: str
    figures: dict[str, Figure]

    @property
    def best_peer(self) -> str | None:
        """The fastest framework beside ours."""
        peers = [name for name in self.figures if name != "nn_core"]
        return min(peers, key=lambda name: self.figures[name].ms, default=None)

    def ratio(self, other: str) -> float | None:
        """Our median divided by that of `other`: a framework, or BEST."""
        framework = self.best_peer if other == BEST else other
        if framework not in self.figures or "nn_core" not in self.figures:
            return None
        return self.figures["nn_core"].ms / self.figures[framework].ms

    def __str__(self) -> str:
        line = f"{self.workload:20s} " + "  ".join(f"{name} {figure}" for name, figure in self.figures.items())
        ratio = self.ratio(BEST)
        return line if ratio is None else f"{line}  | {ratio:.2f} of {self.best_peer}"

    def as_json(self) -> dict[str, object]:
        """Return the row with its ratios."""
        return {**asdict(self), "best_peer": self.best_peer, "ratio": self.ratio(BEST), "ratio_torch": self.ratio(EAGER)}


def row_of(workload: str, workers: Iterable[Worker]) -> Row:
    """Return the figures that the workers of a workload measured."""
    return Row(workload, {w.framework: Figure(w.version, w.median_ms(), w.spread_ms()) for w in workers})


def mean_ratio(rows: Iterable[Row], other: str) -> float | None:
    """Geometric mean of the ratios to `other`."""
    ratios = [ratio for row in rows if (ratio := row.ratio(other)) is not None]
    return statistics.geometric_mean(ratios) if ratios else None


def means(rows: list[Row]) -> str:
    """Return the geometric means as a sentence."""
    found = {other: mean_ratio(rows, other) for other in (BEST, EAGER)}
    texts = [f"{mean:.2f} to {'the ' * (other == BEST)}{other}" for other, mean in found.items() if mean is not None]
    return f"geometric mean of the ratios: {', '.join(texts)}" if texts else ""


def machine() -> dict[str, str]:
    """Processor, system and interpreter."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    cpu = f"{models[0]}, {len(models)} logical CPUs" if models else platform.processor()
    return {"cpu": cpu, "system": platform.platform(), "python": platform.python_version()}


def markdown(title: str, rows: list[Row], threads: int, rounds: int) -> str:
    """Return a page with the machine, the versions, the table and the means."""
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    versions = {name: row.figures[name].version for row in rows for name in row.figures}
    lines = [f"# {title}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {value} |" for key, value in machine().items()]
    lines += [f"| threads | {threads}, in every framework |", f"| rounds | {rounds}, frameworks in turn |"]
    lines += ["| versions | " + ", ".join(f"{name} {version}" for name, version in versions.items()) + " |", ""]
    lines += [EXPLANATION, ""]
    lines += ["| workload | " + " | ".join([*names, "to the best peer", "to torch"]) + " |"]
    lines += ["|---|" + "---|" * (len(names) + 2)]
    for row in rows:
        cells = [str(row.figures.get(name, "")) for name in names]
        best, eager = row.ratio(BEST), row.ratio(EAGER)
        cells += [f"{best:.2f} ({row.best_peer})" if best else "", f"{eager:.2f}" if eager else ""]
        lines.append(f"| {row.workload} | " + " | ".join(cells) + " |")
    found = [mean_ratio(rows, other) for other in (BEST, EAGER)]
    cells = [""] * len(names) + ["" if mean is None else f"**{mean:.2f}**" for mean in found]
    lines.append("| geometric mean | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
