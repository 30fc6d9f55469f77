"""Times of functions, measured by hooks."""

import csv
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nn_core.context import get_current_context
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import ready
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.error_messages.refusal import fitted
from nn_core.function import Function
from nn_core.utils.inspection.base import FunctionHookCallbackBase

_DEFAULT: Final = "main"
#: The scope that has the times of all other scopes.
_SUMMARY: Final = "summary"
#: Figures of each function, in the order of the columns of a table.
_COLUMNS: Final = ("time", "scale", "num")


class CpuTimerCallback(FunctionHookCallbackBase):
    """Measures how long each function of a pass takes, by the clock of the host; a device is waited for.

    Args:
        ext_name: Name of the backend; None: that of the present context.
        device_id: The device.

    Attributes:
        seconds: Seconds of each run by function, in the order of the first run. A function is called by its place in the
            pass and its name, "0:Affine".
    """

    @fitted
    def __init__(self, ext_name: str | None = None, device_id: str = "0") -> None:
        self.seconds: dict[str, list[float]] = {}
        self._space = space_of(get_backend(ext_name or get_current_context().entries[0][0]), device_id)
        self._started = 0.0
        self._number = 0

    @staticmethod
    def timer() -> float:
        """Return the time now in seconds, of a clock that never goes back."""
        return time.perf_counter()

    @property
    def pre_hook(self) -> Callable[[Function | None], None]:
        """To be called before a function, or without one before a parameter."""
        return self._begin

    @property
    def post_hook(self) -> Callable[[Function | None], None]:
        """To be called after a function."""
        return self._end

    def restart(self) -> None:
        """Say that another pass over the same functions begins."""
        self._number = 0

    def average(self, start_index: int = 0) -> dict[str, float]:
        """Mean milliseconds of each function, without its first `start_index` runs if it has more."""
        found = {}
        for key, runs in self.seconds.items():
            counted = runs[start_index:] or runs
            found[key] = 1e3 * sum(counted) / len(counted)
        return found

    def calc_elapsed_time(self) -> dict[str, float]:
        """Mean milliseconds of each function."""
        return self.average()

    def _begin(self, function: Function | None = None) -> None:
        ready(self._space)
        self._started = self.timer()

    def _end(self, function: Function | None = None) -> None:
        self.add("parameter" if function is None else function.name)

    def add(self, name: str) -> None:
        """Count the time since the last start for the function that is next in the pass."""
        self.seconds.setdefault(f"{self._number}:{name}", []).append(self.elapsed())
        self._number += 1

    def elapsed(self) -> float:
        """Seconds since the last start."""
        ready(self._space)
        return self.timer() - self._started


