"""Pieces of HTML for notebooks: tables, curves, bars and pages, with all text escaped."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

_WIDTH: Final = 320
_HEIGHT: Final = 120
_COLORS: Final = ("#3b6ea5", "#c8553d", "#588157", "#8e6c8a")


def table(head: Sequence[str], rows: Sequence[Sequence[object]], caption: str = "") -> str:
    """Return a table; numbers and text are shown as ``str`` gives them."""
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def bar(value: int, total: int | None, text: str) -> str:
    """Return a bar with numbers and a text; without a total only these."""
    of = "" if total is None else f" of {total}"
    drawn = "" if total is None else f'<progress value="{min(value, total)}" max="{total}"></progress> '
    return f"<div>{drawn}{value}{of}  {escape(text)}</div>"


def framed(page: str, height: int) -> str:
    """Return a whole page as part of another one, as wide as that and `height` pixels high."""
    return f'<iframe srcdoc="{escape(page)}" width="100%" height="{height}" style="border: 0"></iframe>'


def curves(series: Mapping[str, Sequence[float]]) -> str:
    """Return a picture of curves over their positions, with their names and last values, without those that are not finite."""
    finite = [value for values in series.values() for value in values if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    lines = [
        f'<polyline fill="none" stroke="{color}" stroke-width="1.5" points="{_points(values, low, high)}"/>'
        for color, values in zip(_COLORS, series.values(), strict=False)
    ]
    names = ", ".join(
        f'<span style="color:{color}">{escape(name)} {values[-1]:.4g}</span>'
        for color, (name, values) in zip(_COLORS, series.items(), strict=False)
    )
    picture = f'<svg viewBox="-4 -4 {_WIDTH + 8} {_HEIGHT + 8}" width="{_WIDTH}" height="{_HEIGHT}">{"".join(lines)}</svg>'
    return f"<div>{names}<br>{picture}</div>"


def _points(values: Sequence[float], low: float, high: float) -> str:
    across, up = _WIDTH / max(len(values) - 1, 1), _HEIGHT / (high - low or 1.0)
    return " ".join(
        f"{position * across:.1f},{(high - value) * up:.1f}" for position, value in enumerate(values) if math.isfinite(value)
    )
