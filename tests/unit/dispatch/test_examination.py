"""Examinations of plugins run in sessions of their own, and end when the program does."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nn_core.engine.dispatch import doctor, examination

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
