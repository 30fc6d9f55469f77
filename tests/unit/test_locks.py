"""Locks across fork()."""

import os
import threading

import pytest

from nn_core.engine.runtime.locks import fork_safe

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_a_lock_that_another_thread_holds_is_open_in_a_child(make):
    lock = fork_safe(make())
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(0.2)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if lock.acquire(timeout=60) else 1)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert lock.acquire(timeout=60)
    lock.release()
