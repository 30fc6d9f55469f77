"""Counters and histograms in the text format of Prometheus."""

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

#: The media type of the text format.
MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SAMPLES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


class Histogram:
    """Numbers of values at most as large as some bounds; the caller holds a lock."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> list[str]:
        """Return its lines: counts that add up, their sum and their number."""
        total, found = 0, []
        for bound, count in zip((*map("{:g}".format, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            found.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*found, f"{name}_sum {self._sum:.9g}", f"{name}_count {total}"]


class Metrics:
    """Counts of the work of a server since its start; all methods may be called from any thread.

    Example:
        >>> metrics = Metrics()
        >>> metrics.count_request(200, 0.003)
        >>> 'nn_core_serve_requests_total{status="200"} 1' in metrics.text().splitlines()
        True
    """

    def __init__(self) -> None:
        #: How many samples wait now.
        self.waiting: Callable[[], int] = lambda: 0
        self._lock = threading.Lock()
        self._requests: Counter[int] = Counter()
        self._reloads: Counter[str] = Counter(success=0, failure=0)
        self._samples = 0
        self._latency, self._compute, self._sizes = Histogram(_SECONDS), Histogram(_SECONDS), Histogram(_SAMPLES)

    def count_request(self, status: int, seconds: float) -> None:
        """Count an answered request for a prediction."""
        with self._lock:
            self._requests[status] += 1
            self._latency.add(seconds)

    def count_batch(self, n_samples: int, seconds: float) -> None:
        """Count a computed batch."""
        with self._lock:
            self._samples += n_samples
            self._sizes.add(n_samples)
            self._compute.add(seconds)

    def count_reload(self, is_done: bool) -> None:
        """Count an exchange of the network or its weights, or one that failed."""
        with self._lock:
            self._reloads["success" if is_done else "failure"] += 1

    def text(self) -> str:
        """Return all of them in the text format of Prometheus."""
        with self._lock:
            parts: list[tuple[str, str, str, list[str]]] = [
                ("requests_total", "counter", "Requests for predictions, by status.", _labelled("status", self._requests)),
                ("samples_total", "counter", "Samples that were computed.", [f"{{}} {self._samples}"]),
                ("reloads_total", "counter", "Exchanges of the network or its weights.", _labelled("result", self._reloads)),
                ("waiting_samples", "gauge", "Samples that wait in the queue.", [f"{{}} {self.waiting()}"]),
            ]
            histograms = [
                ("request_seconds", "Time from the head of a request to its answer.", self._latency),
                ("batch_seconds", "Time that a batch was computed.", self._compute),
                ("batch_samples", "Samples in a batch.", self._sizes),
            ]
            lines: list[str] = []
            for name, kind, text, rows in parts:
                full = f"nn_core_serve_{name}"
                lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", *(full + row.removeprefix("{}") for row in rows)]
            for name, text, histogram in histograms:
                full = f"nn_core_serve_{name}"
                lines += [f"# HELP {full} {text}", f"# TYPE {full} histogram", *histogram.lines(full)]
        return "\n".join(lines) + "\n"


def _labelled(label: str, counts: "Counter[int] | Counter[str]") -> list[str]:
    return [f'{{{label}="{name}"}} {count}' for name, count in sorted(counts.items(), key=str)]
