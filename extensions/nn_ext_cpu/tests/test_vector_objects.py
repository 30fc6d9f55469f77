"""Every build checks the objects of one instruction set: they hold nothing that other machines would run."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "cmake" / "check_vector_objects.py"
CLEAN = "namespace nn_cpu::avx2 { inline int twice(int x) { return 2 * x; } int used(int x) { return twice(x); } }"
SOURCES = {
    CLEAN: "",
    "int made(); const int number = made(); int used() { return number; }": "runs at load",
    "template <class T> T twice(T x) { return x + x; } template int twice<int>(int);": "is weak",
    "struct Held { virtual int get() { return 1; } }; Held& used() { static Held held; return held; }": "is weak",
    "void run(); struct End { ~End(); }; void used() { End end; run(); }": "",
    "inline const double table[] = {1.0, 2.0}; const double* used() { return table; }": "table is weak",
}


@pytest.mark.parametrize("optimized", ["-O0", "-O1"])
@pytest.mark.parametrize(("source", "fault"), SOURCES.items())
def test_what_other_machines_would_run_is_found(source: str, fault: str, optimized: str, tmp_path: Path) -> None:
    (tmp_path / "made.cpp").write_text(source)
    compiled = ["c++", "-std=c++17", optimized, "-fPIC", "-c", "-o", tmp_path / "made.o", tmp_path / "made.cpp"]
    subprocess.run(compiled, check=True)
    command = [sys.executable, SCRIPT, shutil.which("nm"), shutil.which("objdump"), tmp_path / "made.o"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == bool(fault), result.stderr
    assert fault in result.stderr
