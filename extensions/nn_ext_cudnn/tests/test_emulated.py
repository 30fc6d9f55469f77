"""The conformance kit on this backend where there is no device: CuPy, cuBLAS and cuDNN are stand-ins (see ``emulation``)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


#: The tests that each process runs.
GROUPS = {
    "convolution": "(cudnn-Convolution or DepthwiseConvolution) and (float32 or float16)",
    "deconvolution": "(cudnn-Deconvolution or DepthwiseDeconvolution) and (float32 or float16)",
    "fused_convolution": "cudnn-FusedConvolution and (float32 or float16)",
    "attention": "cudnn-ScaledDotProductAttention and (float16 or bfloat16)",
    "pooling": "cudnn-MaxPooling or cudnn-SumPooling or cudnn-AveragePooling or cudnn-GlobalAveragePooling",
    "softmax": "cudnn-Softmax- or cudnn-LogSoftmax-",
    "batch_normalization": "cudnn-BatchNormalization or cudnn-FusedBatchNormalization",
    "recurrent": "(cudnn-RNN or cudnn-LSTM or cudnn-GRU) and (float32 or float16)",
}


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_kernels_conform(group):
    """One process for each group of functions: the stand-ins replace modules for good."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    paths = [str(HERE / "emulation"), *filter(None, sys.path)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "nn_core.testing.pytest_plugin", "-p", "emulated_cudnn"]
    command += ["--backend=cudnn", "--require-backend=cudnn", "-k", GROUPS[group]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(HERE / "test_conformance.py")], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " failed" not in done.stdout
