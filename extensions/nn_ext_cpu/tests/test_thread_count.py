"""The number of threads that was asked for is the number that computes, in libraries below the kernels too."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import numpy as np
import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

def n_threads():
    return len(os.listdir("/proc/self/task"))

def run(function, *shapes, **arguments):
    inputs = [nn.Variable.from_numpy_array(np.ones(shape, np.float32), need_grad=True) for shape in shapes]
    y = function(*inputs, **arguments)
    for _ in range(2):
        y.forward()
        y.backward()

def compute():
    run(F.convolution, (4, 64, 28, 28), (64, 64, 3, 3), pad=(1, 1))
    run(F.convolution, (4, 64, 28, 28), (64, 64, 1, 1))
    run(F.deconvolution, (4, 32, 14, 14), (32, 16, 4, 4), stride=(2, 2))
    run(F.affine, (64, 512), (512, 512))
    run(F.batch_matmul, (2, 300, 400), (2, 400, 300))
    run(F.layer_normalization, (512, 300), (1, 300), (1, 300))
    run(F.softmax, (500, 300))
    run(F.sum, (500, 1000))

before = n_threads()
nn.set_default_context(get_extension_context("cpu"))
found = []
for threads in map(int, sys.argv[1:]):
    if threads:
        nn.set_num_threads(threads)
    compute()
    found.append(n_threads() - before)
print(*found)
"""


def threads_beside_the_first(*numbers: int, **environment: str) -> str:
    command = [sys.executable, "-c", PROGRAM, *map(str, numbers)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "4", **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_no_more_threads_compute_than_were_asked_for() -> None:
    assert threads_beside_the_first(1, 3) == "0 2"


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_the_setting_of_the_environment() -> None:
    assert threads_beside_the_first(0, NN_CORE_NUM_THREADS="1") == "0"
