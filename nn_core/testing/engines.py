"""The admission test of engines: every collective, dtype and size, groups, time limits and sums in a fixed order.

A package that brings an engine called ``acme`` has one file of tests::

    from nn_core.testing.engines import *

and runs it on two or three processes by its launcher::

    mpiexec -n 3 python -m pytest -p nn_core.testing.pytest_plugin --engine=acme test_engines.py

Without ``--engine`` the tests run on threads. A module that makes its ranks itself defines ``run_ranks(program)``, which
calls ``program(engine)`` on every rank.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from nn_core.communicators import Communicator, Engine
from nn_core.communicators.group import Circle
from nn_core.communicators.packing import SUMS
from nn_core.communicators.reduction_tree import PartialSums, terms_of_rank, tree_all_reduce
from nn_core.communicators.threads import run_threads
from nn_core.context import Context
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.errors import CommunicationError
from nn_core.ext import find_extension
from nn_core.typing import Array

Program = Callable[[Engine], Any]
Run = Callable[[Program], Any]

DTYPES: Final = sorted(set(SUMS.values()))
SIZES: Final = (0, 1, 3, 10007)
_THREADS: Final = 3

__all__ = [
    "run",
    "test_all_gather",
    "test_all_reduce",
    "test_all_to_all",
    "test_barrier_waits_for_all",
    "test_broadcast_and_reduce",
    "test_communicators_work_on_it",
    "test_groups_work_side_by_side",
    "test_identity",
    "test_large_arrays",
    "test_late_ranks_are_named",
    "test_ranks_that_disagree_learn_it",
    "test_reduce_scatter",
    "test_sums_have_one_order",
]


@cache
def _engine(name: str) -> Engine:
    engine: Engine = find_extension("communicators", name)(Context())
    return engine


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Yield calls a program with the engine of each rank."""
    own = getattr(request.module, "run_ranks", None)
    name = request.config.getoption("--engine")
    if own is not None:
        yield own
    elif name:
        yield lambda program: program(_engine(name))
    else:
        yield lambda program: run_threads(_THREADS, program)


def _finish(handle: Any) -> None:
    if handle is not None:
        assert handle.wait(60)
        assert handle.done()


def _values(rank: int, size: int, dtype: str) -> Array:
    """Return the contribution of rank `rank`: whole numbers, whose sums are exact in every dtype."""
    return ((np.arange(size) + 5 * rank) % 17).astype(dtype)


def _all(engine: Engine, size: int, dtype: str) -> list[Array]:
    return [_values(rank, size, dtype) for rank in range(engine.size)]


def test_identity(run: Run) -> None:
    """Ranks are numbered, and know where they are."""

    def program(engine: Engine) -> None:
        assert 0 <= engine.rank < engine.size and 0 <= engine.local_rank <= engine.rank
        assert len(engine.hosts) == engine.size
        ranks = np.empty(engine.size, np.int64)
        _finish(engine.all_gather(np.array([engine.rank]), ranks))
        assert ranks.tolist() == list(range(engine.size))

    run(program)


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce(run: Run, dtype: str, size: int, op: str) -> None:
    """Sums and maxima reach all ranks."""

    def program(engine: Engine) -> None:
        array = _values(engine.rank, size, dtype)
        _finish(engine.all_reduce(array, op))
        reduction: Any = np.sum if op == "sum" else np.max
        np.testing.assert_array_equal(array, reduction(_all(engine, size, dtype), axis=0).astype(dtype), strict=True)

    run(program)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_broadcast_and_reduce(run: Run, dtype: str, size: int) -> None:
    """Each rank can be the source and the destination."""

    def program(engine: Engine) -> None:
        for rank in range(engine.size):
            array = _values(engine.rank, size, dtype)
            _finish(engine.broadcast(array, rank))
            np.testing.assert_array_equal(array, _values(rank, size, dtype), strict=True)
            array = _values(engine.rank, size, dtype)
            _finish(engine.reduce(array, rank, "sum"))
            mine = np.sum(_all(engine, size, dtype), axis=0).astype(dtype)
            expected = mine if engine.rank == rank else _values(engine.rank, size, dtype)
            np.testing.assert_array_equal(array, expected, strict=True)

    run(program)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_gather(run: Run, dtype: str, size: int) -> None:
    """All ranks get what each of them has."""

    def program(engine: Engine) -> None:
        send, receive = _values(engine.rank, size, dtype), np.empty(size * engine.size, dtype)
        _finish(engine.all_gather(send, receive))
        np.testing.assert_array_equal(receive, np.concatenate(_all(engine, size, dtype)), strict=True)

    run(program)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_reduce_scatter(run: Run, dtype: str, size: int) -> None:
    """Each rank gets its part of the sum."""

    def program(engine: Engine) -> None:
        send, receive = _values(engine.rank, size * engine.size, dtype), np.empty(size, dtype)
        _finish(engine.reduce_scatter(send, receive, "sum"))
        total = np.sum(_all(engine, size * engine.size, dtype), axis=0).astype(dtype)
        np.testing.assert_array_equal(receive, total[engine.rank * size : (engine.rank + 1) * size], strict=True)

    run(program)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_to_all(run: Run, dtype: str, size: int) -> None:
    """Each rank gets its part of what each of them has."""

    def program(engine: Engine) -> None:
        send, receive = _values(engine.rank, size * engine.size, dtype), np.empty(size * engine.size, dtype)
        _finish(engine.all_to_all(send, receive))
        mine = [each.reshape(engine.size, -1)[engine.rank] for each in _all(engine, size * engine.size, dtype)]
        np.testing.assert_array_equal(receive, np.concatenate(mine), strict=True)

    run(program)


