"""Tables of text."""

from collections.abc import Sequence

_KILO = 1024


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Rows of cells in columns; the first row is the head, and all columns from the fourth on are numbers."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = [
        "  ".join(
            cell.ljust(width) if n < 3 else cell.rjust(width) for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([rows[0], "-" * len(rows[0]), *rows[1:]])


def bytes_text(n_bytes: int) -> str:
    """Return a number of bytes in the largest unit in which it is at least 1."""
    size, units = float(n_bytes), ["B", "KiB", "MiB", "GiB"]
    while size >= _KILO and len(units) > 1:
        size /= _KILO
        units.pop(0)
    return f"{size:.0f} B" if units[0] == "B" else f"{size:.1f} {units[0]}"
