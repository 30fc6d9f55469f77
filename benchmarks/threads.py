"""The number of threads of every framework: one number, however a framework wants to be told."""

import os

#: nn_core, OpenMP (PyTorch, NNabla, oneDNN), libraries of linear algebra, and the pool of XLA
VARIABLES = ("NN_CORE_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC")


def environment(threads):
    """Return the environment of a process that shall have so many threads."""
    return {**os.environ, **dict.fromkeys(VARIABLES, str(threads))}


def threads():
    """Return the number of threads of this process; frameworks without a variable of their own are told by the workload."""
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def confine():
    """Keep this process on as many CPUs as it has threads, whatever a framework starts beside them."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[: threads()])
