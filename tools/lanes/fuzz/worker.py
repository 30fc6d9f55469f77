"""The process that runs sessions: ``python -m tools.lanes.fuzz.worker SEED FIRST END LOG``; `watch` starts it.

Instead of a seed, "sweep" stands for the sessions of `sweep`.

Every statement is written to the log before it runs, so that the last one is known whatever happens. Findings go to the
standard output, one JSON object a line.
"""

import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import IO, Any

import nn_core as nn
from nn_core.errors import NNCoreError
from nn_core.ext_utils import get_extension_context

from . import sweep
from .sessions import Session, fresh_space

#: Bytes of memory that the process may use, and seconds of the processor that a statement may take; `watch` sees who waits.
MEMORY = 6 << 30
SECONDS = 5
#: Ends of calls that are as they should be.
ALLOWED = (NNCoreError, TypeError, MemoryError, OSError, StopIteration, NotImplementedError)


class Slow(Exception):  # noqa: N818
    """A statement took too long."""


def verdict(statement: str, space: dict[str, Any]) -> BaseException | None:
    """Run a statement; the exception that should not have been."""
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        exec(statement.removeprefix("!"), space)
    except Slow as error:
        return error
    except ALLOWED as error:
        return error if isinstance(error, RecursionError) else None
    except IndexError as error:
        return None if _picks(error) else error
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _picks(error: IndexError) -> bool:
    """Return whether an index out of bounds was refused on purpose: what iterates over a sequence relies on this class."""
    return "indexing.py" in traceback.extract_tb(error.__traceback__)[-1].filename


def place_of(error: BaseException) -> str:
    """Return the place in nn_core where an exception was raised, or the line that it passed through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "nn_" in frame.filename]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno} {frames[-1].name}" if frames else "nowhere"


def reset() -> None:
    """Forget what a session has set for the process."""
    nn.clear_parameters()
    nn.set_auto_forward(False)
    nn.set_global_recompute(False)
    nn.set_default_context(get_extension_context("cpu"))
    for key in ("x", "", "relu"):
        nn.unset_function_pre_hook(key)
        nn.unset_function_post_hook(key)
        nn.unset_solver_pre_hook(key)
        nn.unset_solver_post_hook(key)


def run_session(session: Session | sweep.Sweep, title: str, log: IO[str]) -> tuple[int, list[dict[str, str]]]:
    """Run one session: how many calls, and the findings among them."""
    reset()
    space = session.space
    done: list[str] = []
    findings = []
    calls = 0
    for statement in session.statements():
        log.seek(0)
        log.truncate()
        log.write("\n".join([f"# {title}", *done, statement.removeprefix("!")]))
        log.flush()
        error = verdict(statement, space)
        if error is not None:
            kind = type(error).__name__
            text = "\n".join([*done, statement.removeprefix("!")])
            findings.append({"kind": kind, "place": place_of(error), "text": str(error)[:300], "source": text})
            if isinstance(error, Slow):
                break
        calls += 1
        if session.linked or statement.startswith("!"):
            done.append(statement.removeprefix("!"))
    return calls, findings


def main() -> None:
    """Run sessions and print findings."""
    first, end = int(sys.argv[2]), int(sys.argv[3])
    targets = sweep.targets() if sys.argv[1] == "sweep" else None
    if targets is not None:
        end = min(end, len(targets))
    if "asan" not in os.environ.get("LD_PRELOAD", ""):  # which reserves terabytes of addresses
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    warnings.simplefilter("error")

    def stop(*_: object) -> None:
        raise Slow(f"longer than {SECONDS} s")

    signal.signal(signal.SIGPROF, stop)
    with Path(sys.argv[4]).open("w") as log:
        for number in range(first, end):
            if targets is None:
                session: Session | sweep.Sweep = Session(int(sys.argv[1]), number, fresh_space())
            else:
                session = sweep.Sweep(*targets[number])
            calls, findings = run_session(session, f"{sys.argv[1]}, session {number}", log)
            for finding in findings:
                print(json.dumps(finding), flush=True)  # noqa: T201
            print(json.dumps({"session": number, "calls": calls}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
