"""Counts what Python does: the same on every machine, where times are not."""

import gc
import sys
from collections.abc import Callable


def n_calls(work: Callable[..., object], *arguments: object) -> int:
    """Count the calls of Python and C functions that `work(*arguments)` makes; what these do inside cannot be seen."""
    counted = 0

    def count(frame: object, event: str, _: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    gc.collect()
    gc.disable()  # finalizers of what other tests have left are not counted
    sys.setprofile(count)
    try:
        work(*arguments)
    finally:
        sys.setprofile(before)
        gc.enable()
    return counted
