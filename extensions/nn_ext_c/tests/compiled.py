"""Sources of C compiled and called."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from nn_ext_c import export_source

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
DTYPES = {"float": np.float32, "int8_t": np.int8}


def compiler():
    """The C compiler; the project needs one to be built."""
    found = shutil.which("cc") or shutil.which("gcc")
    assert found, "a C compiler must be installed"
    return found


def compile_files(folder, files, output, *options):
    """Compile without a warning."""
    done = subprocess.run(
        [compiler(), *FLAGS, *options, *files, "-o", folder / output, "-lm"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[:3000]
    return folder / output


class Library:
    """Networks compiled together; sources by name."""

    def __init__(self, folder, sources, optimize="-O1"):
        folder = Path(tempfile.mkdtemp(dir=folder))  # a library that is loaded stays what it is
        self.sources = sources
        for name, source in sources.items():
            (folder / f"{name}.h").write_text(source.header)
        (folder / "all.c").write_text("\n".join(source.code for source in sources.values()))
        self.library = ctypes.CDLL(str(compile_files(folder, [folder / "all.c"], "all.so", optimize, "-shared", "-fPIC")))

    def run(self, name, inputs, shapes, dtype=np.float32):
        """The outputs of one network. What surrounds its memory and its outputs shows what is written outside."""
        size = self.sources[name].arena_bytes
        context = np.full(size + 128, 0xA5, np.uint8)
        arrays = [np.ascontiguousarray(array, dtype) for array in inputs]
        outputs = [np.full(int(np.prod(shape)) + 2, 99, dtype) for shape in shapes]
        pointers = [context[64:].ctypes.data, *(a.ctypes.data for a in arrays), *(a[1:].ctypes.data for a in outputs)]
        status = getattr(self.library, f"{name}_run")(*map(ctypes.c_void_p, pointers))
        assert (context[:64] == 0xA5).all()
        assert (context[64 + size :] == 0xA5).all(), "written past the arena"
        assert all(a[0] == 99 and a[-1] == 99 for a in outputs), "written outside of an output"
        if status:
            raise IndexError(status)
        return [a[1:-1].reshape(shape) for a, shape in zip(outputs, shapes, strict=True)]


class Network:
    """One network, compiled."""

    def __init__(self, folder, outputs, inputs=None, *, optimize="-O1", **options):
        self.source = export_source(outputs, inputs, name="net", **options)
        self.library = Library(folder, {"net": self.source}, optimize)

    def __call__(self, *inputs, shapes, dtype=np.float32):
        return self.library.run("net", inputs, shapes, dtype)


def difference(found, expected):
    """The largest difference, relative to the largest finite magnitude that is expected, but to 1 at least."""
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    if same.all():
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)])
    distance = float(np.abs(found[~same] - expected[~same]).max()) / max(1.0, float(finite.max(initial=0.0)))
    return np.inf if np.isnan(distance) else distance


def code_bytes(folder, source):
    """The bytes of machine code of a network, without its constants."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    (folder / "net.h").write_text(source.header)
    (folder / "net.c").write_text(source.code)
    compile_files(folder, [folder / "net.c"], "net.o", "-Os", "-c")
    listed = subprocess.run(["size", "-A", folder / "net.o"], capture_output=True, text=True, check=True).stdout
    return sum(int(line.split()[1]) for line in listed.splitlines() if line.startswith(".text"))
