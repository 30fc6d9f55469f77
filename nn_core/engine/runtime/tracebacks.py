"""The code that an exception has passed."""

from collections.abc import Iterator


def packages_in(error: BaseException) -> Iterator[str]:
    """Iterate over the top-level packages of the functions that an exception has passed, the one that raised it last."""
    trace = error.__traceback__
    while trace is not None:
        yield str(trace.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        trace = trace.tb_next
