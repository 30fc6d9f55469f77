"""Tracing: whoever listens sees every function that runs, in graphs and at once, with times, shapes and backends.

Nobody pays while nobody listens: then one list is empty, which a pass and a call at once look at. While somebody listens,
functions of graphs run one by one, and dynamic graphs are not replayed.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from nn_core.engine.dispatch.known import table_kernel
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.registry import REGISTRY
from nn_core.engine.error_messages.refusal import fitted
from nn_core.engine.runtime.locks import fork_safe
from nn_core.errors import ArgumentError
from nn_core.operators.spec.model import ArgValue, FunctionSpec
from nn_core.settings import without
from nn_core.typing import Array, Backend, Kernel, Runner, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCall:
    """One run of one function.

    Attributes:
        function: Its name in ``nn_core.functions``.
        operator: Its name in files.
        plugin: The plugin that brought the function or its kernel; empty for those of nn_core.
        backend: The backend on whose arrays it ran.
        part: "forward", or "backward" for its gradient.
        arrays: Shape and dtype of each array that the kernel got, inputs before outputs; None for one that is not given.
        settings: Its arguments.
        start_ns: When it began, by ``time.perf_counter_ns()``.
        end_ns: When it returned; a device may still compute.
        thread: Number of the thread, as of ``threading.get_ident()``.
        error: Name of the class of the exception with which it ended, empty where there was none.

    Example:
        >>> from nn_core.ext import trace_calls
        >>> x = nn.Variable.from_numpy_array(np.ones((2, 3)))
        >>> with trace_calls(lambda call: print(call.operator, call.backend, call.arrays)):
        ...     F.tanh(x).forward()
        Tanh reference (((2, 3), 'float32'), ((2, 3), 'float32'))
    """

    function: str
    operator: str
    plugin: str
    backend: str
    part: str
    arrays: tuple[tuple[Shape, str] | None, ...]
    settings: Mapping[str, ArgValue]
    start_ns: int
    end_ns: int
    thread: int
    error: str = ""


class _Node(Protocol):
    @property
    def spec(self) -> FunctionSpec: ...

    @property
    def args(self) -> Mapping[str, ArgValue]: ...


#: Those who listen now, in all threads.
LISTENERS: Final[list[Callable[[TracedCall], object]]] = []
_CHANGING: Final = fork_safe(threading.Lock())
#: Whether this thread is in a function of which somebody will be told.
_RUNNING: Final = threading.local()


@fitted
@contextmanager
def trace_calls(listener: Callable[[TracedCall], object] | str) -> Iterator[Any]:
    """Let somebody see every function that runs inside a ``with`` block, in all threads.

    Functions that only show an input in another shape do not run. Results are those without tracing up to rounding: neighbours
    are not fused.

    Args:
        listener: Called with a `TracedCall` after each run, in the thread of the run; or the name of a tracer that a plugin
            offers, such an object or a class of them.

    Returns:
        The listener.

    Raises:
        ArgumentError: when it cannot be called, or no plugin offers it.

    Example:
        >>> from nn_core.ext import trace_calls
        >>> calls = []
        >>> x = nn.Variable.from_numpy_array(np.ones((2, 3)))
        >>> with trace_calls(calls.append):
        ...     F.tanh(x).forward()
        >>> [(call.function, call.part, call.arrays[0][0]) for call in calls]
        [('tanh', 'forward', (2, 3))]
    """
    heard = _offered(listener) if isinstance(listener, str) else listener
    if not callable(heard):
        raise ArgumentError(f"trace_calls: listener must be a function of a call or the name of a tracer, got {listener!r}")
    with _CHANGING:
        LISTENERS.append(heard)
    try:
        with without("replay", "fuse"):
            yield heard
    finally:
        with _CHANGING:
            LISTENERS.remove(heard)


def _offered(name: str) -> Callable[[TracedCall], object]:
    offer = PLUGINS.required_offer("tracers", name)
    made = PLUGINS.offers.load(offer)
    with offer.called():
        made = made() if isinstance(made, type) else made

    def tell(call: TracedCall) -> None:
        with offer.called():
            made(call)

    tell.tracer = made  # type: ignore[attr-defined]  # for who wants its results
    return tell


def traced(
    runner: Runner,
    arrays: Sequence[Array | None],
    spec: FunctionSpec,
    settings: Mapping[str, ArgValue],
    backend: Backend | None,
    kernel: Kernel | None = None,
    part: str = "forward",
) -> Any:
    """Run a function, and tell those who listen; arguments as of `TracedCall`."""
    if getattr(_RUNNING, "is_inside", False):  # a function that a gradient rule calls belongs to the gradient
        return runner(*arrays)
    start, failure = time.perf_counter_ns(), ""
    _RUNNING.is_inside = True
    try:
        return runner(*arrays)
    except BaseException as error:
        failure = type(error).__name__
        raise
    finally:
        _RUNNING.is_inside = False
        end = time.perf_counter_ns()
        added = REGISTRY.added(spec.name)
        owner = REGISTRY.owner_of_kernel(table_kernel(kernel)) or getattr(runner, "owner", "")
        call = TracedCall(
            function=added.key if added else spec.api,
            operator=spec.name,
            plugin=added.plugin if added else owner,
            backend="" if backend is None else backend.name,
            part=part,
            arrays=tuple(map(_described, arrays)),
            settings=settings,
            start_ns=start,
            end_ns=end,
            thread=threading.get_ident(),
            error=failure,
        )
        for listener in LISTENERS:
            listener(call)


def run_entry(runner: Runner, arrays: Sequence[Array | None], node: _Node | None, backend: Backend | None, part: str) -> None:
    """Run a piece of a pass, and tell those who listen; what is no function, such as a copy, is not told of."""
    if LISTENERS and node is not None:
        traced(runner, arrays, node.spec, node.args, backend, part=part)
    else:
        runner(*arrays)


def _described(array: Any) -> tuple[Shape, str] | None:
    shape = getattr(array, "shape", None)
    return None if shape is None else (tuple(shape), str(getattr(array, "dtype", "")))
