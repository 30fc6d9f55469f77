"""Threads and processes that read batches.

A pool takes tasks and gives their results by number. A process that dies is replaced, and its tasks are given to the new
one, so that no batch is lost. Each process has a connection of its own: a queue that several share would stay locked when
one of them is killed while it holds the lock.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
import weakref
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeAlias

from nn_core.data.loader import shared_memory
from nn_core.data.loader.sample_watch import N_CELLS, Moment, SampleWatch, deadly, hanging
from nn_core.data.loader.shared_memory import SharedArrays
from nn_core.data.loader.tasks import (
    Batch,
    BatchError,
    Collation,
    SampleError,
    Task,
    TaskReader,
    own_copy,
    seed_global_generators,
)
from nn_core.data.source import DataSource
from nn_core.engine.graph.failure import attach_note
from nn_core.engine.runtime.children import shadowed_module
from nn_core.errors import ArgumentError, quoted

#: How many processes may die over one task before it is given up.
ATTEMPTS: Final = 3
_ADVICE: Final = (
    "the system kills processes that need too much memory; and a program that starts processes needs "
    'the line `if __name__ == "__main__":` before what it does'
)

#: A batch, or the exception that there is in place of it.
Result: TypeAlias = Batch | BaseException


class Pool(Protocol):
    """Reads tasks at the same time."""

    def submit(self, number: int, task: Task) -> None:
        """Start to read; numbers grow."""

    def wait(self, number: int) -> Result:
        """Return the result of a task, once."""

    def forget(self) -> None:
        """Give up all tasks."""

    def close(self) -> None:
        """End the workers."""


# -- threads -----------------------------------------------------------------------------------------------------------


class ThreadPool:
    """Threads, for sources that read files or compute outside of the interpreter's lock.

    Args:
        source: The source; each thread reads from a copy of it that shares the samples.
        collation: How samples become a batch.
        n_workers: Number of threads.
        timeout_s: Seconds that a sample may take; None: any time. Another thread takes the place of one that takes longer.
    """

    def __init__(self, source: DataSource, collation: Collation, n_workers: int, timeout_s: float | None = None) -> None:
        self._requests: SimpleQueue[tuple[Task, Future[Batch]] | None] = SimpleQueue()
        self._futures: dict[int, Future[Batch]] = {}
        self._source, self._collation = source, collation
        self._timeout_s = timeout_s
        self._threads = [_Thread(own_copy(source), collation, self._requests, timeout_s) for _ in range(n_workers)]
        for thread in self._threads:
            thread.start()
        self._stop = weakref.finalize(self, _stop_threads, self._requests, n_workers)
        self._stop.atexit = False

    def submit(self, number: int, task: Task) -> None:
        future = self._futures[number] = Future()
        self._requests.put((task, future))

    def wait(self, number: int) -> Result:
        future = self._futures[number]
        timeout_s = self._timeout_s
        while timeout_s is not None and not _is_done(future, _tick(timeout_s)):
            self._replace_hanging(timeout_s)
        error = future.exception()
        return self._futures.pop(number).result() if error is None else error

    def _replace_hanging(self, timeout_s: float) -> None:
        """Give up tasks whose samples take too long, and start other threads; the old ones end when they come back."""
        for position, thread in enumerate(self._threads):
            moment = None if thread.watch is None else thread.watch.overdue(timeout_s)
            future = thread.future
            if moment is not None and future is not None and thread.give_up(hanging(moment, timeout_s), future):
                fresh = self._threads[position] = _Thread(own_copy(self._source), self._collation, self._requests, timeout_s)
                fresh.start()

    def forget(self) -> None:
        for future in self._futures.values():
            future.cancel()
        self._futures.clear()

    def close(self) -> None:
        self.forget()
        self._stop()
        for thread in self._threads:
            thread.join(self._timeout_s)  # one that hangs now ends when it comes back


def _stop_threads(requests: "SimpleQueue[tuple[Task, Future[Batch]] | None]", n_workers: int) -> None:
    for _ in range(n_workers):
        requests.put(None)


class _Thread(threading.Thread):
    """A thread of the pool.

    Attributes:
        watch: What it is doing, where somebody asks.
        future: The future of the batch that it is reading.
    """

    def __init__(
        self,
        source: DataSource,
        collation: Collation,
        requests: "SimpleQueue[tuple[Task, Future[Batch]] | None]",
        timeout_s: float | None,
    ) -> None:
        # A daemon, because a source that never returns must not keep the process from ending.
        super().__init__(name="nn_core.data", daemon=True)
        self.watch = None if timeout_s is None else SampleWatch()
        self.future: Future[Batch] | None = None
        self._read = TaskReader(source, collation, self.watch).read
        self._requests = requests
        self._lock = threading.Lock()

    def run(self) -> None:
        """Read tasks until None comes instead of one, or this thread was given up."""
        while (request := self._requests.get()) is not None:
            task, self.future = request
            future = self.future
            if future.set_running_or_notify_cancel():
                result: Batch | None = None
                error: BaseException | None = None
                try:
                    result = self._read(task)
                except BaseException as failure:  # whatever it is, it belongs to the thread that waits for the batch
                    error = failure
                with self._lock:
                    if future.done():
                        return
                    _complete(future, result, error)
            self.future = None
            del request, task, future  # an idle thread keeps no batch alive

    def give_up(self, error: BaseException, future: "Future[Batch]") -> bool:
        """Let a batch that takes too long have an error; False when it has come by now."""
        with self._lock:
            if future.done() or self.future is not future:
                return False
            future.set_exception(error)
            return True


def _complete(future: "Future[Batch]", result: Batch | None, error: BaseException | None) -> None:
    if error is not None:
        future.set_exception(error)
    else:
        assert result is not None
        future.set_result(result)


def _is_done(future: "Future[Batch]", timeout_s: float) -> bool:
    with suppress(TimeoutError):
        future.exception(timeout_s)
    return future.done()


def _tick(timeout_s: float) -> float:
    """Return how often somebody who waits looks at what hangs."""
    return min(max(timeout_s / 8, 0.01), 1.0)


# -- processes ---------------------------------------------------------------------------------------------------------


class ProcessPool:
    """Processes, for sources that compute in Python; batches come back in shared memory.

    Args:
        source: The source; each process gets a pickled copy.
        collation: How samples become a batch.
        n_workers: Number of processes.
        timeout_s: Seconds that a sample may take; None: any time. Another process takes the place of one that takes longer.

    Raises:
        ArgumentError: when the source or the transformation cannot be pickled, or the current directory, where this process
            does not search for modules, has one that the processes would import in place of Python's own.
    """

    def __init__(self, source: DataSource, collation: Collation, n_workers: int, timeout_s: float | None = None) -> None:
        try:
            self._payload = pickle.dumps((source, collation))
        except Exception as error:
            raise ArgumentError(
                f"DataIterator: what worker processes read must be picklable, got: {error}\n"
                "  hint: use a function at the top of a module in place of a lambda, or worker_type='thread'"
            ) from error
        self._context = _context()
        self._results: dict[int, Result] = {}
        #: what the workers were doing that have died over a task
        self._deaths: dict[int, list[Moment | None]] = {}
        self._timeout_s = timeout_s
        self._workers: list[_Worker] = []
        # Before the first process: an interrupt while they are made must leave none of them running.
        self._stop = weakref.finalize(self, _stop_processes, self._workers, os.getpid())
        for _ in range(n_workers):
            self._workers.append(_Worker(self._context, self._payload))

    def submit(self, number: int, task: Task) -> None:
        self._deaths[number] = []
        worker = min(self._workers, key=lambda worker: len(worker.tasks))
        worker.tasks[number] = task
        with suppress(OSError):  # it has died; `_replace` sends the task to the next one
            worker.send(number, task)

    def wait(self, number: int) -> Result:
        while number not in self._results:
            waiting: list[Any] = [worker.connection for worker in self._workers]
            waiting += [worker.process.sentinel for worker in self._workers]
            ready = set(connection.wait(waiting, None if self._timeout_s is None else _tick(self._timeout_s)))
            for position, worker in enumerate(self._workers):
                if worker.connection in ready or worker.process.sentinel in ready:
                    self._receive_from(position, worker)
            if self._timeout_s is not None:
                self._replace_hanging(self._timeout_s)
        del self._deaths[number]
        return self._results.pop(number)

    def forget(self) -> None:
        self._results.clear()
        self._deaths.clear()
        for worker in self._workers:
            worker.given_up.update(worker.tasks)

    def close(self) -> None:
        self._stop()

    def _receive_from(self, position: int, worker: "_Worker") -> None:
        try:
            while worker.connection.poll():
                number, result = worker.receive()
                if number in self._deaths:
                    self._results[number] = result
        except (EOFError, OSError, RuntimeError, pickle.UnpicklingError):
            self._replace(position, worker)
            return
        if not worker.process.is_alive():  # and a process that it has started keeps the connection open
            self._replace(position, worker)

    def _replace_hanging(self, timeout_s: float) -> None:
        """Give up tasks whose samples take too long, with the processes that read them."""
        for position, worker in enumerate(self._workers):
            moment = worker.watch.overdue(timeout_s)
            if moment is not None:
                number = next(iter(worker.tasks), None)
                if number in self._deaths:
                    self._results[number] = hanging(moment, timeout_s)
                self._replace(position, worker)

    def _replace(self, position: int, dead: "_Worker") -> None:
        """Start another process in place of a dead one, with its tasks; the first one may be what killed it."""
        dead.stop()
        tasks = [(number, task) for number, task in dead.tasks.items() if number in self._deaths]
        if tasks:
            self._blame(tasks[0][0], dead)
            tasks = [(number, task) for number, task in tasks if number not in self._results]
        fresh = self._workers[position] = _Worker(self._context, self._payload)
        for number, task in tasks:
            fresh.tasks[number] = task
            with suppress(OSError):
                fresh.send(number, task)

    def _blame(self, number: int, dead: "_Worker") -> None:
        self._deaths[number].append(dead.watch.moment())
        if number not in self._results and len(self._deaths[number]) >= ATTEMPTS:
            self._results[number] = deadly(self._deaths[number], dead.process.exitcode, _ADVICE)


class _Worker:
    """A process of the pool, with the tasks that it was given and has not finished."""

    def __init__(self, context: Any, payload: bytes) -> None:
        self.tasks: dict[int, Task] = {}
        self.given_up: set[int] = set()
        self._sent: list[int] = []
        self.connection, other = context.Pipe()
        cells = context.RawArray("d", N_CELLS)
        self.watch = SampleWatch(cells)
        self.process: BaseProcess = context.Process(
            target=_serve_process, args=(other, payload, os.getpid(), cells), name="nn_core.data", daemon=True
        )
        try:
            self.process.start()
        finally:
            other.close()  # so that the connection ends with the process

    def send(self, number: int, task: Task) -> None:
        """Send a task, without the marks that the process has."""
        parts = []
        for part in task.parts:
            parts.append(part._replace(mark=None) if part.key in self._sent else part)
            if part.key not in self._sent:
                self._sent = [*self._sent[1 - TaskReader.N_MARKS :], part.key]
        self.connection.send((number, task._replace(parts=tuple(parts))))

    def receive(self) -> tuple[int, Result]:
        """Return the next result."""
        number, result, layout = self.connection.recv()
        if layout is not None:
            result = tuple(shared_memory.receive(self.connection, layout))
        if isinstance(result, _Failure):
            result = result.as_exception()
        del self.tasks[number]
        return number, result

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.kill()
        self.join()

    def kill(self) -> None:
        """End the process without waiting for its end."""
        self.connection.close()
        if self.process.pid is not None:
            self.process.kill()

    def join(self) -> None:
        """Wait for the end of the process."""
        if self.process.pid is not None:
            self.process.join()


def _stop_processes(workers: list[_Worker], owner: int) -> None:
    if os.getpid() == owner:  # a forked child is not the parent of these processes
        for worker in workers:
            worker.kill()
        for worker in workers:  # after all kills, so that an interrupt while one is awaited leaves none running
            worker.join()
        workers.clear()


class _Failure:
    """An exception on its way to another process."""

    def __init__(self, error: BaseException) -> None:
        self._wrapper = type(error) if isinstance(error, (SampleError, BatchError)) else None
        self._place: tuple[int, int] = getattr(error, "place", (0, 0))
        cause = error if self._wrapper is None else error.__cause__
        assert cause is not None
        self._trace = "".join(traceback.format_exception(cause))[-10000:]
        self._pickled = _pickled(cause)

    def as_exception(self) -> BaseException:
        """Return the exception, with the traceback of the process as a note."""
        error: BaseException = pickle.loads(self._pickled)
        attach_note(error, f"nn_core: in a worker process:\n{self._trace}")
        if self._wrapper is None:
            return error
        failure = self._wrapper(*self._place)
        failure.__cause__ = error
        return failure


def _pickled(error: BaseException) -> bytes:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)  # exceptions with arguments of their own are often made in another way than they pickle
    except Exception:
        replacement = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", ()):
            attach_note(replacement, note)
        pickled = pickle.dumps(replacement)
    return pickled


def _serve_process(connection: Connection, payload: bytes, parent: int, cells: Any) -> None:
    """Read tasks until the other end is closed, by the parent or by its death."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the whole group; the parent decides what it means
    source, collation = pickle.loads(payload)
    reader = TaskReader(source, collation, SampleWatch(cells))
    with suppress(EOFError, OSError):
        while True:
            number, task = connection.recv()
            _answer(connection, parent, number, task, reader)


def _answer(connection: Connection, parent: int, number: int, task: Task, reader: TaskReader) -> None:
    memory = SharedArrays()
    result: Batch | _Failure
    try:
        seed_global_generators(task)
        result = reader.read(task, memory.allocate)
    except Exception as error:
        memory.close()
        memory, result = SharedArrays(), _Failure(error)
    if memory.layout is None:
        connection.send((number, result, None))
        return
    connection.send((number, None, memory.layout))
    memory.send(connection, parent)
    memory.close()


def _context() -> Any:
    """Return the way to start processes: never a plain fork, which copies the locks that other threads hold."""
    if shadow := shadowed_module():
        raise ArgumentError(
            "DataIterator: the current directory must have no modules called like those of Python, which worker processes "
            f"would import, got {quoted(shadow, 200)}\n"
            "  hint: start Python with -P, or use another directory or worker_type='thread'"
        )
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    if multiprocessing.get_start_method(allow_none=True) != "forkserver":  # else the program may have chosen what to load
        context.set_forkserver_preload(["__main__", __name__])
    return context
