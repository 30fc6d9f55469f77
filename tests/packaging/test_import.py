"""What `import nn_core` does not do."""

import subprocess
import sys

DENIED = {
    "click", "h5py", "importlib_metadata", "matplotlib", "ml_dtypes", "nn_core.reference", "nn_core.spec.load",
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
