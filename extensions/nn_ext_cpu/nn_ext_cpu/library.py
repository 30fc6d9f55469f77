"""Loading the native library, and with it the OpenMP runtime whose threads must not wait in vain."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Final

#: How often a thread of the OpenMP runtime looks for work before it sleeps. The runtime's own number, 300,000, lasts about
#: 10 ms, and where cores are busy, threads that wait for each other then take the time of those that they wait for. With
#: less than this, waking threads on an idle machine costs small networks more than 3 %.
SPINS: Final = 10_000
#: The file name of oneDNN that the native library is linked with.
ONEDNN: Final = "libdnnl.so.3"
#: Settings of the user, which stay as they are.
SETTINGS: Final = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def load_native() -> ModuleType:
    """Load the native library; waiting threads sleep early if the OpenMP runtime is loaded with it.

    A runtime that the process has loaded before keeps its settings, and the environment is afterwards as it was.
    """
    with _bounded_spinning():
        try:
            return import_module("nn_ext_cpu._native")
        except ImportError:
            # Packages in several folders (pip install --target, environments on top of others, bundles): a library with the
            # name that is looked for, once it is loaded, is taken wherever it comes from.
            if not _load_onednn():
                raise
            return import_module("nn_ext_cpu._native")


def _load_onednn() -> bool:
    """Load the library of the package onednn-cpu-gomp from where it is installed; whether it was found."""
    try:
        files = distribution("onednn-cpu-gomp").files or ()
    except PackageNotFoundError:
        return False
    paths = [Path(str(file.locate())) for file in files if file.name == ONEDNN]
    for path in filter(Path.is_file, paths):
        ctypes.CDLL(str(path))
        return True
    return False


@contextmanager
def _bounded_spinning() -> Iterator[None]:
    """Set what the OpenMP runtime reads once, when it is loaded."""
    if any(name in os.environ for name in SETTINGS):
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = str(SPINS)
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]