@pytest.mark.slow
def test_large_arrays(run: Run) -> None:
    """Ten million elements are added up and exchanged."""
    size = 10**7

    def program(engine: Engine) -> None:
        total = _values(engine.rank, size, "float32")
        _finish(engine.all_reduce(total, "sum"))
        np.testing.assert_array_equal(total, np.sum(_all(engine, size, "float32"), axis=0))
        send = _values(engine.rank, size * engine.size, "float32")
        receive = np.empty_like(send)
        _finish(engine.all_to_all(send, receive))
        mine = [each.reshape(engine.size, -1)[engine.rank] for each in _all(engine, size * engine.size, "float32")]
        np.testing.assert_array_equal(receive, np.concatenate(mine))

    run(program)


def test_barrier_waits_for_all(run: Run) -> None:
    """No rank passes before the last one has come."""

    def program(engine: Engine) -> None:
        if engine.rank == 0:
            time.sleep(0.2)
        before = np.array([time.monotonic_ns()])
        _finish(engine.barrier())
        after = time.monotonic_ns()
        last = before.copy()
        _finish(engine.all_reduce(last, "max"))
        if len(set(engine.hosts)) == 1:  # clocks of several hosts cannot be compared
            assert before.item() <= last.item() <= after

    run(program)


def test_groups_work_side_by_side(run: Run) -> None:
    """Some ranks, in any order, are an engine too."""

    def program(engine: Engine) -> None:
        last = engine.size - 1
        groups: Sequence[list[int]] = [[0], list(range(engine.size))[::-1], [last], list(range(1, engine.size)) or [0]]
        for ranks in groups:
            part = engine.split(ranks)
            assert (part is not None) == (engine.rank in ranks)
            total = np.array([engine.rank])
            if part is not None:
                assert (part.size, part.rank) == (len(ranks), ranks.index(engine.rank))
                _finish(part.all_reduce(total, "sum"))
                assert total.item() == sum(ranks)
                again = part.split(list(range(part.size)))
                assert again is not None and again.rank == part.rank
            _finish(engine.barrier())

    run(program)


def test_late_ranks_are_named(run: Run) -> None:
    """A rank that does not come is found out within the time limit."""

    def program(engine: Engine) -> None:
        part = engine.split(list(range(engine.size)))
        assert part is not None
        circle = Circle("late", range(engine.size), part, 0.4)
        late = engine.size - 1
        if engine.size > 1 and engine.rank == late:
            _finish(engine.barrier())  # when the others have given up
            circle = Circle("late", range(engine.size), part, 60)
            circle.agree("all_reduce", "x")
        elif engine.size > 1:
            named = f"nothing from .*{late} on " if hasattr(part, "post") else "no answer from at least one of "
            message = f"all_reduce: every rank must take part in collective 1 of group 'late' within 0.4 s, got {named}"
            with pytest.raises(CommunicationError, match=message):
                circle.agree("all_reduce", "x")
            with pytest.raises(CommunicationError, match="barrier: the group 'late' must be whole, got a call after"):
                circle.agree("barrier")
            _finish(engine.barrier())
        _finish(engine.barrier())

    run(program)


def test_ranks_that_disagree_learn_it(run: Run) -> None:
    """Ranks that make different calls are told so."""

    def program(engine: Engine) -> None:
        part = engine.split(list(range(engine.size)))
        assert part is not None
        circle = Circle("all", range(engine.size), part, 30)
        call = "barrier" if engine.rank == 0 else "bcast"
        if engine.size > 1:
            with pytest.raises(CommunicationError, match="must make the same call, got\n") as caught:
                circle.agree(call, "x")
            assert "rank 0: collective 1: barrier(x)\n  rank 1: collective 1: bcast(x)" in str(caught.value)
        _finish(engine.barrier())

    run(program)


@pytest.mark.parametrize("wire", [None, "float16"])
@pytest.mark.parametrize("size", [0, 1, 10007, pytest.param(10**6 + 3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("terms", [1, 3, 4])
def test_sums_have_one_order(run: Run, terms: int, size: int, wire: str | None) -> None:
    """The bits are those of one rank that adds up all terms."""

    def term(index: int) -> Array:
        return np.random.default_rng(index).standard_normal(size).astype(np.float32)

    def program(engine: Engine) -> None:
        n_terms = terms * engine.size
        own, whole = PartialSums(), PartialSums()
        for index in terms_of_rank(engine.rank, engine.size, n_terms):
            own.add(index, term(index))
        for index in range(n_terms):
            whole.add(index, term(index))
        total = tree_all_reduce(engine, [part.total for part in own.parts], n_terms, _finish, wire)
        alone = run_threads(1, lambda one: tree_all_reduce(one, [p.total for p in whole.parts], n_terms, _finish))[0]
        if wire is None or engine.size == 1:
            np.testing.assert_array_equal(total, alone, strict=True)
        else:
            np.testing.assert_allclose(total, alone, 1e-2, 1e-2)
        copies = np.empty(total.nbytes * engine.size, np.uint8)
        _finish(engine.all_gather(total.view(np.uint8), copies))
        assert (copies.reshape(engine.size, -1) == copies.reshape(engine.size, -1)[0]).all()

    run(program)


def test_communicators_work_on_it(run: Run) -> None:
    """The engine carries a communicator."""

    def program(engine: Engine) -> None:
        comm = Communicator(engine=engine, timeout_s=60)
        comm.init()
        arrays = [NdArray.from_numpy_array(np.full(3, comm.rank + 1, dtype)) for dtype in ("float32", "float16", "int32")]
        comm.all_reduce(arrays)
        total = comm.size * (comm.size + 1) // 2
        assert [array.data.tolist() for array in arrays] == [[total] * 3] * 3
        comm.bcast(arrays, src=comm.size - 1)
        comm.barrier()

    run(program)
