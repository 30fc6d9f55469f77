"""Times of functions, measured by hooks."""

import csv
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nn_core.context import get_current_context
from nn_core.dispatch.plugins import get_backend
from nn_core.function import Function
from nn_core.synced import ready, space_of

_DEFAULT: Final = "main"


class TimeProfiler:
    """Measures how long each function takes, as hooks of forward, backward and update.

    Functions that are measured run one by one, and a device is waited for after each. So the sum is more than the time of a
    pass that nobody watches.

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
        name = ext_name or get_current_context().entries[0][0]
        self._space = space_of(get_backend(name), device_id)
        self._scope = _DEFAULT
        self._started: dict[str, float] = {}
        #: seconds of each run, by scope and function, in the order of the first run
        self._times: dict[str, dict[str, list[float]]] = {}
        self._numbers: dict[str, int] = {}

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
        """Collect under a name inside a ``with`` block, and measure the block itself."""
        previous, self._scope = self._scope, scope_name
        self._times.setdefault(scope_name, {})
        self._numbers[scope_name] = 0
        try:
            yield
        finally:
            self._scope = previous

    def calc_elapsed_time(self, names: Sequence[str] | None = None) -> dict[str, dict[str, float]]:
        """Milliseconds of each function, mean over its runs, by scope; all scopes, or those called `names`."""
        chosen = self._times if names is None else {name: self._times[name] for name in names}
        return {
            scope: {key: 1e3 * sum(runs) / len(runs) for key, runs in functions.items()} for scope, functions in chosen.items()
        }

    def to_csv(self, out_dir: str = "./", ignore_init: bool = True) -> None:
        """Write a file <scope>.csv for each scope: the function, its runs, mean and least milliseconds.

        Args:
            out_dir: The folder; made if it does not exist.
            ignore_init: Leave out the first run of each function, which prepares it, if there are more.
        """
        folder = Path(out_dir)
        folder.mkdir(parents=True, exist_ok=True)
        for scope, functions in self._times.items():
            with (folder / f"{scope}.csv").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(["function", "runs", "mean_ms", "least_ms"])
                for key, runs in functions.items():
                    counted = runs[1:] if ignore_init and len(runs) > 1 else runs
                    mean = sum(counted) / len(counted)
                    writer.writerow([key, len(counted), f"{1e3 * mean:.6f}", f"{1e3 * min(counted):.6f}"])

    def _begin(self, function: Function | None = None) -> None:
        ready(self._space)
        self._started[self._scope] = time.perf_counter()

    def _end(self, function: Function | None = None) -> None:
        ready(self._space)
        seconds = time.perf_counter() - self._started[self._scope]
        number = self._numbers.get(self._scope, 0)
        self._numbers[self._scope] = number + 1
        key = f"{number}:{'parameter' if function is None else function.name}"
        self._times.setdefault(self._scope, {}).setdefault(key, []).append(seconds)
