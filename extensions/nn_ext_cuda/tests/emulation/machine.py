"""Compiles the CUDA sources of this package for the host, and launches them on NumPy arrays.

Each launch runs several times: its threads and blocks in other orders first, then in ascending order. Two results that
differ in a bit are a race. What a launch did wrong is in FINDINGS, too, because callers may catch exceptions.

Environment variables:
    NN_EMULATION_ORDERS: The other orders, separated by commas: 1 is the descending one, larger numbers are seeds.
    NN_EMULATION_SANITIZE: Sanitizers of the compiler, such as ALL_SANITIZERS. Their `library` is to be preloaded.
"""

import collections
import contextlib
import ctypes
import functools
import hashlib
import inspect
import math
import mmap
import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import numpy as np

HEADER = Path(__file__).with_name("host_cuda.hpp")
RUNTIME = Path(__file__).with_name("host_runtime.cpp")
COMPILER = shutil.which("g++")
FOLDER = Path(tempfile.gettempdir()) / "nn_ext_cuda_emulation"
ORDERS = [int(order) for order in os.environ.get("NN_EMULATION_ORDERS", "1").split(",") if order]
#: Also what is undefined in C++ and defined on a device, where a kernel had better not rely on it.
ALL_SANITIZERS = "address,undefined,float-cast-overflow"
SANITIZERS = os.environ.get("NN_EMULATION_SANITIZE", "")
#: Launches that devices refuse.
MAX_THREADS, MAX_SHARED_BYTES, MAX_GRID = 1024, 48 * 1024, (2**31 - 1, 65535, 65535)
#: Launches on more memory run in ascending order only.
MAX_COMPARED_BYTES = 1 << 28
#: Launches of one kernel with equal numbers of blocks and threads run in other orders so often.
MAX_COMPARED = 3
_COMPARED = collections.Counter()
#: Faults of launches.
FINDINGS = []
#: The blocks and threads of a launch are global variables of a library, and ctypes lets other threads run meanwhile.
_ONE_AT_A_TIME = threading.Lock()
#: Stacks of the threads of a block: pages that nobody touches cost nothing.
_STACKS = mmap.mmap(-1, MAX_THREADS * 256 * 1024, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
_STACKS_AT = ctypes.addressof(ctypes.c_char.from_buffer(_STACKS))
#: The type of each column of a table of addresses, where the kernel takes an address from it.
_COLUMN = re.compile(r"\(\s*(?:const\s+)?(\w+)\s*\*\s*\)\s*pointers\[")
_ITEM_BYTES = {"float": 4, "double": 8, "half_t": 2, "bfloat_t": 2}
_KERNEL = re.compile(r'extern "C" __global__ void (?:__launch_bounds__\((\w+)\) )?(\w+)\(([^)]*)\)')


class LaunchError(AssertionError):
    """Something that a device would not do, or not do in the same way each time."""


class Function:
    """A kernel compiled for the host, launched as CuPy's functions are."""

    def __init__(self, library, name, path):
        self._name = name
        self._lines = path.with_suffix(".cpp")
        self._call = library[f"{name}_launch"]
        self._call.restype = ctypes.c_char_p
        bounds, _, parameters = next(found for found in _KERNEL.findall(self._lines.read_text()) if found[1] == name)
        self._max_threads = int(bounds or MAX_THREADS)
        text = self._lines.read_text()
        self._real_bytes = 8 if "typedef double R;" in text else 4
        self._columns = _COLUMN.findall(text)
        self._parameters = re.findall(r"(\w+)\s*(?:,|$)", parameters)

    def __call__(self, grid, block, arguments, *, shared_mem=0):
        grid, block = [*grid, 1, 1][:3], [*block, 1, 1][:3]
        assert all(n >= 1 for n in (*grid, *block)), f"launch of {grid} blocks of {block} threads"
        assert math.prod(block) <= self._max_threads and block[2] <= 64 and shared_mem <= MAX_SHARED_BYTES
        assert all(n <= limit for n, limit in zip(grid, MAX_GRID, strict=True))
        assert len(arguments) == len(self._parameters)
        dims = *grid, *block, shared_mem
        with _ONE_AT_A_TIME:
            try:
                if _ENDS.n is not None:
                    self._run_ends(dims, arguments)
                elif ORDERS and self._is_new(dims):
                    self._compare(dims, arguments)
                else:
                    self._run(dims, 0, arguments)
            except LaunchError as error:
                FINDINGS.append(str(error))
                raise

    def _is_new(self, dims):
        """Return whether such a launch has not been compared often enough; each step of a training is alike."""
        _COMPARED[self._lines, self._name, dims] += 1
        return _COMPARED[self._lines, self._name, dims] <= MAX_COMPARED

    def _compare(self, dims, arguments):
        """Run in other orders, each from the same memory, and at last in ascending order."""
        places = _places(arguments) + self._places_of_table(arguments)
        orders = ORDERS
        if sum(n_bytes for _, n_bytes in places) > MAX_COMPARED_BYTES:
            orders, places = [], []
        before = [ctypes.string_at(*place) for place in places]
        others = []
        for order in orders:
            self._run(dims, order, arguments)
            others.append([ctypes.string_at(*place) for place in places])
            for place, old, new in zip(places, before, others[-1], strict=True):
                if old != new:
                    ctypes.memmove(place[0], old, place[1])
        self._run(dims, 0, arguments)
        results = [ctypes.string_at(*place) for place in places]
        for order, found in zip(orders, others, strict=True):
            if found != results:
                raise LaunchError(f"{self._name}: threads in order {order} give other bits than in ascending order: a race")

    def _run_ends(self, dims, arguments):
        """Run the first and the last blocks only."""
        n = math.prod(dims[:3])
        middle = min(_ENDS.n, n)
        self._run(dims, 0, arguments, 0, middle)
        self._run(dims, 0, arguments, max(n - _ENDS.n, middle), n)

    def _run(self, dims, order, arguments, first_block=0, last_block=None):
        last_block = math.prod(dims[:3]) if last_block is None else last_block
        numbers = (*dims, order, first_block, last_block, _STACKS_AT)
        with _exact(arguments) as given:
            said = self._call((ctypes.c_uint64 * len(numbers))(*numbers), *given)
        if said is not None:
            lines = self._lines.read_text().splitlines()
            named = re.sub(r"line (\d+)", lambda found: f"line {found[1]} `{lines[int(found[1]) - 1].strip()}`", said.decode())
            raise LaunchError(f"{self._name}: {named}; the lines are those of {self._lines}")

    def _places_of_table(self, arguments):
        """The memory that a kernel over many arrays reads and writes: addresses and sizes are in tables."""
        if "pointers" not in self._parameters:
            return []
        pointers, sizes = (arguments[self._parameters.index(name)].view(np.ndarray) for name in ("pointers", "sizes"))
        items = [_ITEM_BYTES.get(name, self._real_bytes) for name in self._columns]
        if len(items) != pointers.shape[1]:  # columns that this kernel does not read: all of them hold numbers of R
            items = [self._real_bytes] * pointers.shape[1]
        found = zip(pointers, sizes, strict=True)
        return [(int(pointer), int(n) * item) for row, n in found for pointer, item in zip(row, items, strict=True) if n]


class _Ends:
    """How many blocks at both ends of a grid are run; None: all of them."""

    n = None


_ENDS = _Ends()


@contextlib.contextmanager
def ends_only(n):
    """Launches in the block run `n` blocks at each end of their grid, for arrays that would take too long."""
    _ENDS.n = n
    try:
        yield
    finally:
        _ENDS.n = None


def _places(arguments):
    """Address and number of bytes of each array among the arguments."""
    bounds = [np.lib.array_utils.byte_bounds(value) for value in arguments if isinstance(value, np.ndarray) and value.size]
    return [(first, last - first) for first, last in dict.fromkeys(bounds)]


@contextlib.contextmanager
def _exact(arguments):
    """The arguments for a kernel; with sanitizers arrays are copied to where nothing else is in front of them and after them.

    Otherwise a part of an array could be left without leaving the array. Addresses stay what they are modulo 16.
    """
    given, blocks = [_argument(argument) for argument in arguments], []
    places = _joined(_places(arguments)) if SANITIZERS else []
    for first, end in places if sum(end - first for first, end in places) <= MAX_COMPARED_BYTES else []:
        block = np.empty(first % 16 + end - first, np.uint8)
        blocks.append((first, end, block, block.ctypes.data + first % 16))
        ctypes.memmove(blocks[-1][-1], first, end - first)
    for k, argument in enumerate(arguments):
        for first, end, _, moved in blocks:
            if isinstance(argument, np.ndarray) and first <= given[k].value < end:
                given[k] = ctypes.c_void_p(given[k].value - first + moved)
                break
    yield given
    for first, end, _, moved in blocks:
        ctypes.memmove(first, moved, end - first)


def _joined(places):
    """First and last addresses of places, those that overlap as one."""
    joined = []
    for first, n_bytes in sorted(places):
        if joined and first < joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], first + n_bytes)
        else:
            joined.append([first, first + n_bytes])
    return joined


