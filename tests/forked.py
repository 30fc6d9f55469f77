"""The command `nn-core` in forks of an interpreter that has imported the package: a new one needs half a second for that."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

#: Runs each line of its input, as the command does, in a fork of itself, and prints the exit status.
_SERVER = """
import importlib, json, os, sys
from nn_core.__main__ import main
for name in sys.argv[1:]:
    importlib.import_module(name)
for line in sys.stdin:
    request = json.loads(line)
    if (child := os.fork()) == 0:
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["nn-core", *request["words"]]
        sys.path[0] = request["folder"]
        try:
            main(request["words"])
        finally:
            sys.stdout.flush()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class ForkedCommand:
    """The command; programs get the environment of the moment, but nn_core has read its settings before."""

    def __init__(self, requests: IO[str], statuses: IO[str], folder: Path) -> None:
        self._requests, self._statuses = requests, statuses
        self._files = {name: folder / name for name in ("stdout", "stderr")}

    def run(self, words: Sequence[str], folder: Path) -> "subprocess.CompletedProcess[str]":
        """Run ``nn-core`` with `words` in a folder."""
        files = {name: str(path) for name, path in self._files.items()}
        request = {"words": list(words), "folder": str(folder), "environment": dict(os.environ), **files}
        self._requests.write(json.dumps(request) + "\n")
        self._requests.flush()
        status = int(self._statuses.readline())
        texts = {name: path.read_text(encoding="utf-8") for name, path in self._files.items()}
        return subprocess.CompletedProcess(list(words), status, **texts)


@contextmanager
def forked_command(folder: Path, *modules: str) -> Iterator[ForkedCommand]:
    """Start the interpreter, with `modules` imported beside the package; it writes what programs print into `folder`."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NN_CORE_")} | {
        "OMP_NUM_THREADS": "1"
    }
    words = [sys.executable, "-c", _SERVER, *modules]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdin is not None and server.stdout is not None
        yield ForkedCommand(server.stdin, server.stdout, folder)
        server.stdin.close()
