"""Graphs as a page that a browser shows; nothing needs to be installed."""

from collections import defaultdict
from html import escape
from typing import Final

from nn_core.engine.graph.parameter_sources import ParameterSource
from nn_core.experimental.viewers.parts import Call, Parts, Value, arguments_text
from nn_core.variable import Variable

#: Pixels: a box, and the distances between boxes.
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 44, 24, 46, 24
_LONGEST: Final = 26
_PAGE: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 13px sans-serif; color: #222; background: #fff; margin: 1em; }}
rect {{ fill: #e8f0f8; stroke: #2f5d8a; rx: 6; }}
.input rect {{ fill: #f4f4f4; stroke: #999; }}
path {{ fill: none; stroke: #888; }}
.scope {{ fill: #666; font-size: 11px; }}
.shape {{ fill: #555; font-size: 10px; }}
</style></head><body>
<h1>{title}</h1>
<p>{summary} Hold the pointer over a box to see arguments and parameters.</p>
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">
{body}
</svg></body></html>
"""


def graph_page(variable: Variable, title: str = "Graph", params: ParameterSource | None = None) -> str:
    """Return the graph that ends in `variable` as an HTML page with a drawing; parameters are part of their functions.

    Args:
        variable: The variable.
        title: Title of the page.
        params: Parameters by name; None: those of the present scope.

    Raises:
        ArgumentError: when it is no Variable.
    """
    parts = Parts.of(variable, params)
    layout = _Layout(parts)
    body = [*layout.edges(), *layout.boxes()]
    count = sum(value.variable.size for value in parts.values if value.is_parameter)
    summary = f"{len(parts.calls)} functions, {count:,} elements of parameters."
    width, height = layout.size
    return _PAGE.format(title=escape(title), summary=summary, width=width, height=height, body="\n".join(body))


class _Layout:
    """Functions and inputs in rows: each below all that it reads from, and near to it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._makers = {number: f"f{call.number}" for call in parts.calls for number in call.outputs}
        shown = [value for value in parts.values if value.is_leaf and not value.is_parameter]
        self._makers |= {value.number: f"v{value.number}" for value in shown}
        self._inputs = shown
        rows = self._rows()
        widest = max((len(row) for row in rows), default=1)
        self.size = (
            2 * _MARGIN + widest * (_WIDTH + _GAP_X) - _GAP_X,
            2 * _MARGIN + max(len(rows), 1) * (_HEIGHT + _GAP_Y) - _GAP_Y,
        )
        self._places: dict[str, tuple[float, float]] = {}
        for number, row in enumerate(rows):
            self._place(row, number)

    def boxes(self) -> list[str]:
        """Return the boxes."""
        found = [self._box(f"v{v.number}", v.name or "input", str(v.variable.shape), "", "input") for v in self._inputs]
        found += [self._box(f"f{c.number}", c.name, c.scope, self._details(c), "call") for c in self._parts.calls]
        return found

    def edges(self) -> list[str]:
        """Return a curve from each box to those that read its values, with the shape of the value."""
        found = []
        for call in self._parts.calls:
            end_x, end_y = self._places[f"f{call.number}"]
            for number in call.inputs:
                if number in self._makers:
                    x, y = self._places[self._makers[number]]
                    found.append(_curve(x, y + _HEIGHT, end_x, end_y, str(self._parts.values[number].variable.shape)))
        return found

    def _rows(self) -> list[list[str]]:
        depth: dict[str, int] = {}
        for call in self._parts.calls:  # in the order in which they run
            sources = [self._makers[number] for number in call.inputs if number in self._makers]
            depth[f"f{call.number}"] = 1 + max([depth.get(source, 0) for source in sources], default=0)
        for call in reversed(self._parts.calls):  # inputs next to who reads them first
            for number in call.inputs:
                source = self._makers.get(number, "")
                if source.startswith("v"):
                    depth[source] = depth[f"f{call.number}"] - 1
        for value in self._inputs:
            depth.setdefault(f"v{value.number}", 0)
        rows: dict[int, list[str]] = defaultdict(list)
        for name, row in depth.items():
            rows[row].append(name)
        return [rows[row] for row in sorted(rows)]

    def _place(self, row: list[str], number: int) -> None:
        """Order a row by where its sources are, and center it."""
        sources = {
            f"f{call.number}": [self._places[self._makers[n]][0] for n in call.inputs if self._makers.get(n) in self._places]
            for call in self._parts.calls
        }
        middle = self.size[0] / 2
        wanted = {name: (sum(xs) / len(xs) if (xs := sources.get(name)) else middle) for name in row}
        start = middle - (len(row) * (_WIDTH + _GAP_X) - _GAP_X) / 2 + _WIDTH / 2
        for position, name in enumerate(sorted(row, key=lambda name: wanted[name])):
            self._places[name] = (start + position * (_WIDTH + _GAP_X), _MARGIN + number * (_HEIGHT + _GAP_Y))

    def _details(self, call: Call) -> str:
        values: list[Value] = [self._parts.values[number] for number in call.inputs]
        lines = [f"{value.name} {value.variable.shape}" for value in values if value.is_parameter]
        return "\n".join([line for line in (arguments_text(call.arguments), *lines) if line])

    def _box(self, key: str, name: str, below: str, details: str, kind: str) -> str:
        x, y = self._places[key]
        text = f"{name} {below}\n{details}".strip()
        tip = f"<title>{escape(text)}</title>"
        texts = f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{escape(_short(name))}</text>'
        texts += f'<text class="scope" x="{x:.0f}" y="{y + 35:.0f}" text-anchor="middle">{escape(_short(below))}</text>'
        box = f'<rect x="{x - _WIDTH / 2:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}"/>'
        return f'<g class="{kind}">{tip}{box}{texts}</g>'


def _curve(x: float, y: float, end_x: float, end_y: float, label: str) -> str:
    middle = (y + end_y) / 2
    path = f'<path d="M {x:.0f} {y:.0f} C {x:.0f} {middle:.0f}, {end_x:.0f} {middle:.0f}, {end_x:.0f} {end_y:.0f}"/>'
    place = f'x="{(x + end_x) / 2 + 4:.0f}" y="{middle:.0f}"'
    return f'{path}<text class="shape" {place}>{escape(label)}</text>'


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else "..." + text[3 - _LONGEST :]
