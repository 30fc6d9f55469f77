"""Time of the phases of an iteration: the clock that an updater is told, and what all ranks have seen of it in one line."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import numpy as np

from nn_core.engine.error_messages.refusal import fitted, fitted_methods
from nn_core.errors import ArgumentError
from nn_core.training.extensions.averages import Averages
from nn_core.training.reporting import report
from nn_core.training.trainer import Trainer
from nn_core.typing import Array

#: The phases of an iteration; what is in none of them is "other".
PHASES: Final = ("data", "forward", "backward", "sum", "update", "save", "other")
#: Values that the line names in another way.
_PLACES: Final = ("iteration", "epoch", "elapsed_time")


class PhaseClock:
    """Seconds by phase; time in a phase within another one counts for the inner one alone.

    Attributes:
        seconds: By phase, since the last `clear`.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._open: list[str] = []
        self._since = time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time inside the ``with`` block for a phase."""
        self._switch()
        self._open.append(name)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def clear(self) -> dict[str, float]:
        """Return the seconds so far, and begin anew."""
        self._switch()
        seconds, self.seconds = self.seconds, dict.fromkeys(PHASES, 0.0)
        return seconds

    def _switch(self) -> None:
        now = time.perf_counter()
        self.seconds[self._open[-1] if self._open else "other"] += now - self._since
        self._since = now


@fitted_methods()
class StepTimes(Averages):
    """Report where the time and the memory of all ranks go, and write it in one line together with the reported values.

    Reported are "time/iteration", "time/data" and so on (forward, backward, sum, update, save, other), seconds of an iteration
    by the clock of the host, the means over the ranks; "memory/mib", the largest resident memory that a rank has had; and with
    several ranks "slowest", the rank whose own work takes longest, and "slowness", that time over the median. Own work is data
    and forward, and what does not wait for other ranks: backward and update, unless gradients or states are divided. A rank
    whose slowness is at least `slow` is named in the line, with its machine and the phase in which it is slow.

    Args:
        *keys: Names of the values in the line; none: all that were reported.
        slow: From which slowness on a rank is named.
        file: Where rank 0 writes the line; None: standard output.
        line: Write it.

    Raises:
        ArgumentError: when `slow` is not above 1.

    Example:
        >>> import io
        >>> from nn_core.training import StepTimes, fit
        >>> file, x, t = io.StringIO(), np.eye(4), np.arange(4)
        >>> _ = fit(lambda x: PF.affine(x, 4), (x, t), epochs=1, progress=False, extensions=[StepTimes("loss", file=file)])
        >>> file.getvalue().split(": ")[0], "backward" in file.getvalue()
        ('iteration 1, epoch 1', True)
    """

    phase = "measure"

    @fitted
    def __init__(self, *keys: str, slow: float = 1.3, file: IO[str] | None = None, line: bool = True) -> None:
        super().__init__(keys)
        if not slow > 1:
            raise ArgumentError(f"StepTimes: slow must be above 1, got {slow}")
        self._slow = slow
        self._file = file
        self._has_line = line
        self._clock = PhaseClock()
        self._last = 0

    def start(self, trainer: Trainer) -> None:
        """Begin to measure."""
        _tell(trainer, self._clock)
        self._clock.clear()
        self._last = trainer.iteration

    def stop(self, trainer: Trainer) -> None:
        """Measure no longer."""
        _tell(trainer, None)

    def __call__(self, trainer: Trainer) -> None:
        seconds = self._clock.clear()
        count = max(trainer.iteration - self._last, 1)
        self._last = trainer.iteration
        comm = getattr(trainer.updater, "comm", None)
        row = np.array([[*(seconds[name] / count for name in PHASES), _peak_mib()]])
        rows = row if comm is None else comm.gather_rows("StepTimes", row)
        times, memory = rows[:, :-1], rows[:, -1]
        means = dict(zip(PHASES, times.mean(axis=0).tolist(), strict=True))
        values = {f"time/{name}": value for name, value in means.items()}
        own = times[:, [PHASES.index(name) for name in _own_work(trainer)]]
        slowness = float(own.sum(axis=1).max() / max(float(np.median(own.sum(axis=1))), 1e-12))
        slowest = int(own.sum(axis=1).argmax())
        values.update({"time/iteration": sum(means.values()), "memory/mib": float(memory.max())})
        if len(rows) > 1:
            values.update(slowest=slowest, slowness=slowness)
        report(values)
        entry = self.entry(trainer)
        if not self._has_line or (comm is not None and comm.rank):
            return
        text = _place(entry) + _metrics(entry) + _times(means, len(rows)) + _memory(memory)
        if comm is not None and slowness >= self._slow:
            phase = _own_work(trainer)[int((own[slowest] - np.median(own, axis=0)).argmax())]
            text += f" | rank {slowest} on {comm.engine.hosts[slowest]} is slow: {slowness:.1f} times the median, by {phase}"
        print(text, file=sys.stdout if self._file is None else self._file, flush=True)


def _tell(trainer: Trainer, clock: PhaseClock | None) -> None:
    measure = getattr(trainer.updater, "measure", None)  # updaters of other classes have no phases
    if measure is not None:
        measure(None if clock is None else clock.phase)


def _own_work(trainer: Trainer) -> Sequence[str]:
    """Return the phases in which a rank does not wait for the others."""
    shards = getattr(trainer.updater, "state_shards", ())
    if not shards:
        return ("data", "forward", "backward", "update")
    return ("data", "forward") if any(each.with_gradients for each in shards) else ("data", "forward", "backward")


def _place(entry: dict[str, float]) -> str:
    return f"iteration {entry['iteration']}, epoch {entry['epoch']}: "


def _metrics(entry: dict[str, float]) -> str:
    shown = [name for name in entry if name not in _PLACES and not name.startswith(("time/", "memory/", "slow"))]
    return ", ".join(f"{name} {entry[name]:.6g}" for name in shown) + " | " if shown else ""


def _times(means: dict[str, float], n_ranks: int) -> str:
    total = sum(means.values())
    shares = ", ".join(f"{name} {100 * value / max(total, 1e-12):.0f} %" for name, value in means.items() if value > 0)
    ranks = f"{n_ranks} ranks, " if n_ranks > 1 else ""
    return f"{ranks}{1e3 * total:.3g} ms an iteration: {shares}"


def _memory(memory: Array) -> str:
    if not np.isfinite(memory).all():
        return ""
    low, high = round(float(memory.min())), round(float(memory.max()))
    return f" | {high} MiB" if low == high else f" | {low} to {high} MiB"


def _peak_mib() -> float:
    """Return the largest resident memory of this process so far; NaN where the system does not tell."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024
