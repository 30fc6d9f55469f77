"""Times of functions, measured by hooks."""

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nn_core.context import get_current_context
from nn_core.engine.arrays.spaces import space_of
from nn_core.engine.arrays.synced import ready
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.function import Function
from nn_core.utils.inspection.base import FunctionHookCallbackBase

_DEFAULT: Final = "main"
#: The scope that has the times of all other scopes.
_SUMMARY: Final = "summary"


class CpuTimerCallback(FunctionHookCallbackBase):
    """Measures how long each function of a pass takes, by the clock of the host; a device is waited for.

    Args:
        ext_name: Name of the backend; None: that of the present context.
        device_id: The device.

    Attributes:
        seconds: Seconds of each run by function, in the order of the first run. A function is called by its place in the
            pass and its name, "0:Affine".
    """

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

    def average(self, start_index: int = 0) -> dict[str, dict[str, float]]:
        """As `calc_elapsed_time`, without the first `start_index` runs of functions that have more."""
        return {scope: timer.average(start_index) for scope, timer in self._timers.items()}

    def get_all_results(self) -> dict[str, dict[str, dict[str, float | int | str]]]:
        """By scope and function: "time", the mean, "num", the number of runs, and "scale", the unit of the time."""
        return {
            scope: {
                key: {"time": mean, "num": len(timer.seconds[key]), "scale": "ms"} for key, mean in timer.average().items()
            }
            for scope, timer in self._timers.items()
        }

    def to_csv(self, out_dir: str = "./", ignore_init: bool = True) -> None:
        """Write a file <scope>.csv for each scope: the function, its runs, mean and least milliseconds.

        Args:
            out_dir: The folder; made if it does not exist.
            ignore_init: Leave out the first run of each function, which prepares it, if there are more.
        """
        folder = Path(out_dir)
        folder.mkdir(parents=True, exist_ok=True)
        for scope, timer in self._timers.items():
            with (folder / f"{scope}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["function", "runs", "mean_ms", "least_ms"])
                for key, runs in timer.seconds.items():
                    counted = runs[1:] if ignore_init and len(runs) > 1 else runs
                    mean = sum(counted) / len(counted)
                    writer.writerow([key, len(counted), f"{1e3 * mean:.6f}", f"{1e3 * min(counted):.6f}"])

    def _begin(self, function: Function | None = None) -> None:
        self._timer().pre_hook(function)

    def _end(self, function: Function | None = None) -> None:
        self._timer().post_hook(function)

    def _timer(self, scope: str | None = None) -> CpuTimerCallback:
        name = self._scope if scope is None else scope
        return self._timers.get(name) or self.create_new_profiler(name)
