"""The table that ``nn-core bench`` prints."""

import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from nn_core.cli.bench.measure import Figures
from nn_core.cli.bench.workloads import OURS, TITLES, Sizes


def machine() -> str:
    """Return the processor in words."""
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]}, {len(models)} logical CPUs" if models else platform.processor() or platform.machine()


def report(all_figures: Sequence[Figures], sizes: Sizes) -> str:
    """Machine, versions, milliseconds of a step, and the ratio to the best peer."""
    measured = [figures for figures in all_figures if figures.seconds]
    has_peers = any(figures.framework != OURS for figures in measured)
    ratios = {workload: _ratio(measured, workload) for workload in TITLES}
    columns = [*map(_column, measured)]
    if has_peers:
        columns.append(["to the best peer", *(_in_words(*ratio) for ratio in ratios.values())])
    first = ["milliseconds of a step", *(title.format(sizes) for title in TITLES.values())]
    lines = [*_conditions(measured, sizes), "", *_aligned([first, *columns]), ""]
    lines += _conclusion([ratio for ratio, _ in ratios.values() if ratio is not None], has_peers)
    lines += [f"{figures.framework}: {error}" for figures in all_figures for error in figures.errors]
    return "\n".join(lines)


def _conditions(measured: Sequence[Figures], sizes: Sizes) -> list[str]:
    """Return the machine, and what was measured on it."""
    threads = f"{sizes.threads} thread{'s' if sizes.threads > 1 else ''}"
    versions = ", ".join(f"{figures.framework} {figures.version}" for figures in measured)
    return [f"{machine()}; {threads}; Python {platform.python_version()}", versions]


def _column(figures: Figures) -> list[str]:
    return [figures.framework, *(_milliseconds(figures.median(workload)) for workload in TITLES)]


def _in_words(ratio: float | None, best: str) -> str:
    return "-" if ratio is None else f"{ratio:.2f} ({best})"


def _conclusion(ratios: Sequence[float], has_peers: bool) -> list[str]:
    """Return the line below the table, if there is something to say."""
    if ratios:
        return [f"geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}; below 1 nn_core is faster"]
    return [] if has_peers else ["no peer was measured; pip install torch, jax, or onnxruntime and onnx, to compare"]


def _ratio(measured: Sequence[Figures], workload: str) -> tuple[float | None, str]:
    """Our median divided by the best peer's, and the name of that peer."""
    medians = {figures.framework: median for figures in measured if (median := figures.median(workload)) is not None}
    ours = medians.pop(OURS, None)
    if ours is None or not medians:
        return None, ""
    best = min(medians, key=lambda name: medians[name])
    return ours / medians[best], best


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:#.3g}"


def _aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, its first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for row in zip(*columns, strict=True)
    ]