class TimeProfiler(FunctionHookCallbackBase):
    """Measures how long each function takes, as hooks of forward, backward and update.

    Functions that are measured run one by one, and a device is waited for after each. So the sum is more than the time of a
    pass that nobody watches; `nn_core.utils.profiler.Profiler` measures such passes.

    Args:
        ext_name: Name of the backend; None: that of the present context. Its device is waited for.
        device_id: The device.

    Example:
        >>> import numpy as np
        >>> import nn_core as nn, nn_core.functions as F
        >>> y = F.sum(F.relu(nn.Variable.from_numpy_array(np.ones((2, 3)))))
        >>> profiler = TimeProfiler("cpu", "0")
        >>> with profiler.scope("forward"):
        ...     y.forward(function_pre_hook=profiler.pre_hook, function_post_hook=profiler.post_hook)
        >>> list(profiler.calc_elapsed_time(["forward"])["forward"])
        ['0:ReLU', '1:Sum']
    """

    @fitted
    def __init__(self, ext_name: str | None = None, device_id: str = "0") -> None:
        self._ext_name = ext_name
        self._device_id = device_id
        get_backend(ext_name or get_current_context().entries[0][0])
        self._scope = _DEFAULT
        self._timers: dict[str, CpuTimerCallback] = {}

    @property
    def pre_hook(self) -> Callable[[Function | None], None]:
        """To be called before a function, or without one before a parameter."""
        return self._begin

    @property
    def post_hook(self) -> Callable[[Function | None], None]:
        """To be called after a function."""
        return self._end

    @contextmanager
    def scope(self, scope_name: str) -> Iterator[None]:
        """Collect under a name inside a ``with`` block, which is one pass.

        The time of the whole block is collected as well, under the name of the scope in the scope "summary".
        """
        previous, self._scope = self._scope, scope_name
        self._timer().restart()
        whole = CpuTimerCallback(self._ext_name, self._device_id)
        whole.pre_hook(None)
        try:
            yield
        finally:
            self._scope = previous
            self._timer(_SUMMARY).seconds.setdefault(scope_name, []).append(whole.elapsed())

    def __str__(self) -> str:
        """Return a table of each scope: mean milliseconds of a run, slowest function first."""
        parts = []
        for scope, timer in self._timers.items():
            rows = sorted(timer.average().items(), key=lambda row: -row[1])
            width = max((len(key) for key, _ in rows), default=0)
            parts.append("\n".join([scope, *(f"  {key:{width}}  {mean:10.3f} ms" for key, mean in rows)]))
        return "\n".join(parts)

    def create_new_profiler(self, scope_name: str) -> CpuTimerCallback:
        """Return the timer of a scope, without times."""
        timer = self._timers[scope_name] = CpuTimerCallback(self._ext_name, self._device_id)
        return timer

    def call_pre_hook(self, scope_name: str, key: object) -> None:
        """Start the clock of a scope."""
        self._timer(scope_name).pre_hook(None)

    def call_post_hook(self, scope_name: str, key: object) -> None:
        """Count the time since then for `key`, the name of anything."""
        self._timer(scope_name).add(str(key))

    def calc_elapsed_time(self, names: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
        """Milliseconds of each function, mean over its runs, by scope; all scopes, or those called `names`."""
        chosen = self._timers if names is None else {name: self._timers[name] for name in names}
        return {scope: timer.average() for scope, timer in chosen.items()}

    def average(self, start_index: int = 0) -> dict[str, dict[str, dict[str, float | int | str]]]:
        """Mean times of all scopes.

        Args:
            start_index: The number of first runs to leave out, of functions that have more.

        Returns:
            By scope and function: "time", the mean; "num", the number of runs; and "scale", the unit of the time, "ms". The
            scope "summary" is there in any case.
        """
        described = {scope: _described(timer.seconds, start_index) for scope, timer in self._timers.items()}
        return {_SUMMARY: {}} | described

    def get_all_results(self) -> dict[str, dict[str, list[float]]]:
        """Return the seconds of each run by scope and function."""
        return {scope: {key: list(runs) for key, runs in timer.seconds.items()} for scope, timer in self._timers.items()}

    def to_csv(self, out_dir: str = "./", ignore_init: bool = True) -> None:
        """Write profile_summary.csv, with a row for each scope, and profile_detail.csv, with a row for each function.

        Columns are the mean time, its unit and the number of runs; those of functions end in the name of a scope, as
        "time_forward".

        Args:
            out_dir: The folder; made if it does not exist.
            ignore_init: Leave out the first run of each function, which prepares it, if there are more.
        """
        folder, found = Path(out_dir), self.average(int(ignore_init))
        folder.mkdir(parents=True, exist_ok=True)
        summary = [{"scope": scope, **row} for scope, row in found.pop(_SUMMARY).items()]
        _write(folder / "profile_summary.csv", ["scope", *_COLUMNS], summary)
        rows: dict[str, dict[str, object]] = {}
        for scope, functions in found.items():
            counts = Counter[str]()
            for key, row in functions.items():
                name = key.partition(":")[2]
                about = rows.setdefault(f"{name}_{counts[name]}", {"scope": f"{name}_{counts[name]}", "original_key": name})
                about.update({f"{column}_{scope}": value for column, value in row.items()})
                counts[name] += 1
        columns = [f"{column}_{scope}" for scope, functions in found.items() if functions for column in _COLUMNS]
        _write(folder / "profile_detail.csv", ["scope", "original_key", *columns], list(rows.values()))

    def _begin(self, function: Function | None = None) -> None:
        self._timer().pre_hook(function)

    def _end(self, function: Function | None = None) -> None:
        self._timer().post_hook(function)

    def _timer(self, scope: str | None = None) -> CpuTimerCallback:
        name = self._scope if scope is None else scope
        return self._timers.get(name) or self.create_new_profiler(name)


def _described(seconds: Mapping[str, Sequence[float]], start_index: int) -> dict[str, dict[str, float | int | str]]:
    """Return mean, unit and number of the runs of each function, without the first ones if there are more."""
    counted = {key: runs[start_index:] or runs for key, runs in seconds.items()}
    return {key: {"time": 1e3 * sum(runs) / len(runs), "scale": "ms", "num": len(runs)} for key, runs in counted.items()}


def _write(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)
