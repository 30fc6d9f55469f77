"""Attention on the CPU: its memory, and that results do not depend on the number of threads."""

import subprocess
import sys

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

#: Runs both passes on one head of 8,192 tokens with a mask, and prints by how many MB the peak of its memory has grown.
MEASURED = """
from pathlib import Path
import numpy as np
import nn_core as nn, nn_core.functions as F
from nn_core.ext_utils import get_extension_context

def run(length):
    arrays = [np.ones((length, 16), np.float32) for _ in range(3)]
    mask = np.zeros({mask}, np.float32)
    variables = [nn.Variable.from_numpy_array(array, need_grad=True) for array in [*arrays, mask]]
    y = F.scaled_dot_product_attention(*variables, is_causal=True)
    y.forward()
    y.backward()

def peak_mb():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

nn.set_num_threads(2)
with nn.context_scope(get_extension_context("cpu")):
    run(128)
    before = peak_mb()
    run(8192)
print(peak_mb() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("mask", ["length", "(length, 1)"])
def test_memory_is_linear_in_the_lengths(mask):
    program = MEASURED.replace("{mask}", mask)
    grown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(grown) < 40  # the weights alone would take 256 MB


@pytest.mark.parametrize("n_heads", [1, 3, 9])
def test_results_do_not_depend_on_the_number_of_threads(n_heads):
    from nn_ext_cpu import _native

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((n_heads, 300, 16)) for _ in range(3)]
    mask = rng.standard_normal((n_heads, 1, 300))
    results, before = [], _native.num_threads()
    for threads in (1, 2, 3):
        _native.set_num_threads(threads)
        with nn.context_scope(get_extension_context("cpu")):
            variables = [nn.Variable.from_numpy_array(array, need_grad=True) for array in [*arrays, mask]]
            y = F.scaled_dot_product_attention(*variables)
            y.forward()
            y.backward(grad=arrays[0])
        results.append([y.d.copy(), *[variable.g.copy() for variable in variables]])
    _native.set_num_threads(before)
    for given in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(given, results[0], strict=True))


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("function", [F.scaled_dot_product_attention, F.dropout_attention])
def test_nan_does_not_reach_the_gradients_of_keys_that_come_later(function, backend):
    rng = np.random.default_rng(0)
    q, k, v = (nn.Variable.from_numpy_array(rng.standard_normal((2, 150, 5)), need_grad=True) for _ in range(3))
    mask = nn.Variable.from_numpy_array(np.zeros((2, 150, 150)), need_grad=True)
    mask.d[0, 70, 3] = np.nan
    with nn.context_scope(nn.Context([f"{backend}:float"])):
        y = function(q, k, v, mask, is_causal=True)
    results = y if isinstance(y, tuple) else (y,)
    nn.seed(313)
    results[0].forward()
    results[0].backward()
    for x in (k, v):
        bad = np.isnan(x.g).any(axis=2)
        assert bad[0].tolist() == [n <= 70 for n in range(150)]
        assert not bad[1].any()
    assert np.isnan(q.g).any(axis=2).sum() == 1
    assert np.isnan(mask.g[0]).sum(axis=1).tolist() == [71 if n == 70 else 0 for n in range(150)]
