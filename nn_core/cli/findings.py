"""Findings of ``nn-core doctor`` as text of at most a hundred columns, and as JSON."""

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from nn_core.engine.dispatch.doctor import Finding

WIDTH: Final = 100
_INDENT: Final = "    "


def as_text(findings: Sequence[Finding]) -> str:
    """Return one paragraph for each finding: its name, state and package, then remarks, devices and what to do.

    Lines break between words; what to do stays in one line, so that it can be copied.
    """
    width = max((len(row.name) for row in findings), default=0)
    return "\n".join(line for row in findings for line in _lines(row, width))


def as_json(findings: Sequence[Finding], process: Mapping[str, Any]) -> str:
    """Return the findings, and facts about the process, for other programs."""
    rows = [{**asdict(row), "state": row.state.value} for row in findings]
    return json.dumps({"findings": rows, **process}, indent=2)


def wrapped(line: str) -> list[str]:
    """Return a line broken between words, the rest indented more."""
    indent = " " * (len(line) - len(line.lstrip()) + len(_INDENT))
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _lines(row: Finding, width: int) -> Iterator[str]:
    yield f"{row.name.ljust(width)}  {row.state.value.ljust(9)}  {row.package}".rstrip()
    remarks = (row.reason.partition("\n")[0], *row.remarks, row.certificate)
    for text in (*filter(None, remarks), *row.devices.splitlines()):
        yield from wrapped(f"{_INDENT}{text}")
    if row.advice:
        yield f"{_INDENT}what to do: {row.advice}"
