"""The progress of training on the terminal."""

import sys
import time
from typing import IO, Final

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.training.extensions.bars import Bar, is_notebook, make_bar, make_notebook_bar, require_library
from nn_core.training.trainer import Trainer
from nn_core.training.triggers import Trigger, every

#: Seconds between lines where no bar can be drawn.
_LINES_S: Final = 30.0


@fitted_methods()
class Progress:
    """Show a bar of tqdm or rich with the iteration, the time left, and the values reported last.

    A notebook has a bar of its own. Where the output is no terminal either, such as in a file, a line is written every 30
    seconds.

    Args:
        *keys: Names of the values; none: "loss".
        interval: Iterations between two looks.
        file: File to write to; None: standard error.
        library: What draws the bar: "tqdm" or "rich".

    Raises:
        ArgumentError: when `library` is another one.

    Example:
        >>> import io
        >>> from nn_core.training import Progress, fit
        >>> bar, x, t = Progress("loss", file=io.StringIO()), np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=3, progress=False, extensions=[bar])
    """

    phase = "read"
    first_rank_only = True

    @fitted
    def __init__(self, *keys: str, interval: int = 10, file: IO[str] | None = None, library: str = "tqdm") -> None:
        require_library(library)
        self.every: Trigger = every(interval)
        self._keys = keys or ("loss",)
        self._file = file
        self._library = library
        self._bar: Bar | None = None
        self._next_line_s = 0.0

    def start(self, trainer: Trainer) -> None:
        """Draw the bar."""
        self._next_line_s = time.monotonic() + _LINES_S
        file = sys.stderr if self._file is None else self._file
        if self._file is None and is_notebook():
            self._bar = make_notebook_bar(_total(trainer), trainer.iteration)
        elif file.isatty():
            self._bar = make_bar(self._library, _total(trainer), trainer.iteration, file)

    def __call__(self, trainer: Trainer) -> None:
        if self._bar is not None:
            self._bar.set_postfix_str(self._values(trainer), refresh=False)
            self._bar.update(trainer.iteration - self._bar.n)
        elif time.monotonic() >= self._next_line_s:
            self._next_line_s = time.monotonic() + _LINES_S
            self._write_line(trainer)

    def stop(self, trainer: Trainer) -> None:
        """End the bar."""
        if self._bar is not None:
            self._bar.set_postfix_str(self._values(trainer), refresh=False)
            self._bar.update(trainer.iteration - self._bar.n)
            self._bar.close()
            self._bar = None

    def _write_line(self, trainer: Trainer) -> None:
        total = _total(trainer)
        of = "" if total is None else f" of {total}"
        file = sys.stderr if self._file is None else self._file
        file.write(f"iteration {trainer.iteration}{of}, epoch {trainer.epoch}, {self._values(trainer)}\n")
        file.flush()

    def _values(self, trainer: Trainer) -> str:
        observation = trainer.observation
        return ", ".join(f"{key}={observation[key]:.4g}" for key in self._keys if key in observation)


def _total(trainer: Trainer) -> int | None:
    """Return the number of iterations that there will be, if `until` tells."""
    known = trainer.until.iterations
    if known is None and trainer.until.epochs is not None:
        batch_size = getattr(trainer.updater.data, "batch_size", None)
        known = None if batch_size is None else int(-(-trainer.until.epochs * trainer.epoch_size // batch_size))
    return known
