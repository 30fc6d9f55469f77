"""Bars on the terminal, by the packages tqdm and rich, and in notebooks."""

import sys
import time
from importlib import import_module
from typing import IO, Any, Final, Protocol

from nn_core.engine.runtime.html import bar as drawn_bar
from nn_core.errors import ArgumentError

#: Seconds between two drawings in a notebook.
_REDRAWN_S: Final = 0.2


class Bar(Protocol):
    """A bar that is shown.

    Attributes:
        n: The iteration that it shows.
    """

    n: int

    def update(self, n: int) -> object:
        """Go on by so many iterations."""

    def set_postfix_str(self, s: str, refresh: bool = True) -> None:
        """Change the text after the bar."""

    def close(self) -> None:
        """Leave the bar as it is, and go to the next line."""


class _RichBar:
    """A bar of rich, with the iterations, the time left, and a text."""

    def __init__(self, total: int | None, initial: int, file: IO[str]) -> None:
        progress, console = import_module("rich.progress"), import_module("rich.console")
        columns = [progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeElapsedColumn()]
        columns += [progress.TimeRemainingColumn(), progress.TextColumn("{task.description}")]
        self.n = initial
        self._progress = progress.Progress(*columns, console=console.Console(file=file))
        self._task = self._progress.add_task("", total=total, completed=initial)
        self._text = ""
        self._progress.start()

    def update(self, n: int) -> None:
        self.n += n
        self._progress.update(self._task, completed=self.n, description=self._text)

    def set_postfix_str(self, s: str, refresh: bool = True) -> None:
        self._text = s.replace("[", "\\[")  # square brackets are marks of rich

    def close(self) -> None:
        self._progress.stop()


class _NotebookBar:
    """A bar below the cell of a notebook."""

    def __init__(self, total: int | None, initial: int) -> None:
        self._html = import_module("IPython.display").HTML
        self._total = total
        self.n = initial
        self._start, self._initial = time.monotonic(), initial
        self._text = ""
        self._next_s = 0.0
        self._handle: Any = import_module("IPython.display").display(self._drawn(), display_id=True)

    def update(self, n: int) -> None:
        self.n += n
        if time.monotonic() >= self._next_s:
            self._redraw()

    def set_postfix_str(self, s: str, refresh: bool = True) -> None:
        self._text = s

    def close(self) -> None:
        self._redraw()

    def _redraw(self) -> None:
        self._next_s = time.monotonic() + _REDRAWN_S
        self._handle.update(self._drawn())

    def _drawn(self) -> Any:
        seconds = time.monotonic() - self._start
        rate = (self.n - self._initial) / seconds if seconds > 0 else 0.0
        return self._html(drawn_bar(self.n, self._total, f"{rate:.3g} it/s  {self._text}"))


def is_notebook() -> bool:
    """Return whether the program runs in a notebook, which shows what IPython displays."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def make_notebook_bar(total: int | None, initial: int) -> Bar:
    """Draw a bar below the cell of a notebook; see `make_bar`."""
    return _NotebookBar(total, initial)


def make_bar(library: str, total: int | None, initial: int, file: IO[str]) -> Bar:
    """Draw a bar.

    Args:
        library: "tqdm" or "rich".
        total: Number of iterations in all; None: it is not known.
        initial: Number of those that are done.
        file: The terminal.

    Raises:
        ImportError: when the library is not installed.
    """
    try:
        if library == "rich":
            return _RichBar(total, initial, file)
        bar: Bar = import_module("tqdm").tqdm(total=total, initial=initial, file=file, unit="it")
    except ImportError as error:
        raise ImportError(f"Progress: {library} must be installed, got: {error}\n  hint: pip install {library}") from error
    return bar


def require_library(library: str) -> None:
    """Refuse other libraries.

    Raises:
        ArgumentError: when it is neither tqdm nor rich.
    """
    if library not in ("tqdm", "rich"):
        raise ArgumentError(f"Progress: library must be 'tqdm' or 'rich', got {library!r}")
