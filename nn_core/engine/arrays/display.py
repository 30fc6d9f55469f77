"""The display of Variables and NdArrays in consoles and notebooks: facts, and a few of the values that are on the host.

Nothing is computed, converted or transferred for it: values that are elsewhere, or not there yet, are left out.
"""

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from nn_core.engine.arrays.leases import UNCOMPUTED
from nn_core.engine.arrays.synced import HOST

if TYPE_CHECKING:
    from nn_core.engine.arrays.ndarray import NdArray

#: So many values are shown, or the first and the last ones of them.
_MAX_VALUES: Final = 6
_MAX_ROWS: Final = 8


def values_on_host(array: "NdArray") -> np.ndarray[Any, Any] | None:
    """Return the values, if they are on the host and up to date; not to be changed or kept."""
    synced = array.synced
    if synced.pending_fill is not None:
        with np.errstate(over="ignore"):  # a number beyond float32 reads as infinite
            return np.broadcast_to(np.float32(synced.pending_fill), array.shape)
    if synced.latest is None or synced.latest[0] is not HOST or synced.lease is UNCOMPUTED:
        return None
    if synced.lease is not None and not synced.lease.alive:
        return None
    return np.asarray(array.present(synced.copies[synced.latest]))


def display_line(kind: str, facts: Sequence[str], values: np.ndarray[Any, Any] | None) -> str:
    """One line: ``<kind(facts): values>``."""
    shown = "" if values is None else f": {_few(values)}"
    return f"<{kind}({', '.join(facts)}){shown}>"


def html_table(kind: str, facts: Sequence[str], values: np.ndarray[Any, Any] | None) -> str:
    """Return the facts, and below them a table with the corner of the last two axes."""
    head = f"<div><b>{kind}</b> {escape(', '.join(facts))}</div>"
    if values is None or not values.size:
        return head
    plane = values.reshape(-1, 1) if values.ndim < 2 else values[(0,) * (values.ndim - 2)]
    plane = plane.T if values.ndim < 2 else plane
    rows = "".join(_row(row) for row in plane[:_MAX_ROWS])
    left = f"<div>the first {min(len(plane), _MAX_ROWS)} x {min(plane.shape[1], _MAX_ROWS)} values</div>"
    return f"{head}<table>{rows}</table>{left if plane[:_MAX_ROWS, :_MAX_ROWS].size < values.size else ''}"


def _row(row: np.ndarray[Any, Any]) -> str:
    return f"<tr>{''.join(f'<td>{_number(value)}</td>' for value in row[:_MAX_ROWS])}</tr>"


def _few(values: np.ndarray[Any, Any]) -> str:
    if values.size <= _MAX_VALUES:
        return " ".join(_number(value) for value in values.flat) or "no values"
    first = " ".join(_number(value) for value in values.flat[: _MAX_VALUES // 2])
    return f"{first} ... {_number(values.flat[values.size - 1])}"


def _number(value: Any) -> str:
    return f"{float(value):.4g}" if np.asarray(value).dtype.kind not in "iub" else str(value)
