"""Compilers of CUDA C for tests without a device: NVRTC, which CuPy uses, else nvcc."""

import ctypes
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

ARCHITECTURES = ("sm_80", "sm_90")
OPTIONS = ("-std=c++17",)
MISSING = "neither NVRTC (pip install nvidia-cuda-nvrtc) nor nvcc (of a CUDA toolkit) was found"
NVRTC_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
FOLDERS = ("cuda_nvrtc", "cu13", "cu12")


class Nvrtc:
    """NVRTC by ctypes."""

    def __init__(self, library):
        self._library = library

    def complaints(self, source, architecture):
        """Compile; returns what the compiler has to say against the source, empty when it takes it."""
        program = ctypes.c_void_p()
        self._check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"pieces.cu", 0, None, None)
        options = [option.encode() for option in (*OPTIONS, f"--gpu-architecture={architecture}")]
        status = self._library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        size = ctypes.c_size_t()
        self._check("nvrtcGetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        self._check("nvrtcGetProgramLog", program, log)
        self._check("nvrtcDestroyProgram", ctypes.byref(program))
        return log.value.decode()[:4000] or "NVRTC failed" if status else ""

    def _check(self, function, *arguments):
        assert getattr(self._library, function)(*arguments) == 0, function


class Nvcc:
    """The compiler of a toolkit."""

    def __init__(self, path):
        self._path = path

    def complaints(self, source, architecture):
        """Compile; returns what the compiler has to say against the source, empty when it takes it."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "pieces.cu")
            path.write_text(source)
            command = [self._path, *OPTIONS, f"-arch={architecture}", "-cubin", "-o", f"{folder}/pieces.cubin", str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        return "" if done.returncode == 0 else done.stderr[:4000] or "nvcc failed"


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
