"""The cost of training, compared with its limits: the trainer, checkpoints, and the loading of data.

    python -m benchmarks.training --markdown benchmarks/results/training.md

Needs an idle machine: other programs take part in every figure.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks import checkpoint, loading, trainer
from benchmarks.report import machine

IMPORT_ROUNDS = 7
IMPORTS = {
    "nn_core": "import nn_core",
    "nn_core.training": "import nn_core.training",
}


class Row(NamedTuple):
    """A figure with its limit.

    Attributes:
        what: The name of the figure.
        value: The figure.
        limit: Its limit; None: it has none.
        unit: The unit of both.
        at_least: Whether the limit is the least that is allowed, not the most.
    """

    what: str
    value: float
    limit: float | None
    unit: str
    at_least: bool = False

    def holds(self) -> str:
        """Return whether the limit is kept, in a word."""
        if self.limit is None:
            return ""
        return "yes" if (self.value >= self.limit if self.at_least else self.value <= self.limit) else "no"

    def as_markdown(self) -> str:
        """Return a line of a table."""
        sign = "at least" if self.at_least else "at most"
        limit = "" if self.limit is None else f"{sign} {self.limit:g} {self.unit}"
        return f"| {self.what} | {self.value:.3g} {self.unit} | {limit} | {self.holds()} |"


def _medians(times: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in times.items()}


def trainer_rows() -> Iterator[Row]:
    """Measure the cost of the trainer over a hand-written loop."""
    times = trainer.measured()
    yield Row("step of a loop by hand", statistics.median(times["by hand"]), None, "us")
    for name in ("trainer", "trainer and 8 extensions"):
        # paired, because both of a round meet the machine in the same state
        more = statistics.median(b - a for a, b in zip(times["by hand"], times[name], strict=True))
        yield Row(f"more with a {name}, idle" if "8" in name else f"more with a {name}", more, 3.0, "us")


def checkpoint_rows() -> Iterator[Row]:
    """Measure checkpoints of 120 MB."""
    times = checkpoint.measured()
    for name, value in _medians(times).items():
        yield Row(f"checkpoint of 120 MB: {name}", value, 0.3 if name.startswith("write") else None, "s")
    ratio = statistics.median(a / b for a, b in zip(times[checkpoint.PAUSE], times[checkpoint.COPY], strict=True))
    yield Row("pause of a write in the background, in copies of one array", ratio, 2.0, "x")


def import_rows() -> Iterator[Row]:
    """Measure the import of nn_core.training on top of that of nn_core."""
    times: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for _ in range(IMPORT_ROUNDS):
        for name, statement in IMPORTS.items():
            timed = f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
            found = subprocess.run([sys.executable, "-c", timed], check=True, capture_output=True, text=True).stdout
            times[name].append(float(found) * 1e3)
    more = statistics.median(b - a for a, b in zip(times["nn_core"], times["nn_core.training"], strict=True))
    yield Row("import nn_core.training after nn_core", more, 40.0, "ms")


def loading_rows() -> Iterator[Row]:
    """Measure samples a second beside PyTorch's DataLoader, where that is installed."""
    for name in loading.SIZES:
        medians = _medians(loading.measured(name))
        for loader, value in medians.items():
            yield Row(f"loading, {name}: {loader}", value, None, "samples/s")
        if "torch" in medians:
            best = max(value for loader, value in medians.items() if loader != "torch") / medians["torch"]
            yield Row(f"loading, {name}: the faster of ours to torch", best, 0.9, "x", at_least=True)


def main() -> None:
    """Command line; the exit status is 1 when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", type=Path, help="write the table to this file too")
    options = parser.parse_args()
    rows: list[Row] = []
    for part in (trainer_rows, checkpoint_rows, import_rows, loading_rows):
        for row in part():
            rows.append(row)
            print(row.as_markdown(), flush=True)
    if options.markdown:
        how = "Medians; the rows of the trainer are processor time."
        head = ["# Cost of training", "", f"{machine()['cpu']}, {os.cpu_count()} cores. {how}", ""]
        head += ["| figure | measured | limit | kept |", "|---|---|---|---|"]
        options.markdown.write_text("\n".join([*head, *[row.as_markdown() for row in rows], ""]))
    sys.exit(any(row.holds() == "no" for row in rows))


if __name__ == "__main__":
    main()