def _argument(value):
    if isinstance(value, np.generic):
        return np.ctypeslib.as_ctypes_type(value.dtype)(value.item())
    assert type(value).__name__ == "FakeArray", f"a kernel got {type(value)}"
    return ctypes.c_void_p(value.data.ptr)


@functools.cache
def compile_source(source, name):
    """The function called `name` of a CUDA source."""
    options = ["-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off", *_sanitizing()]
    digest = _digest(source, HEADER.read_text(), inspect.getsource(_hosted), *options)
    compiled, path = FOLDER / f"{digest}.so", FOLDER / f"{digest}.cpp"
    header = _prepared(tuple(options))
    if not compiled.exists():
        text = _hosted(source)
        with _written(path) as own:
            own.write_text(text)
        with _written(compiled) as own:
            _compile(*options, "-shared", f"-I{header}", str(path), "-o", str(own))
    return Function(ctypes.CDLL(str(compiled)), name, path)


@functools.cache
def _prepared(options):
    """Return the folder of the compiled header; kernels find the runtime, compiled with these options, in the process."""
    folder = FOLDER / f"runtime-{_digest(HEADER.read_text(), RUNTIME.read_text(), *options)}"
    folder.mkdir(parents=True, exist_ok=True)
    header, runtime = folder / HEADER.name, folder / "runtime.so"
    if not runtime.exists():
        with _written(header) as own:
            own.write_text(HEADER.read_text())
        with _written(folder / f"{HEADER.name}.gch") as own:
            _compile(*options, "-x", "c++-header", str(header), "-o", str(own))
        with _written(runtime) as own:
            _compile(*options, "-O2", "-shared", f"-I{folder}", str(RUNTIME), "-o", str(own))
    ctypes.CDLL(str(runtime), ctypes.RTLD_GLOBAL)
    return folder


