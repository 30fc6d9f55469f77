"""CUDA graphs: neighbouring steps of a plan are recorded once and replayed as one launch.

A step that says ``capturable`` can be recorded: it allocates nothing, waits for nothing, and works on the same memory each
time. Array code of CuPy is tried: CuPy refuses what cannot be recorded, and such a step runs apart from then on. What a
step needs from the host before each run are its ``words``, which are brought to the device before a replay too.
"""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from nn_core.ext import Step
from nn_ext_cuda.codegen.words import Letter, Words
from nn_ext_cuda.device.runtime import cupy
from nn_ext_cuda.gemm import blas
from nn_ext_cuda.launch import deferred
from nn_ext_cuda.launch.capture_report import Apart as ApartRow
from nn_ext_cuda.launch.capture_report import note_section
from nn_ext_cuda.launch.graphs import CaptureError, record
from nn_ext_cuda.launch.streams import follow
from nn_ext_cuda.memory.derived_weights import present_moment, unfolded

_LOGGER: Final = logging.getLogger("nn_core.cuda")
#: Choices of steps to leave out that a section records; with another choice all of its steps run.
MAX_VARIANTS: Final = 4
_enabled = True
_annotated = False


def use_graphs(enabled: bool = True) -> None:
    """Record plans as CUDA graphs, or run them launch by launch; plans that are recorded already stay as they are."""
    global _enabled  # noqa: PLW0603 -- one setting of the process
    _enabled = bool(enabled)


def is_enabled() -> bool:
    """Return whether plans are recorded."""
    return _enabled


def annotate_ranges(enabled: bool = True) -> None:
    """Mark functions and recorded graphs as NVTX ranges, which profilers such as Nsight Systems show; off at the start.

    A range is where the host launches. With `use_graphs(False)` each function has one of its own.
    """
    global _annotated  # noqa: PLW0603 -- one setting of the process
    _annotated = bool(enabled)


class Parts:
    """The parts of a pass, for reports.

    Attributes:
        parts: Graphs, steps that run apart from them, and numbers of what is bound in each run, in order; None as long as
            nothing was recorded.
    """

    __slots__ = ("__weakref__", "parts")

    def __init__(self, parts: "Sequence[Recorded | Apart | int] | None" = None) -> None:
        self.parts = parts
        note_section(self)

    def graph_sizes(self) -> list[int]:
        """Numbers of steps of the graphs."""
        return [len(part) for part in self.parts or () if isinstance(part, Recorded)]

    def apart(self) -> list[ApartRow]:
        """Return the steps that run apart."""
        return [part.row for part in self.parts or () if isinstance(part, Apart)]


class Section(Parts):
    """Neighbouring steps of a plan: run one by one the first time, recorded the second time, replayed from then on.

    Steps whose work is done already, such as laying out weights that have not changed, are left out of a run. Which ones
    these are is the same in all runs of a training, and in all of inference: each such variant is recorded by itself.

    Steps share scratch memory with others that were bound on the same stream. So a run on another stream waits for that one,
    and that one for the run. Its parts are those of the last run.
    """

    __slots__ = ("_has_run", "_keepers", "_steps", "_stream", "_variants")

    def __init__(self, steps: Sequence[Step]) -> None:
        pairs = list(unfolded(steps))
        self._steps = tuple(step for step, _ in pairs)
        self._keepers = [(number, keeper) for number, (_, keeper) in enumerate(pairs) if keeper is not None]
        self._has_run = False
        self._stream = cupy.cuda.get_current_stream()
        self._variants: dict[frozenset[int], list[Recorded | Apart]] = {}
        super().__init__()

    def __call__(self) -> None:
        stream = cupy.cuda.get_current_stream()
        if stream.ptr == self._stream.ptr:
            self._run()
            return
        deferred.flush()
        follow(stream, self._stream)
        try:
            self._run()
            deferred.flush()
        finally:
            follow(self._stream, stream)

    def _run(self) -> None:
        moment = present_moment() if self._keepers else None
        done = frozenset([number for number, keeper in self._keepers if keeper.is_done(moment)])
        parts = self._recorded_without(done)
        if parts is None:
            self._has_run = True
            deferred.flush()
            for number, step in enumerate(self._steps):
                if number not in done:
                    _run(step)
        else:
            self.parts = parts
            for part in parts:
                _run(part)
        for number, keeper in self._keepers:
            if number not in done:
                keeper.note()

    def _recorded_without(self, done: frozenset[int]) -> "list[Recorded | Apart] | None":
        """Return the parts without the steps that are done; None as long as they are not to be recorded."""
        if done not in self._variants and len(self._variants) >= MAX_VARIANTS:
            done = frozenset()  # what is done is done again
        if done not in self._variants and self._has_run and _enabled:
            deferred.flush()  # nothing but these steps may be launched while they are recorded
            self._variants[done] = parted([step for number, step in enumerate(self._steps) if number not in done])
        return self._variants.get(done)


