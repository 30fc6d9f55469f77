"""The short checks of `tools.release.smoke`, which a new device runs first, where there is no device."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: The stand-ins take the place of libraries in a process of their own.
PROGRAM = "import emulated_cudnn; from tools.release.smoke import main; main()"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cudnn", "cuda"])
def test_all_checks_pass_on_the_emulated_device(name):
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    if not (ROOT / "tools" / "smoke.py").exists():
        pytest.skip("the checks are in the repository, which is not here")
    paths = [str(ROOT), str(Path(__file__).with_name("emulation")), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, "-c", name, "--short"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert done.stdout.count("without graphs, with graphs, together; ") == 9
