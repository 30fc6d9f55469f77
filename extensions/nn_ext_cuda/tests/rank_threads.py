"""Ranks that are threads of one process."""

import threading

from nn_core.communicators import Launch

SIZE = 3


def on_threads(program, size=SIZE):
    """Call ``program(rank)`` on threads; the results by rank."""
    results, failures = {}, []

    def run(rank):
        try:
            results[rank] = program(rank)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if failures:
        raise failures[0]
    return [results[rank] for rank in range(size)]


def launch_of(rank, size=SIZE):
    return Launch("torchrun", rank, size, rank)
