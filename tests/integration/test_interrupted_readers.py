"""Ctrl-C while a reader works on a large hostile file: it ends the program at once, and leaves nothing behind."""

import os
import signal
import subprocess
import sys

import pytest

from nn_core.engine.runtime.children import python_command
from tests.large_files import READERS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="a signal to one process"),
]


#: Reads a file again and again, so that a fast machine cannot end before the signal comes. The first time imports libraries,
#: some of which catch whatever is raised there.
_PROGRAM = """
import itertools, sys
{load}
for number in itertools.count():
    try:
        read(sys.argv[1])
    except Exception as error:  # what is refused is read again
        assert not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt), "swallowed"
    if number == 0:
        print("begins", flush=True)
"""


@pytest.mark.parametrize("name", READERS)
def test_a_signal_ends_a_reader_and_leaves_nothing(name, tmp_path):
    make, count, load = READERS[name]
    path = tmp_path / name
    make(path, count)
    before = sorted(tmp_path.iterdir())
    child = subprocess.Popen(
        python_command(_PROGRAM.format(load=load), str(path)), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    )  # fmt: skip
    try:
        assert child.stdout.readline() == "begins\n", child.stderr.read()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.5)  # it reads by now
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        leftovers = _members(child.pid)
        for pid in leftovers:
            os.kill(pid, signal.SIGKILL)
    assert "KeyboardInterrupt" in errors.splitlines()[-1], errors[-1000:]
    assert sorted(tmp_path.iterdir()) == before
    assert leftovers == [] or sys.platform != "linux"


def _members(session):
    """Return the processes of a session that live, by the files of Linux."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208  # names alone
        try:
            with open(f"/proc/{entry}/stat") as file:  # noqa: PTH123
                state = file.read().rpartition(")")[2].split()
        except (OSError, ValueError):
            continue
        if entry.isdecimal() and int(state[3]) == session and state[0] != "Z":
            found.append(int(entry))
    return found
