"""The conformance kit on this backend where there is no device: CuPy and cuBLAS are stand-ins, kernels run on the host."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: Options of each run: all samples where tiles and orders of sums meet. `make emulated` has one of every function.
RUNS = {
    "attention": ["--tier=core", "-k", "Attention or DropoutMask"],
    "augmenting": ["--tier=core", "-k", "Augmentation or RandomCrop or RandomErase or RandomFlip or RandomShift or RandB"],
    "borders": ["--tier=core", "-k", "Pad or Shift or AffineGrid or MatrixDiag or Meshgrid or SearchSorted"],
    "contraction": ["--tier=core", "-k", "Einsum or BatchMatmul or Affine"],
    "deformable": ["--tier=core", "-k", "DeformableConvolution"],
    "extrema": ["--tier=core", "-k", "cuda-Max- or cuda-Min-"],
    "factors": ["--tier=core", "-k", "BatchInv or BatchDet or BatchLogdet or BatchCholesky"],
    "fourier": ["--tier=core", "-k", "FFT or STFT"],
    "images": ["--tier=core", "-k", "WarpBy or RoiAlign or Interpolate"],
    "lengths": ["--tier=core", "-k", "NormNormalization or MeanSubtraction or VATNoise or KLMultinomial"],
    "levels": ["--tier=core", "-k", "Quantize or Prune or Binary or INQ"],
    "patches": ["--tier=core", "-k", "PatchCorrelation or AdaptiveSeparable"],
    "reductions": ["--tier=core", "-k", "cuda-Norm- or cuda-Sum- or cuda-Mean- or cuda-Prod- or cuda-Cum"],
    "recurrent": ["--tier=core", "-k", "cuda-LSTM or cuda-GRU or cuda-RNN"],
    "resizing": ["--tier=core", "-k", "ONNXResize"],
    "weights": ["--tier=core", "-k", "SpectralNorm or WeightNormalization"],
}


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_kernels_conform(run):
    """One process for each run: the stand-ins replace modules for good."""
    if shutil.which("g++") is None:
        pytest.skip("the emulated device compiles kernels with g++, which is not installed")
    paths = [str(HERE / "emulation"), *filter(None, sys.path)]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "nn_core.testing.pytest_plugin", "-p", "emulated_device"]
    command += ["--backend=cuda", "--require-backend=cuda", *RUNS[run]]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, str(HERE / "test_conformance.py")], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " failed" not in done.stdout
