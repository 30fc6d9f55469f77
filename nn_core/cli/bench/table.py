"""The table that ``nn-core bench`` prints."""

import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from nn_core.cli.bench.measure import Figures
from nn_core.cli.bench.workloads import OURS, TITLES, Sizes


def machine() -> str:
    """The processor in words."""
    cpu_info = Path("/proc/cpuinfo")
    lines = cpu_info.read_text(encoding="utf-8").splitlines() if cpu_info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]}, {len(models)} logical CPUs" if models else platform.processor() or platform.machine()


def report(all_figures: Sequence[Figures], sizes: Sizes) -> str:
    """Machine, versions, milliseconds of a step, and the ratio to the best peer."""
    measured = [figures for figures in all_figures if figures.seconds]
    peers = [figures for figures in measured if figures.framework != OURS]
    rows, ratios = [], []
    for workload, title in TITLES.items():
        ratio, best = _ratio(measured, workload)
        if ratio is not None:
            ratios.append(ratio)
        cells = [title.format(sizes), *(_milliseconds(figures.median(workload)) for figures in measured)]
        rows.append([*cells, *([f"{ratio:.2f} ({best})" if ratio is not None else "-"] if peers else [])])
    head = ["milliseconds of a step", *(figures.framework for figures in measured), *(["to the best peer"] if peers else [])]
    threads = f"{sizes.threads} thread{'s' if sizes.threads > 1 else ''}"
    lines = [f"{machine()}; {threads}; Python {platform.python_version()}"]
    lines += [", ".join(f"{figures.framework} {figures.version}" for figures in measured), "", *_aligned([head, *rows]), ""]
    if ratios:
        lines.append(f"geometric mean of the ratios {statistics.geometric_mean(ratios):.2f}; below 1 nn_core is faster")
    elif not peers:
        lines.append("no peer was measured; pip install torch, jax, or onnxruntime and onnx, to compare")
    lines += [f"{figures.framework}: {error}" for figures in all_figures for error in figures.errors]
    return "\n".join(lines)


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


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
