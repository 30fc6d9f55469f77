"""The file that says how far a program is."""

from nn_core.utils import progress as module
from nn_core.utils.progress import configure_progress, progress


def test_progress(tmp_path, monkeypatch):
    now = [10.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    seen, path = [], tmp_path / "progress.txt"
    configure_progress(path, lambda *args: seen.append(args))
    progress("loading", 0.3)
    assert path.read_text() == "loading (30.00%)"
    now[0] += 0.5
    progress("training", 0.4)
    assert path.read_text() == "loading (30.00%)"
    now[0] += 0.5
    progress("training", 0.5)
    assert path.read_text() == "training (50.00%)"
    progress(None)
    assert path.read_text() == ""
    assert seen == [("loading", 0.3), ("training", 0.4), ("training", 0.5), (None, 0.0)]
    configure_progress(None)
    progress("nobody watches")
    assert len(seen) == 4