@contextlib.contextmanager
def _written(path):
    """Give a path for the block to write to, which becomes `path` then: other processes may write it at the same time."""
    own = path.with_name(f"{os.getpid()}-{threading.get_ident()}-{path.name}")
    yield own
    own.replace(path)


def _digest(*parts):
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:24]


def _compiler(*options, text=None):
    """Run the compiler, which does without the sanitizers that this process may have."""
    own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return subprocess.run([COMPILER, *options], input=text, capture_output=True, text=True, check=False, env=own)


def _compile(*options):
    done = _compiler(*options)
    assert done.returncode == 0, done.stderr


def library(name):
    """The path of a library of the compiler, or None where it is missing."""
    path = Path(_compiler(f"-print-file-name={name}").stdout.strip())
    return str(path) if path.is_absolute() else None


def _sanitizing():
    """Options that let the compiler add checks; the kernels do not call each other, and static shared memory is a section."""
    if not SANITIZERS:
        return []
    return [f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all", "-fsanitize-sections=nn_shared", "-g"]


def _hosted(source):
    """The source for the host: dynamic shared memory by name, and an entry for each kernel."""
    if "#define" in source:  # heads of kernels may consist of macros
        source = _compiler("-E", "-P", "-DNN_HOST", "-x", "c++", "-", text=source).stdout
    source = re.sub(r"//[^\n]*", "", source)  # comments name what is looked for below
    source = re.sub(r"struct half_t [^\n]*\n", "", source, count=1)
    source = re.sub(r"extern __shared__ (\w+) (\w+)\[\];", r"\1* const \2 = (\1*)dynamic_shared;", source)
    fibers = "true" if re.search(r"__syncthreads|__shfl", source) else "false"
    entries = []
    for _, name, parameters in _KERNEL.findall(source):
        names = ", ".join(re.findall(r"(\w+)\s*(?:,|$)", parameters))
        entries.append(
            f'extern "C" const char* {name}_launch(const emulation::Grid* launched, {parameters}) '
            f"{{ return emulation::launch(*launched, {fibers}, [&] {{ {name}({names}); }}); }}"
        )
    return '#include "host_cuda.hpp"\n' + source + "\n" + "\n".join(entries)
