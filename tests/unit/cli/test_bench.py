"""nn-core bench: the table, peers that are installed, missing or broken; speeds are not tested."""

import importlib.util

import pytest
from click.testing import CliRunner

from nn_core.__main__ import main
from nn_core.cli.bench import measure
from nn_core.cli.bench.latency import NETWORKS, percentile
from nn_core.cli.bench.measure import Figures
from nn_core.cli.bench.table import report
from nn_core.cli.bench.workloads import FRAMEWORKS, OURS, TITLES, Framework, Sizes

FAKE = """
import sys, time
__version__ = "4.5"
print("a framework that talks")

def broken():
    raise ValueError("cannot train\\nand more")

def programs(package, sizes):
    assert package == "fake_peer" and sizes.threads == 1 and sizes.matmul == 32
    return {"matmul": lambda: lambda: time.sleep(0.02), "training": broken, "inference": lambda: lambda: sys.exit("gone")}
"""


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs the command with a peer that the test installs, and no other."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    for name in set(FRAMEWORKS) - {OURS}:
        monkeypatch.delitem(FRAMEWORKS, name)

    def run(*words, peer=None):
        if peer is not None:
            (tmp_path / "fake_peer.py").write_text(peer, encoding="utf-8")
            importlib.invalidate_caches()
        return CliRunner().invoke(main, ["bench", "--quick", "--threads", "1", *words])

    return run


def test_without_peers(run):
    result = run()
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "; 1 thread; Python" in lines[0]
    assert lines[3].split() == ["milliseconds", "of", "a", "step", "nn_core"]
    assert len(lines[4 : 4 + len(TITLES)]) == len(TITLES)
    for line in lines[4 : 4 + len(TITLES)]:
        assert float(line.split()[-1]) > 0
    assert lines[-2].startswith("no peer was measured")
    assert lines[-1].startswith("--quick: sizes are tiny")


def test_a_peer_that_fails_is_reported_and_the_rest_measured(run, monkeypatch):
    monkeypatch.setitem(FRAMEWORKS, "fake_peer", Framework(("fake_peer",), "fake_peer"))
    result = run(peer=FAKE)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[1].endswith(", fake_peer 4.5")
    rows = {line.split(",")[0]: line.split() for line in lines[4 : 4 + len(TITLES)]}
    assert float(rows["matrix product"][-3]) >= 20
    assert rows["matrix product"][-1] == "(fake_peer)"
    assert float(rows["matrix product"][-2]) < 1
    assert rows["convolution 3 x 3"][-2:] == ["-", "-"]
    assert "fake_peer: training: ValueError: cannot train" in lines
    assert "fake_peer: inference: gone" in lines


def test_a_peer_that_cannot_be_imported_is_reported(run, monkeypatch):
    monkeypatch.setitem(FRAMEWORKS, "fake_peer", Framework(("fake_peer",), "fake_peer"))
    result = run(peer="import a_library_that_nobody_has")
    assert result.exit_code == 0, result.output
    assert "fake_peer: ModuleNotFoundError: No module named 'a_library_that_nobody_has'" in result.output


def test_a_peer_that_hangs_is_ended(run, monkeypatch):
    monkeypatch.setitem(FRAMEWORKS, "fake_peer", Framework(("fake_peer",), "fake_peer"))
    monkeypatch.setitem(FRAMEWORKS, OURS, Framework((), "fake_peer"))
    monkeypatch.setattr(measure, "_PATIENCE_S", 1.0)
    (figures,) = measure.measure(["fake_peer"], 1, measure.QUICK) if run("-h", peer="import time; time.sleep(60)") else ()
    assert figures.errors == ["the process ended with status -9"]


def test_peers_must_be_known_and_installed(run, monkeypatch):
    monkeypatch.setitem(FRAMEWORKS, "fake_peer", Framework(("fake_peer", "other"), "fake_peer"))
    unknown = run("--peer", "torhc")
    assert unknown.exit_code == 1
    assert "bench: --peer must be one of fake_peer, got 'torhc'" in unknown.output
    missing = run("-p", "fake_peer")
    assert "bench: --peer must be installed, got 'fake_peer'" in missing.output
    assert "hint: pip install fake_peer other" in missing.output
    assert run("--threads", "0").exit_code == 2


def test_the_report_has_medians_and_ratios_to_the_best_peer():
    seconds = {OURS: (0.003, 0.001, 0.002), "slow": (0.01,), "good": (0.004,)}
    figures = [Figures(name, "1.0", {"matmul": list(values)}) for name, values in seconds.items()]
    lines = report(figures, Sizes(2)).splitlines()
    assert lines[1] == "nn_core 1.0, slow 1.0, good 1.0"
    assert lines[4].split()[-5:] == ["2.00", "10.0", "4.00", "0.50", "(good)"]
    assert lines[-1] == "geometric mean of the ratios 0.50; below 1 nn_core is faster"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FRAMEWORKS) - {OURS}))
def test_an_installed_peer_runs_what_it_has(name):
    if not FRAMEWORKS[name].is_installed():
        pytest.skip(f"needs {' and '.join(FRAMEWORKS[name].packages)}")
    ours, peer = measure.measure([OURS, name], 1, measure.QUICK)
    assert (ours.errors, peer.errors) == ([], [])
    assert set(ours.seconds) == set(TITLES)
    assert set(peer.seconds) == set(TITLES) - ({"training"} if name == "onnxruntime" else set())


def test_latency_has_percentiles_alone_and_beside_busy_neighbours(run):
    result = run("--latency")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert "alone p50" in lines[0] and "2 busy p50" in lines[0]
    assert [line.split("  ")[0] for line in lines[1:-1]] == list(NETWORKS)
    for line in lines[1:-1]:
        alone, alone_99, busy, busy_99 = map(float, line.split()[-4:])
        assert 0 < alone <= alone_99 and 0 < busy <= busy_99


def test_a_percentile_is_one_of_the_times():
    assert percentile([5, 1, 4, 2, 3], 50) == 3
    assert percentile([5, 1, 4, 2, 3], 99) == 5
    assert percentile([7], 99) == 7
