"""libcudnn: in the process already, in a wheel, or where the loader finds it; and its functions, called by ctypes."""

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from nn_ext_cudnn.errors import CudnnError, failure

SONAME: Final = "libcudnn.so.9"
#: Packages of PyPI that hold cuDNN, in the order in which they are tried: all engines, engines made at run time only.
WHEELS: Final = ("nvidia.cudnn", "nvidia.cudnn_jit")

#: Functions by name with the C types of their arguments; all of them return a status.
Table: TypeAlias = Mapping[str, tuple[Any, ...]]
POINTER: Final = ctypes.c_void_p
#: The address to which a function writes a pointer.
RESULT: Final = ctypes.POINTER(ctypes.c_void_p)

#: The functions that every use of the library begins with; other modules have tables of their own.
HANDLES: Final[Table] = {
    "cudnnCreate": (RESULT,),
    "cudnnSetStream": (POINTER, POINTER),
}


def candidates() -> Iterator[str]:
    """Paths of libcudnn, best first; the last one is left to the loader of the system."""
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder and (path := Path(folder) / SONAME).exists():
            yield str(path)
    for package in WHEELS:
        for place in _folders(package):
            if (path := place / "lib" / SONAME).exists():
                yield str(path)
    yield SONAME


def load() -> ctypes.CDLL | None:
    """Return the library, or None where there is none; one that the process has loaded already comes first.

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
    """Return whether libcudnn can be found; quick, and nothing of it is started."""
    return load() is not None


@lru_cache(maxsize=1)
def library() -> Any:
    """Return the library.

    Raises:
        CudnnError: when there is none.
    """
    found = load()
    if found is None:
        raise CudnnError(
            "cuDNN: libcudnn 9 must be installed, got none\n"
            "  hint: pip install nvidia-cudnn-cu13 (or nvidia-cudnn-cu12, as CuPy is)"
        )
    return found


def functions(table: Table) -> Any:
    """Return a namespace of the functions of a table; each raises `CudnnError` for a status other than success.

    Raises:
        CudnnError: when this version of cuDNN lacks one of them.
    """
    source = library()
    return SimpleNamespace(**{name: _checked(source, name, arguments) for name, arguments in table.items()})


def version() -> tuple[int, int, int]:
    """Version of cuDNN as (major, minor, patch)."""
    function = library().cudnnGetVersion
    function.restype = ctypes.c_size_t
    number = int(function())
    return number // 10000, number // 100 % 100, number % 100


def last_error() -> str:
    """Return cuDNN's message about the last error of this thread; reading it clears it."""
    text = ctypes.create_string_buffer(2048)
    function = library().cudnnGetLastErrorString
    function.argtypes, function.restype = (ctypes.c_char_p, ctypes.c_size_t), None
    function(text, len(text))
    return text.value.decode(errors="replace")


def _checked(source: Any, name: str, arguments: tuple[Any, ...]) -> Callable[..., None]:
    try:
        function = getattr(source, name)
    except AttributeError as error:
        numbers = ".".join(map(str, version()))
        raise CudnnError(f"{name}: cuDNN must have this function, got cuDNN {numbers}\n  hint: a newer cuDNN 9") from error
    function.argtypes, function.restype = arguments, ctypes.c_int

    def call(*values: Any) -> None:
        status = function(*values)
        if status != 0:
            raise failure(name, status, last_error())

    return call


def _folders(package: str) -> list[Path]:
    try:
        spec = find_spec(package)
    except ModuleNotFoundError:
        return []
    return [Path(folder) for folder in (spec.submodule_search_locations or [])] if spec else []
