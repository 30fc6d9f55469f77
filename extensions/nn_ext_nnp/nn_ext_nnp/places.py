"""Lines of texts, for messages about networks that were read from them."""

import re
from typing import Final

from google.protobuf import text_encoding

#: Longer texts, which have the values of parameters, are not kept.
_LONGEST: Final = 1 << 22


class TextFile(str):
    """The name of a file, with its texts.

    Attributes:
        texts: name and content of each.
    """

    texts: list[tuple[str, bytes]]

    def __new__(cls, name: str) -> "TextFile":
        """Return a file without texts."""
        made = super().__new__(cls, name)
        made.texts = []
        return made

    def add(self, name: str, data: bytes) -> None:
        """Keep a text of the file."""
        if len(data) <= _LONGEST:
            self.texts.append((name, data))


def place(file: str, kind: str, name: str, network: str = "") -> str:
    """Return the file and the line of a message, or the file alone where the line is not known.

    Args:
        file: name of the file; a `TextFile` knows its lines.
        kind: field of the message, "variable" or "function" or "executor".
        name: of the message; that of a step of a loop is found by its beginning.
        network: name of the network that has it.
    """
    for text, data in getattr(file, "texts", ()):
        found = position_of(data, kind, name, network)
        if found is not None:
            return f"{text}:{line_at(data, found)}"
    return file


def line_at(data: bytes, position: int) -> int:
    """Return the line of a position in a text, counted from 1."""
    return data.count(b"\n", 0, position) + 1


def position_of(data: bytes, kind: str, name: str, network: str = "") -> int | None:
    """Return the place of a message in a text, or of the one that a loop repeats under a longer name; arguments as of
    `place`.
    """
    start = position_of(data, "network", network) if network else 0
    if start is None:
        return None
    pattern = rb'\b%s\s*:?\s*\{\s*name\s*:\s*"((?:[^"\\\n]|\\.)*)"' % kind.encode()
    best: tuple[int, int] | None = None
    for match in re.compile(pattern).finditer(data, start):
        known = text_encoding.CUnescape(match[1].decode()).decode(errors="replace")
        if known == name:
            return match.start()
        if name.endswith("]") and name.startswith(f"{known}_") and (best is None or len(known) > best[0]):
            best = (len(known), match.start())
    return None if best is None else best[1]
