"""Compiles the CUDA sources of this package for the host, and launches them on NumPy arrays."""

import ctypes
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np

HEADER = Path(__file__).with_name("host_cuda.hpp")
COMPILER = shutil.which("g++")
FOLDER = Path(tempfile.gettempdir()) / "nn_ext_cuda_emulation"
#: The blocks and threads of a launch are global variables of a library, and ctypes lets other threads run meanwhile.
_ONE_AT_A_TIME = threading.Lock()
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\(\w+\) )?(\w+)\(([^)]*)\)')


class Function:
    """A kernel compiled for the host, launched as CuPy's functions are."""

    def __init__(self, library, name):
        self._call = library[f"{name}_launch"]

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        assert all(n >= 1 for n in (*grid, *block)), f"launch of {grid} blocks of {block} threads"
        assert np.prod(block) <= 1024 and shared_mem <= 48 * 1024
        assert all(n <= 65535 for n in grid[1:])
        dims = (ctypes.c_uint * 6)(*[*grid, 1, 1][:3], *[*block, 1, 1][:3])
        with _ONE_AT_A_TIME:
            self._call(dims, *[_argument(argument) for argument in arguments])


def _argument(value):
    if isinstance(value, np.generic):
        return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
    assert type(value).__name__ == "FakeArray", f"a kernel got {type(value)}"
    return ctypes.c_void_p(value.data.ptr)


def compile_source(source, name):
    """The function called `name` of a CUDA source."""
    parts = source, HEADER.read_text(), Path(__file__).read_text()
    digest = hashlib.sha256("".join(parts).encode()).hexdigest()[:24]
    FOLDER.mkdir(exist_ok=True)
    library = FOLDER / f"{digest}.so"
    if not library.exists():
        text = _hosted(source)
        path = FOLDER / f"{digest}.cpp"
        path.write_text(text)
        command = [COMPILER, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", f"-I{HEADER.parent}"]
        target = FOLDER / f"{digest}.{id(text)}.tmp"
        done = subprocess.run([*command, str(path), "-o", str(target)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + "\n" + text
        target.rename(library)
    return Function(ctypes.CDLL(str(library)), name)


def _hosted(source):
    """The source for the host: dynamic shared memory by name, and an entry for each kernel."""
    expand = [COMPILER, "-E", "-P", "-DNN_HOST", "-x", "c++", "-"]
    source = subprocess.run(expand, input=source, capture_output=True, text=True, check=True).stdout
    source = re.sub(r"struct half_t [^\n]*\n", "", source, count=1)
    source = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1* const \2 = (\1*)dynamic_shared;", source)
    fibers = "true" if re.search(r"__syncthreads|__shfl", source) else "false"
    entries = []
    for name, parameters in _KERNEL.findall(source):
        names = ", ".join(re.findall(r"(\w+)\s*(?:,|$)", parameters))
        entries.append(
            f'extern "C" void {name}_launch(const unsigned* dims, {parameters}) '
            f"{{ emulation::launch(dims, {fibers}, [&] {{ {name}({names}); }}); }}"
        )
    return '#include "host_cuda.hpp"\n' + source + "\n" + "\n".join(entries)
