"""Things that `import nn_core` does not do."""

import subprocess
import sys

from benchmarks.import_time import write_plugins

DENIED = {
    "click", "h5py", "importlib_metadata", "matplotlib", "ml_dtypes", "nn_core.operators.reference",
    "nn_core.operators.spec.load",
    "packaging", "pip", "pluggy", "pytest", "rich", "scipy", "setuptools", "torch", "tqdm", "yaml",
}  # fmt: skip


def imported_by(code: str) -> set[str]:
    """Names of the modules that a program has imported at its end."""
    code += "\nimport sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_core_loads_numpy_and_the_standard_library_only():
    modules = imported_by("import nn_core, nn_core.functions, nn_core.ext_utils")
    assert modules & DENIED == set()
    more_than_numpy = modules - imported_by("import numpy, numpy.random")
    assert {name.partition(".")[0] for name in more_than_numpy} - sys.stdlib_module_names == {"nn_core"}


def test_importing_the_core_loads_no_plugin():
    assert {name for name in imported_by("import nn_core") if name.startswith("nn_ext_")} == set()


def test_of_fifty_plugins_a_name_imports_its_owner_and_a_typing_error_none(tmp_path, monkeypatch):
    write_plugins(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    lines = [
        "import nn_core.functions as F, sys",
        "loaded = lambda: [name for name in sys.modules if name.startswith('nn_ext_dummy')]",
        "assert 'dummy7_twice' in dir(F) and not hasattr(F, 'taanh') and loaded() == []",
        "assert not hasattr(F, 'dummy7_twise') and loaded() in ([], ['nn_ext_dummy7'])",
        "F.dummy7_twice; assert loaded() == ['nn_ext_dummy7']",
    ]
    assert "nn_ext_dummy7" in imported_by("\n".join(lines))
