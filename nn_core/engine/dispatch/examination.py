"""The process that examines a plugin: a session of its own below a process that only waits for it.

A plugin that kills its group, or its parent, meets these two, and not the program that has it examined.
"""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from nn_core.engine.runtime.children import python_command
from nn_core.settings import settings

#: The program that the process of an examination runs.
_EXAMINATION: Final = """
import sys
# what every plugin needs is not counted as its time
import nn_core.ext, nn_core.engine.dispatch.loader, nn_core.operators.spec.load
from nn_core.engine.dispatch.doctor import write_findings
write_findings(*sys.argv[1:])
"""
#: The lines before it: the parent of the examination is a process that waits. They print its number, and how it ended.
_WAITING: Final = """
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
examination = os.fork()
if examination:
    status = os.waitpid(examination, os.WUNTRACED)[1]
    print(-os.WSTOPSIG(status) if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status), flush=True)
    os._exit(0)
os.setsid()
print(os.getpid(), flush=True)
os.dup2(2, 1)
"""
#: Seconds that starting such a process may take.
_START_S: Final = 10.0
#: Bytes of the end of what an examination writes to its standard error in which the last line is looked for.
_TAIL_BYTES: Final = 2000
#: Signals that stop a process and do not end it.
_STOPS: Final = ("SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU")
#: The processes that wait now.
_WAITERS: Final[set["subprocess.Popen[bytes]"]] = set()


def run_examination(name: str, report: Path, paths: Sequence[str] = ()) -> str:
    """Examine a plugin in a new process, which also imports from `paths`; returns how the process died, if it did."""
    seconds = 3 * settings().plugin_timeout + _START_S
    forks = os.name == "posix"
    command = python_command((_WAITING if forks else "") + _EXAMINATION, name, str(report), paths=paths)
    # a file and no pipe, which a process that the plugin has started might hold open
    with tempfile.TemporaryFile() as errors:
        waiter = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, start_new_session=forks
        )
        _WAITERS.add(waiter)
        try:
            waiter.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"importing, probing and loading must end within {seconds:g} s, got no end"
        finally:
            waiter.kill()
            _WAITERS.discard(waiter)
            printed = waiter.communicate()[0].split()
            if forks and printed:  # whatever is left of it
                with suppress(OSError):
                    os.killpg(int(printed[0]), signal.SIGKILL)
        if forks and waiter.returncode < 0:
            return f"it ended the process that started it by {signal.Signals(-waiter.returncode).name}"
        return _death(int(printed[1]) if len(printed) > 1 else waiter.returncode, errors)


def end_examinations() -> None:
    """End all examinations that other threads wait for."""
    for waiter in list(_WAITERS):
        waiter.kill()


def _death(status: int, errors: IO[bytes]) -> str:
    if status < 0:
        name = signal.Signals(-status).name
        return f"the interpreter {'was stopped by' if name in _STOPS else 'died of'} {name}"
    if status:
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _TAIL_BYTES))
        last = errors.read().decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the interpreter ended with status {status}: {last}"
    return ""
