"""Compilers of CUDA C for tests without a device: NVRTC, which CuPy uses, else nvcc."""

import ctypes
import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ARCHITECTURES = ("sm_80", "sm_90")
OPTIONS = ("-std=c++17",)
MISSING = "neither NVRTC (pip install nvidia-cuda-nvrtc) nor nvcc (of a CUDA toolkit) was found"
NVRTC_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
FOLDERS = ("cuda_nvrtc", "cu13", "cu12")


#: The words of the assembler about a kernel when it is asked to.
_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_NUMBERS = {
    "registers": re.compile(r"Used (\d+) registers"),
    "shared_bytes": re.compile(r"(\d+) bytes smem"),
    "stack_bytes": re.compile(r"(\d+) bytes stack frame"),
    "spilled_bytes": re.compile(r"(\d+) bytes spill stores"),
}


class Resources(NamedTuple):
    """The needs of a kernel: registers and local memory of a thread, static shared memory of a block."""

    registers: int
    shared_bytes: int
    stack_bytes: int
    spilled_bytes: int


class Compiler:
    """Compiles; a compiler defines `compile`, which returns whether it takes the source, and what it says."""

    def complaints(self, source, architecture):
        """Compile; returns what the compiler has to say against the source, empty when it takes it."""
        taken, said = self.compile(source, architecture)
        return "" if taken else said[:4000] or f"{type(self).__name__} failed"

    def resources(self, source, architecture):
        """The `Resources` of each kernel of a source by its name, which is mangled where it is not ``extern "C"``."""
        taken, said = self.compile(source, architecture, "--ptxas-options=-v")
        assert taken, said[:4000]
        _, *parts = _ENTRY.split(said)
        numbers = ([int((found.findall(text) or [0])[0]) for found in _NUMBERS.values()] for text in parts[1::2])
        return {name: Resources(*own) for name, own in zip(parts[::2], numbers, strict=True)}


class Nvrtc(Compiler):
    """NVRTC by ctypes."""

    def __init__(self, library):
        self._library = library

    def compile(self, source, architecture, *more):
        program = ctypes.c_void_p()
        self._check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"pieces.cu", 0, None, None)
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={architecture}", *more)]
        status = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        self._check("nvrtcGetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._check("nvrtcGetProgramLog", program, log)
        self._check("nvrtcDestroyProgram", ctypes.byref(program))
        return status == 0, log.value.decode()

    def _check(self, function, *arguments):
        assert getattr(self._library, function)(*arguments) == 0, function


class Nvcc(Compiler):
    """The compiler of a toolkit."""

    def __init__(self, path):
        self._path = path

    def compile(self, source, architecture, *more):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pieces.cu")
            path.write_text(source)
            command = [self._path, *OPTIONS, f"-arch={architecture}", "-cubin", "-o", f"{folder}/pieces.cubin"]
            command += [*more, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode == 0, done.stderr


def compiler():
    """A compiler, or None where there is none."""
    for path in _nvrtc_paths():
        try:
            return Nvrtc(ctypes.CDLL(path))
        except OSError:
            continue
    path = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    return Nvcc(path) if Path(path).exists() else None


def _nvrtc_paths():
    """The paths where NVRTC may be: in a wheel, or where the loader finds it."""
    try:
        nvidia = find_spec("nvidia")
    except ValueError:
        nvidia = None
    for root in (nvidia.submodule_search_locations or []) if nvidia else []:
        for folder in FOLDERS:
            for name in NVRTC_NAMES:
                if (path := Path(root, folder, "lib", name)).exists():
                    yield str(path)
    yield from NVRTC_NAMES
