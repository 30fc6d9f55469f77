"""A pytest plugin that runs the cuDNN backend where there is no device: ``-p emulated_cudnn``.

CuPy and cuBLAS are replaced as for nn_ext_cuda, libcudnn by `fake_cudnn`.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parents[2] / "nn_ext_cuda" / "tests" / "emulation")]

import emulated_device as emulated_device  # noqa: E402 -- replaces CuPy
import fake_cudnn  # noqa: E402

from nn_ext_cudnn import library, plugin, precision  # noqa: E402

CUDNN = fake_cudnn.make()
library.library = lambda: CUDNN
plugin.probe = lambda: None
precision.allow_autotuning(False)  # there are no times to measure
