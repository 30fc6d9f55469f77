"""The lanes: a few steps of each have no finding, planted faults are found, and the page has the figures of the report."""

import itertools
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.plan import Plan
from nn_core.operators.spec.builtin import SPECS
from nn_core.testing.samples.registry import samples_of
from tools.lanes import avx512, batches, growth, pairs, perturbed, processes, reliability, signals, specials, written_leaves


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


@pytest.mark.parametrize("name", ["affine 512 to 384", "convolutional network", "mean over the middle", "attention"])
def test_a_sample_has_the_same_bits_in_every_batch(name: str) -> None:
    found = dict(batches.check(iter([batches.LAYERS[name](name)]), (1, 2, 9, 32), "float32"))
    assert found == {name: []}


def test_a_sample_that_depends_on_its_batch_is_found_out() -> None:
    """A sum of 33 lines is another than one of fewer, and a mean over the batch is no sample's own."""
    rows = np.random.default_rng(1).normal(size=(batches.WHOLE, 3)).astype(np.float32)

    def scaled(x: nn.Variable) -> nn.Variable:
        return x * (1 + 1e-3 * x.shape[0])

    found = dict(batches.check(iter([batches.Batched("scaled", scaled, [rows], frozenset({0}))]), (1, 33), "float32"))
    assert found == {"scaled": ["1 on 1", "1 on 2"]}
    centred = batches.Batched("mean", lambda x: x - F.mean(x, axis=0, keepdims=True), [rows], frozenset({0}))
    assert batches.samples_meet(centred)


def test_functions_whose_samples_do_not_meet_take_part() -> None:
    names = {call.name.split()[0] for call in batches.samples(150, 0)}
    assert len(names) > 50


@pytest.mark.parametrize(("name", "takes_part"), [("Softmax", True), ("Affine", True), ("ConfusionMatrix", False)])
def test_what_takes_part_is_found_out(name: str, takes_part: bool) -> None:
    (spec,) = [spec for spec in SPECS if spec.name == name]
    assert any(batches.rows_of(spec, sample) for sample in samples_of(spec)) is takes_part


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


NEEDS_PROBE = pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="compiles a signal handler")


@NEEDS_PROBE
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alarm", "Ctrl-C"])
def test_signals_in_native_kernels(kind: str) -> None:
    pytest.importorskip("nn_ext_cpu")
    figures, status = signals.run(kind, 2, 30, 3, 1)
    assert list(signals.findings(kind, 2, figures, status)) == []
    assert figures["delivered"] >= 30
    assert figures["works"] == 3 + len(signals.large())


def test_numbers_of_another_processor_that_differ_are_findings() -> None:
    expected = [np.array([1.0, -4.0, np.nan]), np.zeros(2)]
    assert avx512.error_of([expected[0] + [1e-5, 0, 0], expected[1]], expected) == pytest.approx(2.5e-6)
    assert avx512.error_of([expected[0], np.ones(2)], expected) == 1
    for other in ([1, -4, 0], [np.nan, -4, np.nan], [1, -4]):
        assert avx512.error_of([np.array(other, float), expected[1]], expected) == np.inf


@pytest.mark.parametrize(
    ("text", "status"), [("AVX512 END 0", 0), ("--- affine: other bits\nAVX512 END 1", 1), ("", 1), ("AVX512 END 139", 1)]
)
def test_what_an_emulated_computer_wrote_is_recorded(text: str, status: int, tmp_path: Path) -> None:
    serial, report = tmp_path / "serial.txt", tmp_path / "report.json"
    serial.write_text(f"isa avx512\nFIGURES signals 900\n{text}\n")
    result = CliRunner().invoke(avx512.main, ["read", str(serial), "--report", str(report)])
    assert result.exit_code == status, result.output
    (found,) = json.loads(report.read_text())
    assert (found["part"], found["count"], found["findings"]) == ("signals", 900, text.startswith("---"))


def test_a_child_that_gets_signals_computes_what_was_asked_for() -> None:
    command = signals.child_command("alarm", 2, 30, n_samples=3, seed=5, period_us=700, folder="probe")
    assert command[:3] == [sys.executable, "-m", "tools.lanes.signals"]
    asked = {
        "kinds": ("alarm",),
        "count": 30,
        "n_samples": 3,
        "seed": 5,
        "period_us": 700,
        "child": ("2", "probe"),
        "report": None,
    }
    assert signals.main.make_context("signals", command[3:]).params == asked


def test_what_signals_may_do_is_a_finding() -> None:
    figures = {"delivered": 9, "astray": 2, "different": ["affine"], "works": 3}
    assert [text.partition(": ")[2] for text in signals.findings("alarm", 1, figures, -11)] == [
        "the process ended with status -11",
        "2 signals found the stack pointer outside of its stack",
        "affine gave other bits",
    ]


