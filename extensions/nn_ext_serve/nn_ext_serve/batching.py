"""A bounded queue that makes batches of requests: one starts when it is full, or when its first request has waited enough."""

import math
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_core.ext import ArgumentError, NNCoreError
from nn_ext_serve.metrics import Metrics
from nn_ext_serve.predictor import Predictor
from nn_ext_serve.tensors import Array

Answer = dict[str, Array]


class OverloadError(NNCoreError, RuntimeError):
    """A request that was refused at once, because too many samples wait or the server stops.

    Attributes:
        retry_after: After how many seconds another try is likely to succeed.
    """

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class DeadlineError(NNCoreError, TimeoutError):
    """A request that waited past its deadline and was not computed."""


@dataclass(slots=True, eq=False)
class _Request:
    inputs: dict[str, Array]
    n_samples: int
    arrived: float
    deadline: float
    future: "Future[Answer]"


class Batcher:
    """Answers requests of many threads in batches.

    Args:
        predictor: It computes the batches, and should have as many graphs as there are `workers`.
        workers: Number of threads that compute batches.
        max_wait: Seconds that the first request of a batch waits for others.
        capacity: The most samples that wait; requests beyond are refused.
        deadline: Seconds after which a request that still waits is given up.

    Example:
        >>> predictor = Predictor(lambda n: (lambda x: Graph({"x": x}, {"y": x * 2}))(nn.Variable((n, 1))))
        >>> with Batcher(predictor, max_wait=0.001) as batcher:
        ...     futures = [batcher.submit({"x": [[i]]}) for i in range(3)]
        ...     [future.result()["y"].item() for future in futures]
        [0.0, 2.0, 4.0]
    """

    def __init__(
        self,
        predictor: Predictor,
        *,
        workers: int = 1,
        max_wait: float = 0.002,
        capacity: int = 256,
        deadline: float = 10.0,
        metrics: Metrics | None = None,
    ) -> None:
        for name, value, least in (("workers", workers, 1), ("max_wait", max_wait, 0), ("capacity", capacity, 1)):
            if not value >= least:
                raise ArgumentError(f"Batcher: {name} must be at least {least}, got {value}")
        if not deadline > 0:
            raise ArgumentError(f"Batcher: deadline must be above 0 seconds, got {deadline}")
        self.predictor = predictor
        self.metrics = metrics or Metrics()
        self.metrics.waiting = lambda: self._waiting
        self.deadline = deadline
        self._max_wait, self._capacity = max_wait, capacity
        self._queue: deque[_Request] = deque()
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()
        self._collecting = threading.Lock()  # one worker at a time waits for a batch to fill
        self._seconds_per_sample = 0.0
        self._workers = [threading.Thread(target=self._work, name=f"serve-{i}", daemon=True) for i in range(workers)]
        for worker in self._workers:
            worker.start()

    def __enter__(self) -> "Batcher":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def submit(self, inputs: Mapping[str, Any], deadline: float | None = None) -> "Future[Answer]":
        """Queue a request, and return the future of its outputs.

        Args:
            inputs: Arrays (n, ...) by name.
            deadline: Seconds after which it is given up; None: that of the batcher.

        Returns:
            A future of the outputs by name. Its error is a `DeadlineError` when the request waited too long, or what
            `Predictor.predict` raises. A request whose future is cancelled while it waits is not computed.

        Raises:
            ArgumentError, ShapeError, DTypeError: when the inputs do not fit.
            OverloadError: when `capacity` samples wait already, or the batcher is closed.
        """
        arrays, n_samples = self.predictor.check(inputs)
        now = time.monotonic()
        until = now + (self.deadline if deadline is None else deadline)
        request = _Request(arrays, n_samples, now, until, Future())
        with self._changed:
            self._require_room(n_samples)
            self._queue.append(request)
            self._waiting += n_samples
            self._changed.notify_all()
        return request.future

    def require_room(self) -> None:
        """Raise the `OverloadError` of `submit` if not even one more sample may wait."""
        with self._changed:
            self._require_room(1)

    def _require_room(self, n_samples: int) -> None:
        if self._closed:
            raise OverloadError("submit: the batcher must be open, got a request after it was closed")
        if self._waiting and self._waiting + n_samples > self._capacity:
            wait = max(1.0, self._waiting * self._seconds_per_sample / len(self._workers))
            raise OverloadError(
                f"submit: at most {self._capacity} samples may wait, got {n_samples} more than {self._waiting}",
                math.ceil(wait),
            )

    def close(self) -> None:
        """Refuse new requests, answer those that wait, and end the threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _work(self) -> None:
        self.predictor.warm_up()  # the native threads of this thread are started here, not by the first request
        while batch := self._collect():
            self._answer(batch)

    def _collect(self) -> list[_Request]:
        """Return the next batch; empty when the batcher is closed and nothing waits."""
        with self._collecting, self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue or self._closed)
                if not self._queue:
                    return []
                batch = self._take()
                if batch:
                    return batch

    def _take(self) -> list[_Request]:
        """Take requests off the queue until a batch is full or its first request has waited enough."""
        batch: list[_Request] = []
        n_samples, end = 0, self._queue[0].arrived + self._max_wait
        while n_samples < self.predictor.max_batch:
            if not self._queue:
                if self._closed or not self._changed.wait_for(lambda: self._queue or self._closed, end - time.monotonic()):
                    break
                continue
            if n_samples + self._queue[0].n_samples > self.predictor.max_batch:
                break
            request = self._queue.popleft()
            self._waiting -= request.n_samples
            if self._is_wanted(request):
                batch.append(request)
                n_samples += request.n_samples
        return batch

    def _is_wanted(self, request: _Request) -> bool:
        """Return whether a request still is to be computed; its future says so otherwise."""
        if not request.future.set_running_or_notify_cancel():
            return False
        late = time.monotonic() - request.deadline
        if late > 0:
            text = f"submit: a request must be computed before its deadline, got one that is {late:.3f} s late"
            request.future.set_exception(DeadlineError(text))
        return late <= 0

    def _answer(self, batch: Sequence[_Request]) -> None:
        """Compute a batch. If that fails, compute its requests alone, so that one does not fail the others."""
        began = time.monotonic()
        try:
            answers = self._computed(batch)
        except Exception as error:  # of any kernel: the thread goes on, and whoever asked gets it
            if len(batch) > 1:
                for request in batch:
                    self._answer([request])
                return
            batch[0].future.set_exception(error)
            return
        seconds, n_samples = time.monotonic() - began, sum(request.n_samples for request in batch)
        self._seconds_per_sample += 0.1 * (seconds / n_samples - self._seconds_per_sample)
        self.metrics.count_batch(n_samples, seconds)
        for request, answer in zip(batch, answers, strict=True):
            request.future.set_result(answer)

    def _computed(self, batch: Sequence[_Request]) -> list[Answer]:
        if len(batch) == 1:
            return [self.predictor.predict(batch[0].inputs)]
        names = batch[0].inputs
        outputs = self.predictor.predict({name: np.concatenate([r.inputs[name] for r in batch]) for name in names})
        ends = np.cumsum([request.n_samples for request in batch])[:-1]
        parts = {name: np.split(values, ends) for name, values in outputs.items()}
        return [{name: parts[name][i] for name in outputs} for i in range(len(batch))]
