"""Figures of the lanes: each lane records its own, and this writes them into docs/reliability.md.

python -m tools.lanes.interrupts --count 500 --seed 31 --report docs/reliability.json
python -m tools.lanes.reliability            # write the table
python -m tools.lanes.reliability --check    # the exit status is 1 if the page is stale
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

DOCS = Path(__file__).parents[2] / "docs"
REPORT, PAGE = DOCS / "reliability.json", DOCS / "reliability.md"
START, END = "<!-- figures: written by tools/lanes/reliability.py -->", "<!-- end of figures -->"


def report_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the option ``--report`` of a lane: the file of `record`."""
    return click.option("--report", type=click.Path(path_type=Path), help="Record the figures in this file.")(command)


def record(
    report: Path | None, lane: str, part: str, *, count: int, findings: int, seed: int | None = None, note: str = ""
) -> None:
    """Print the figures of one part of a lane, and put them in place of its former ones into a file, if one is given.

    Args:
        report: A list of records as JSON; made if it does not exist.
        count: How many things were tried.
        note: Further figures.
    """
    figures = {"lane": lane, "part": part, "seed": seed, "count": count, "findings": findings, "note": note}
    click.echo(json.dumps(figures))
    if report is None:
        return
    records = json.loads(report.read_text()) if report.exists() else []
    records = [found for found in records if (found["lane"], found["part"]) != (lane, part)]
    records = sorted([*records, figures], key=lambda found: (found["lane"], found["part"]))
    report.write_text("[\n" + ",\n".join(json.dumps(found) for found in records) + "\n]\n")


def table(records: list[dict[str, Any]]) -> str:
    """Return the records as a table in Markdown."""
    lines = ["| lane | part | tried | seed | findings | |", "|---|---|---|---|---|---|"]
    for found in records:
        seed = "" if found["seed"] is None else found["seed"]
        lines.append(
            f"| {found['lane']} | {found['part']} | {found['count']:,} | {seed} | {found['findings']} | {found['note']} |"
        )
    return "\n".join(lines)


def page(text: str, records: list[dict[str, Any]]) -> str:
    """Return the page with the table of these records between its marks."""
    head, rest = text.split(START)
    return f"{head}{START}\n\n{table(records)}\n\n{END}{rest.split(END)[1]}"


@click.command()
@click.option("--check", is_flag=True, help="Only say whether the page is stale.")
def main(check: bool) -> None:
    """Write the figures of docs/reliability.json into docs/reliability.md."""
    before = PAGE.read_text()
    after = page(before, json.loads(REPORT.read_text()))
    if not check:
        PAGE.write_text(after)
    elif before != after:
        click.echo("docs/reliability.md is stale: python -m tools.lanes.reliability")
        sys.exit(1)


if __name__ == "__main__":
    main(prog_name="python -m tools.lanes.reliability")
