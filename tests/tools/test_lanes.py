"""The lanes: a few steps of each have no finding, planted faults are found, and the page has the figures of the report."""

import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
from nn_core.graph.plan import Plan
from tools import growth, pairs, perturbed, processes, reliability, written_leaves


def test_the_page_has_the_figures_of_the_report() -> None:
    text = reliability.PAGE.read_text()
    assert reliability.page(text, json.loads(reliability.REPORT.read_text())) == text


def test_a_record_takes_the_place_of_the_former_one(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    for findings in (3, 0):
        for part in ("b", "a"):
            reliability.record(report, "lane", part, count=1000, findings=findings, seed=1, note="quick")
    records = json.loads(report.read_text())
    assert [(found["part"], found["findings"]) for found in records] == [("a", 0), ("b", 0)]
    assert reliability.table(records).splitlines()[2] == "| lane | a | 1,000 | 1 | 0 | quick |"


def test_a_walk_has_each_ordered_pair_once() -> None:
    numbers = [*pairs.walk(7), 0]
    steps = Counter(itertools.pairwise(numbers))
    assert len(steps) == 49
    assert set(steps.values()) == {1}


@pytest.fixture
def few_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    all_ways = pairs.ways
    monkeypatch.setattr(pairs, "ways", lambda rng: all_ways(rng)[:3])


@pytest.mark.usefixtures("few_ways")
def test_ways_one_after_another() -> None:
    (program,) = pairs.programs(3, 1)
    assert list(pairs.check(*program, "reference")) == []


@pytest.mark.usefixtures("few_ways")
def test_a_plan_that_is_stale_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    original = pairs.Graph.step

    def stale(graph: pairs.Graph, way: pairs.Way) -> list[bytes]:
        return vars(graph).setdefault("first", [*original(graph, way), repr(way).encode()])

    monkeypatch.setattr(pairs.Graph, "step", stale)
    (program,) = pairs.programs(3, 1)
    assert list(pairs.check(*program, "reference"))


_READERS = ("x * 1", "identity")


@pytest.mark.parametrize("trained", [False, True])
def test_leaves_that_are_written_in_all_ways(trained: bool) -> None:
    lane = written_leaves.Lane(nn.Context(["reference"]), trained, joined=True)
    assert list(lane.check(_READERS, written_leaves.WRITES)) == []


def test_a_write_that_one_reader_does_not_see_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As plans once did: the number is filled in where the first reader looks, and copies for others stay as they were."""

    def read_leaves(plan: Plan) -> None:
        for synced, key in plan.leaves:
            if synced.pending_fill is not None:
                synced.copies[key][...] = synced.pending_fill
                synced.pending_fill = None
        original(plan)

    original = Plan.read_leaves
    monkeypatch.setattr(Plan, "read_leaves", read_leaves)
    lane = written_leaves.Lane(nn.Context(["reference"]), trained=False, joined=True)
    assert list(lane.check(_READERS, written_leaves.WRITES))


@pytest.mark.parametrize("lane", list(growth.LANES))
def test_what_never_comes_back_stays_within_the_limit(lane: str) -> None:
    assert list(growth.check(lane, 60, 1, {})) == []


def test_a_leak_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []
    monkeypatch.setitem(growth.LANES, "leak", lambda seed: lambda number: kept.append(np.ones(2**19)))
    assert any("the process grew by" in text for text in growth.check("leak", 80, 0, {}))


def test_memory_is_filled_before_it_is_written() -> None:
    for pattern in perturbed.PATTERNS:
        assert set(perturbed.filling(np.empty, pattern)((50,), np.float32).tobytes()) == {pattern}


@pytest.mark.slow
def test_samples_with_perturbed_memory() -> None:
    outcomes = dict(perturbed.check(30, 1))
    assert len(outcomes) == 30
    assert not any(outcomes.values())


def test_a_result_that_depends_on_memory_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([{"one": "a", "two": "b"}, {"two": "c", "one": "a"}])
    monkeypatch.setattr(perturbed, "_in_child", lambda *_: next(answers))
    assert dict(perturbed.check(2, 0)) == {"one": False, "two": True}


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_processes_compute() -> None:
    assert list(processes.check("fork", 2, 1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(processes.KINDS))
def test_processes_of_all_kinds_compute(kind: str) -> None:
    assert list(processes.check(kind, 5, 2)) == []


def test_a_worker_with_other_numbers_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(processes.KINDS, "wrong", lambda seeds: iter([processes.train(1000), b"odd", b""]))
    texts = list(processes.check("wrong", 3, 1))
    assert [text.rsplit(": ")[-1] for text in texts] == ["other losses than here", "no answer"]
