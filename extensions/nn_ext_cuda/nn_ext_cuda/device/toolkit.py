"""Whether NVRTC and the headers of CUDA can be found, by which kernels are compiled: without CuPy, and in milliseconds.

A machine with nothing but a driver lacks both, and the first kernel would fail.
"""

import ctypes
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

#: The header without which CuPy compiles nothing.
HEADER: Final = "vector_types.h"
_LIBRARY_FOLDERS: Final = ("lib", "lib64", f"lib/{platform.machine()}-linux-gnu")
#: Packages of NVRTC by the major version of CUDA.
NVRTC_PACKAGES: Final = {12: "nvidia-cuda-nvrtc-cu12", 13: "nvidia-cuda-nvrtc"}


class Toolkit:
    """The parts of a CUDA toolkit, or of the wheels in its place, for one major version of CUDA.

    Args:
        version: The major version.
        folders: Where to look, each with ``lib`` and ``include``; None: wherever CuPy would find them.
        load: Loads a library by its name; raises OSError where there is none.
    """

    def __init__(
        self,
        version: int,
        folders: Iterable[Path] | None = None,
        load: Callable[[str], object] = ctypes.CDLL,
    ) -> None:
        self.version = version
        self._folders = list(places(version) if folders is None else folders)
        self._load = load

    @property
    def library(self) -> str:
        """Name of the shared library of NVRTC."""
        return f"libnvrtc.so.{self.version}"

    def has_nvrtc(self) -> bool:
        """Return whether there is a library of NVRTC."""
        if any((folder / inner / self.library).exists() for folder in self._folders for inner in _LIBRARY_FOLDERS):
            return True
        try:
            self._load(self.library)
        except OSError:
            return False
        return True

    def has_headers(self) -> bool:
        """Return whether there are headers."""
        return any((folder / "include" / HEADER).exists() for folder in self._folders)

    def lacks(self, cupy: str) -> str | None:
        """Return a sentence about what is missing, with the line that installs it, or None.

        Args:
            cupy: Name of the installed package that brings CuPy.
        """
        nvrtc, headers = self.has_nvrtc(), self.has_headers()
        both = f"pip install {cupy}[ctk]"
        if not nvrtc and not headers:
            return f"neither NVRTC ({self.library}) nor the headers of CUDA were found, which compile kernels: {both}"
        if not nvrtc:
            return f"NVRTC was not found ({self.library}), which compiles kernels: pip install {NVRTC_PACKAGES[self.version]}"
        return None if headers else f"the headers of CUDA were not found ({HEADER}), with which CuPy compiles kernels: {both}"


def places(version: int) -> Iterator[Path]:
    """Yield the folders where parts of a toolkit may be: of wheels, of conda, of the variables, of the system."""
    for root in _wheels():
        yield from (root / name for name in (f"cu{version}", "cuda_nvrtc", "cuda_runtime"))
    for prefix in filter(None, (os.environ.get("CONDA_PREFIX"), sys.prefix)):
        yield Path(prefix)
        yield Path(prefix, "targets", f"{platform.machine()}-linux")
    yield from (Path(os.environ[name]) for name in ("CUDA_PATH", "CUDA_HOME") if os.environ.get(name))
    compiler = shutil.which("nvcc")
    if compiler:
        yield Path(compiler).resolve().parents[1]
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob(f"cuda-{version}*"))
    yield Path("/usr")


def _wheels() -> list[Path]:
    """Return the folders of the packages of NVIDIA."""
    try:
        found = find_spec("nvidia")
    except ValueError:  # a module without a specification has the name
        return []
    return [Path(root) for root in found.submodule_search_locations or ()] if found else []
