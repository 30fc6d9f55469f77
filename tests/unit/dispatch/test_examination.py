"""Examinations of plugins run in sessions of their own, and end when the program does."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nn_core.engine.dispatch import doctor, examination
from nn_core.engine.dispatch.plugin_record import Failure, Plugin, State

fcntl = pytest.importorskip("fcntl", reason="sessions are those of POSIX")
HANGS = """
import fcntl, os, sys, time
file = open(sys.argv[2], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print(os.getpid(), os.getpgid(os.getppid()), file=file, flush=True)
time.sleep(1000)
"""


def test_examinations_of_other_threads_are_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(examination, "_EXAMINATION", HANGS)
    report = tmp_path / "report"
    with ThreadPoolExecutor(1) as pool:
        death = pool.submit(examination.run_examination, "any", report)
        while not (report.exists() and " " in report.read_text()):
            assert not death.done()
            time.sleep(0.01)
        process, group = map(int, report.read_text().split())
        assert len({os.getpgrp(), os.getpgid(process), group}) == 3
        examination.end_examinations()
        assert death.result() == "it ended the process that started it by SIGKILL"
    with report.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # which the process held until its end
    assert not examination._WAITERS


def test_an_interrupted_doctor_ends_its_examinations(monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    ended = []
    monkeypatch.setattr(doctor, "_examined", interrupted)
    monkeypatch.setattr(doctor, "end_examinations", lambda: ended.append(True))
    with pytest.raises(KeyboardInterrupt):
        doctor.examine()
    assert ended == [True]


NO_FINDINGS = {
    "nothing": lambda path: None,
    "no JSON": lambda path: path.write_text("{"),
    "no UTF-8": lambda path: path.write_bytes(b"\xff"),
    "no rows": lambda path: path.write_text("[]"),
    "a number": lambda path: path.write_text("5"),
    "rows of others": lambda path: path.write_text('[{"x": 1}]'),
    "rows of numbers": lambda path: path.write_text('[{"name": 5, "package": "p", "state": "loaded", "remarks": []}]'),
    "a state of its own": lambda path: path.write_text('[{"name": "a", "package": "p", "state": "great", "remarks": []}]'),
    "remarks of numbers": lambda path: path.write_text('[{"name": "a", "package": "p", "state": "loaded", "remarks": [7]}]'),
    "no remarks": lambda path: path.write_text('[{"name": "a", "package": "p", "state": "loaded", "remarks": 7}]'),
    "deep": lambda path: path.write_text("[" * 100_000),
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "long": lambda path: path.write_bytes(bytes(doctor._LONGEST_REPORT + 1)),
}


@pytest.mark.parametrize("written", list(NO_FINDINGS))
def test_a_report_that_the_plugin_wrote_itself_is_refused(written, monkeypatch, tmp_path):
    """Take no report on trust: code of the plugin runs where it is written."""
    monkeypatch.setattr(doctor, "run_examination", lambda name, report, paths: [NO_FINDINGS[written](report), ""][1])
    monkeypatch.setattr(doctor.installed, "installed_plugins", lambda: {"odd": ()})
    monkeypatch.setattr(doctor.installed, "entry_points", lambda: {"odd": ()})
    (finding,) = doctor._examined("odd")
    assert finding.state is State.BROKEN and finding.name == "odd"
    assert finding.reason.startswith("the examination ended with")


def test_texts_of_a_report_are_escaped(tmp_path):
    row = {"name": "a", "package": "p", "state": "loaded", "reason": "\x1b[2J", "remarks": ["\u202e"], "advice": "\b"}
    (tmp_path / "report").write_text(json.dumps([row]))
    (finding,) = doctor.read_findings(tmp_path / "report")
    assert (finding.reason, finding.remarks, finding.advice) == ("\\x1b[2J", ("\\u202e",), "\\x08")


def test_a_plugin_reports_of_its_own_package_only(monkeypatch, tmp_path):
    row = {"name": "cpu", "package": "nn-ext-cpu 9.9", "state": "broken", "remarks": []}
    monkeypatch.setattr(doctor, "run_examination", lambda name, report, paths: [report.write_text(json.dumps([row])), ""][1])
    monkeypatch.setattr(doctor, "packages", lambda entry_points: ["odd 1.0"])
    monkeypatch.setattr(doctor.installed, "installed_plugins", lambda: {"odd": ()})
    monkeypatch.setattr(doctor.installed, "entry_points", lambda: {"odd": ()})
    (finding,) = doctor._examined("odd")
    assert finding.package == "odd 1.0"


@pytest.mark.parametrize("name", [5, "nn_core; pip install evil", "../evil", None])
def test_a_missing_module_of_a_made_up_name_is_no_advice(name):
    error = ModuleNotFoundError("none", name=name)
    advice = doctor._advice(Plugin("odd", ()), Failure(State.BROKEN, "none", error))
    assert "provides" not in advice and "evil" not in advice
