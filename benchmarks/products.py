"""Matrix products of float32, beside the libraries that are installed: billions of operations a second.

    OMP_NUM_THREADS=1 python -m benchmarks.products [repeats]
    OMP_NUM_THREADS=2 python -m benchmarks.products [repeats]

One product at a time is called by all libraries in turns; the most of the repeats counts. One thread is measured by its
processor time. More are measured by the clock, after a pause in which the waiting threads of the previous library go to
sleep, and a first call that wakes those of the next. `dnnl_sgemm` is that of the oneDNN in this environment, OpenBLAS that
of the package scipy-openblas32, PyTorch multiplies by its own libraries.
"""

import ctypes
import importlib.util
import os
import sys
import time
from pathlib import Path

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

#: Of all libraries.
THREADS = int(os.environ.get("OMP_NUM_THREADS", "1"))
#: Rows, columns and terms of the sums: square, then thin in each direction.
SIZES = [(n, n, n) for n in (128, 256, 300, 512, 768, 1024, 2048)]
SIZES += [
    (64, 1024, 1024),
    (1024, 64, 1024),
    (1024, 1024, 64),
    (128, 4096, 512),
    (4096, 128, 128),
    (256, 4096, 1024),
    (4096, 4096, 4096),
]
#: Operations of one measurement, at least.
WORK = 6e7 if THREADS == 1 else 6e8
#: Seconds without work before a measurement of several threads.
PAUSE = 0 if THREADS == 1 else 0.1

INT, POINTER, FLOAT = ctypes.c_int64, ctypes.c_void_p, ctypes.c_float


def of_onednn():
    """Return the product of oneDNN's C interface, or None."""
    path = Path(sys.prefix) / "lib" / "libdnnl.so.3"
    if not path.exists():
        return None
    function = ctypes.CDLL(str(path)).dnnl_sgemm
    function.argtypes = [ctypes.c_char, ctypes.c_char, *[INT] * 3, FLOAT, POINTER, INT, POINTER, INT, FLOAT, POINTER, INT]

    def call(a, b, c, m, n, k, turned):
        letters = b"T" if turned[0] else b"N", b"T" if turned[1] else b"N"
        lengths = a.shape[1], b.shape[1]
        return lambda: function(
            *letters, m, n, k, 1, a.ctypes.data, lengths[0], b.ctypes.data, lengths[1], 0, c.ctypes.data, n
        )

    return call


def of_openblas():
    """Return the product of scipy-openblas32, or None."""
    if importlib.util.find_spec("scipy_openblas32") is None:
        return None
    import scipy_openblas32

    library = ctypes.CDLL(str(next(Path(scipy_openblas32.get_lib_dir()).glob("libscipy_openblas*"))))
    library.scipy_openblas_set_num_threads(THREADS)
    function = library.scipy_cblas_sgemm
    number = ctypes.c_int
    function.argtypes = [*[number] * 6, FLOAT, POINTER, number, POINTER, number, FLOAT, POINTER, number]

    def call(a, b, c, m, n, k, turned):
        orders = 112 if turned[0] else 111, 112 if turned[1] else 111
        lengths = a.shape[1], b.shape[1]
        return lambda: function(
            101, *orders, m, n, k, 1, a.ctypes.data, lengths[0], b.ctypes.data, lengths[1], 0, c.ctypes.data, n
        )

    return call


def of_torch():
    """Return the product of PyTorch, or None."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(THREADS)

    def call(a, b, c, m, n, k, turned):
        left, right, result = (torch.from_numpy(array) for array in (a, b, c))
        left, right = left.T if turned[0] else left, right.T if turned[1] else right
        return lambda: torch.mm(left, right, out=result)

    return call


def ours():
    """Return the product of nn_ext_cpu, as a graph runs it."""

    def call(a, b, c, m, n, k, turned):
        with nn.context_scope(get_extension_context("cpu")):
            x, y = (nn.Variable.from_numpy_array(array[None]) for array in (a, b))
            z = F.batch_matmul(x, y, transpose_a=turned[0], transpose_b=turned[1])
        return z.forward

    return call


LIBRARIES = {"nn_core": ours, "dnnl_sgemm": of_onednn, "OpenBLAS": of_openblas, "PyTorch": of_torch}


def main() -> None:
    """Print a table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    nn.set_num_threads(THREADS)
    clock = time.process_time if THREADS == 1 else time.perf_counter
    found = {name: call for name, library in LIBRARIES.items() if (call := library()) is not None}
    print(f"| m x n x k | | {' | '.join(found)} |\n|---|---|{'---|' * len(found)}")
    rng = np.random.default_rng(0)
    for m, n, k in SIZES:
        for turned in ((False, False), (False, True), (True, False)):
            a = rng.random((k, m) if turned[0] else (m, k), np.float32)
            b = rng.random((n, k) if turned[1] else (k, n), np.float32)
            calls = {name: call(a, b, np.empty((m, n), np.float32), m, n, k, turned) for name, call in found.items()}
            many = int(WORK / (2 * m * n * k)) + 1
            least = dict.fromkeys(calls, float("inf"))
            for _ in range(repeats):
                for name, call in calls.items():
                    time.sleep(PAUSE)
                    call()
                    start = clock()
                    for _ in range(many):
                        call()
                    least[name] = min(least[name], (clock() - start) / many)
            speeds = " | ".join(f"{2e-9 * m * n * k / seconds:.0f}" for seconds in least.values())
            kind = "".join("T" if flag else "N" for flag in turned)
            print(f"| {m} x {n} x {k} | {kind} | {speeds} |", flush=True)


if __name__ == "__main__":
    main()
