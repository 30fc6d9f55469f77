"""Where libcudnn is: in the process already, in a wheel, or where the loader finds it."""

import ctypes
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SONAME: Final = "libcudnn.so.9"
#: Packages of PyPI that hold cuDNN, in the order in which they are tried: all engines, engines made at run time only.
WHEELS: Final = ("nvidia.cudnn", "nvidia.cudnn_jit")


def candidates() -> Iterator[str]:
    """Paths of libcudnn, best first; the last one is left to the loader of the system."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (path := Path(folder) / SONAME).exists():
            yield str(path)
    for package in WHEELS:
        for folder in _folders(package):
            if (path := folder / "lib" / SONAME).exists():
                yield str(path)
    yield SONAME


def load() -> ctypes.CDLL | None:
    """The library, or None where there is none; one that the process has loaded already comes first.

    Two versions of cuDNN in one process do not work, and another framework may have brought one.
    """
    try:
        return ctypes.CDLL(SONAME, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    except OSError:
        pass
    for path in candidates():
        try:
            return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        except OSError:
            continue
    return None


def is_present() -> bool:
    """Whether libcudnn can be found; quick, and nothing of it is started."""
    return load() is not None


def _folders(package: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