#: A program that runs for a while on a stack of its own, in memory of the heap, as generated code of oneDNN once did.
ON_THE_HEAP = """
import sys, tempfile
from pathlib import Path
from tools.lanes import signals

C_CODE = r'''
#include <stdlib.h>
#include <ucontext.h>
static ucontext_t caller, other;
static void spin(void) { for (volatile long i = 0; i < 20000000; ++i); }
void spin_on_the_heap(void) {
  const size_t bytes = 1 << 20;
  getcontext(&other);
  other.uc_stack.ss_sp = malloc(bytes);
  other.uc_stack.ss_size = bytes;
  other.uc_link = &caller;
  makecontext(&other, spin, 0);
  swapcontext(&caller, &other);
}
'''
import ctypes, subprocess
with tempfile.TemporaryDirectory() as folder:
    source, library = Path(folder, "spin.c"), Path(folder, "spin.so")
    source.write_text(C_CODE)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    probe = signals.Probe("alarm", Path(folder))
    probe.start()
    while probe.delivered < 10:
        pass
    on_the_stack = probe.astray
    spin = ctypes.CDLL(str(library)).spin_on_the_heap
    while probe.delivered < 30:
        spin()
    probe.stop()
    print(on_the_stack, probe.astray > 0)
"""


@NEEDS_PROBE
def test_a_stack_pointer_on_the_heap_is_found_out() -> None:
    found = subprocess.run([sys.executable, "-c", ON_THE_HEAP], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["0", "True"]


def findings(planted: specials.Planted, *backends: str) -> list[str]:
    return [text for _, text in specials.check([planted], lambda: specials.ways_of(backends))]


def planted(name: str, special: str, position: int, *, chained: bool = False) -> specials.Planted:
    spec = next(spec for spec in SPECS if spec.name == name)
    return specials.Planted(spec, samples_of(spec)[0], "float32", special, position, 1, chained)


@pytest.mark.parametrize("special", list(specials.SPECIALS))
def test_special_numbers_give_the_same_pattern_in_all_ways(special: str) -> None:
    for name, chained in (("ReLU", False), ("Maximum2", False), ("Convolution", True)):
        assert findings(planted(name, special, 0, chained=chained), "cpu", "reference") == []


def test_nan_that_is_lost_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    infer = specials.RUNS["infer"]
    monkeypatch.setitem(specials.RUNS, "infer", lambda *given: {k: np.nan_to_num(v) for k, v in infer(*given).items()})
    (text,) = findings(planted("ReLU", "nan", 0), "cpu")
    assert "output 0: 0.0 in place of nan" in text
    assert "cpu infer" in text


def test_a_lost_sign_of_zero_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    keep = specials.RUNS["keep"]
    monkeypatch.setitem(specials.RUNS, "dynamic", lambda *given: {k: v + 0.0 for k, v in keep(*given).items()})
    assert any("0.0 in place of -0.0" in text for text in findings(planted("Tanh", "-0.0", 0), "cpu"))
    assert findings(planted("Sum", "-0.0", 0), "cpu") == []


def test_a_number_that_the_next_graph_sees_alone_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specials.Graph, "plant", lambda self, planted: None)
    numbers = [planted("Sin", special, 0) for special in ("subnormal", "nan")]
    found = [text for _, text in specials.check(numbers, lambda: [specials.Way("cpu", "dynamic", True)])]
    assert any("nan in place of" in text for text in found)


def test_a_chain_has_floating_results_in_all_ways() -> None:
    chained = {one.spec.name for one in specials.all_planted(["float32"], np.random.default_rng(0)) if one.chained}
    assert "Sin" in chained
    assert "QuantizeInteger" not in chained  # a float and a zero point of integers, whose dtype the result has


def test_nan_may_reach_what_padding_alone_meets() -> None:
    standard = specials.Standard(planted("Convolution", "nan", 1), specials.Bench())
    assert not isinstance(standard.outcome, str)
    found = {name: array.copy() for name, array in standard.outcome.items()}
    found["output 0"][np.isfinite(found["output 0"])] = np.nan
    assert standard.differs(found) == ""
    found["output 0"][...] = 1.0
    assert "1.0 in place of nan" in standard.differs(found)


@pytest.mark.parametrize("name, text", [("Convolutoin", "must be a function such as Convolution"), ("Randint", "a floating")])
def test_specials_refuse_to_plant_nothing(name: str, text: str) -> None:
    found = CliRunner().invoke(specials.main, ["--function", name])
    assert found.exit_code == 2
    assert text in found.output


def test_the_shares_of_the_samples_are_all_samples() -> None:
    numbers = list(range(10))
    shares = [specials.share_of(f"{number}/4") for number in range(1, 5)]
    assert sorted(n for start, step in shares for n in numbers[start::step]) == numbers
    with pytest.raises(click.BadParameter, match="must be a part such as 2/8, got '5/4'"):
        specials.share_of("5/4")