def _run(part: Any) -> None:
    if not _annotated:
        part()
        return
    cupy.cuda.nvtx.RangePush(str(getattr(part, "name", type(part).__name__)))
    try:
        part()
    finally:
        cupy.cuda.nvtx.RangePop()


def parted(steps: Sequence[Step], *, may_wait: bool = True) -> "list[Recorded | Apart]":
    """Record steps; those that cannot be recorded stay apart, and divide the others into several graphs."""
    parts: list[Recorded | Apart] = []
    group: list[Any] = []
    for step in steps:
        reason = why_apart(step)
        if reason is None:
            group.append(step)
        else:
            parts += [*_recorded(group, may_wait), Apart(step, reason)]
            group = []
    return parts + _recorded(group, may_wait)


def why_apart(step: Any) -> str | None:
    """Why a step cannot be recorded, as far as can be told before it is tried; None: it may be."""
    says = getattr(step, "capturable", None)
    if says is not None:
        return None if says else getattr(step, "why_apart", None) or "it does not launch the same each time"
    if not isinstance(step, functools.partial):
        return "it does not say that it can be recorded"
    if any(isinstance(argument, np.ndarray) for argument in step.args if not isinstance(argument, cupy.ndarray)):
        return "it reads an array of the host"
    return None


def _recorded(group: Sequence[Any], may_wait: bool) -> "list[Recorded | Apart]":
    """Return a graph of all steps; where one of them fails, that one apart and graphs of those before and after it."""
    parts: list[Recorded | Apart] = []
    rest = list(group)
    while rest:
        try:
            return [*parts, Recorded(rest, may_wait=may_wait)]
        except CaptureError as error:
            position = error.position
            if position is None or position >= len(rest):
                return [*parts, *[Apart(step, str(error)) for step in rest]]
            parts += _recorded(rest[:position], may_wait)
            parts.append(Apart(rest[position], str(error)))
            rest = rest[position + 1 :]
    return parts


class Recorded:
    """Steps as one graph.

    Args:
        steps: The steps.
        may_wait: Whether the launch may be held back: nobody else gets the memory meanwhile.

    Raises:
        CaptureError: when one of them cannot be recorded.
    """

    __slots__ = ("_befores", "_graph", "_runs", "_steps", "may_wait", "together", "uses_blas", "words")

    def __init__(self, steps: Sequence[Any], *, may_wait: bool = True) -> None:
        self.may_wait = may_wait
        self._steps = tuple(steps)
        self._befores = [step.before for step in steps if getattr(step, "before", None) is not None]
        words: list[Words] = [one for step in steps for one in getattr(step, "words", ())]
        self.words = Letter(words) if words else None
        self.uses_blas = any(getattr(step, "uses_blas", _may_multiply(step)) for step in steps)
        self.together: dict[tuple[int, ...], Any] = {}
        # what works beside the others must be over when the graph is; steps of one kind share a stream
        joins = {type(step): step.join for step in steps if hasattr(step, "join")}
        self._runs = [*[_launching(step) for step in steps], *joins.values()]
        self._graph = record(self._runs, uses_blas=self.uses_blas)

    @property
    def name(self) -> str:
        """Name that profilers show."""
        return f"graph of {len(self)}"

    def __len__(self) -> int:
        return len(self._steps)

    def __call__(self) -> None:
        for before in self._befores:
            before()
        deferred.launch(self)

    def run(self) -> None:
        """Launch step by step; for recording them together with others."""
        for run in self._runs:
            run()

    def launch(self) -> None:
        """Launch the graph, with the words that were taken."""
        if self.words is not None:
            self.words.send()
        self._graph.launch()


class Apart:
    """A step that cannot be recorded."""

    __slots__ = ("_step", "row")

    def __init__(self, step: Step, reason: str) -> None:
        self._step = step
        self.row = ApartRow(str(getattr(step, "name", type(step).__name__)), reason)
        _LOGGER.info("%s runs apart from CUDA graphs: %s", self.row.function, reason)

    @property
    def name(self) -> str:
        """Name that profilers show."""
        return self.row.function

    def __call__(self) -> None:
        deferred.flush()
        self._step()


def _may_multiply(step: Any) -> bool:
    """Return whether a step is array code, in which there may be products: it has run before it is recorded."""
    return isinstance(step, functools.partial) and blas.is_in_use()


def _launching(step: Any) -> Callable[[], object]:
    """Return the part of a step that only launches, without what has to happen on the host before it."""
    run: Callable[[], object] = getattr(step, "run", step)
    return run
