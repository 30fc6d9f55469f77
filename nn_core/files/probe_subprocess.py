"""A first reading of HDF5 files of other writers, in a process of its own.

The HDF5 library may loop for ever or crash on damaged structures, and nothing in its files says whether they are damaged. The
process has a limit on the seconds that it computes, and not on the time that passes, so that a busy machine changes nothing.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from nn_core.engine.runtime.children import python_command
from nn_core.errors import FileFormatError
from nn_core.settings import settings

#: Seconds of computing for any file, and more for each byte of a large one.
_LIMIT_S: Final = 20
_BYTES_A_SECOND: Final = 10_000_000
PROGRAM: Final = """
import json, resource, sys
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from nn_core.files.hdf5 import read_plainly
from nn_core.files.hdf5_rows import read_on_trial
by_rows, names = json.loads(sys.argv[3] if sys.argv[3:] else "[false, null]")
try:
    if by_rows:
        read_on_trial(sys.argv[2], names)
    else:
        read_plainly(sys.argv[2] or sys.stdin.buffer.read())
except Exception:
    pass  # the caller raises it too
"""


def try_reading(source: str | bytes, n_bytes: int, names: list[str] | None = None, *, by_rows: bool = False) -> None:
    """Read a file by its path, or its contents, in a process of its own; some rows of datasets with `by_rows`.

    It is not tried where processes have no limits (Windows), in programs that are not started by Python itself, and with
    NN_CORE_TRUST_HDF5=1.

    Raises:
        FileFormatError: when the process crashes or does not end.
    """
    if os.name != "posix" or settings().trust_hdf5 or not Path(sys.executable or "").name.startswith(("python", "pypy")):
        return
    limit = _LIMIT_S + n_bytes // _BYTES_A_SECOND
    path, contents = (source, None) if isinstance(source, str) else ("", source)
    status = subprocess.run(
        python_command(PROGRAM, str(limit), path, json.dumps([by_rows, names])),
        input=contents,
        stdin=subprocess.DEVNULL if contents is None else None,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode
    if status == -signal.SIGXCPU:
        raise FileFormatError(f"the HDF5 library must read it in {limit} s of computing, got no end: it is damaged")
    if status < 0:
        raise FileFormatError(f"the HDF5 library must read it, got a crash ({signal.Signals(-status).name}): it is damaged")
