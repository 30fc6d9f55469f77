"""Signals that arrive in the middle of native kernels: the process lives, and results keep their bits."""

import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys, time
import numpy as np
import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context

nn.set_default_context(get_extension_context("cpu"))
nn.set_num_threads(int(sys.argv[1]))
signal.signal(signal.SIGALRM, lambda *_: None)
rng = np.random.default_rng(0)

def variable(*shape):
    return nn.Variable.from_numpy_array(rng.normal(size=shape).astype(np.float32), need_grad=True)

# shapes that generated code of oneDNN multiplied with its stack pointer on the heap
products = [F.batch_matmul(variable(1, 128, 512), variable(1, 128, 512), transpose_b=True) for _ in range(20)]
products += [F.affine(variable(128, 512), variable(512, 128)) for _ in range(20)]
y = F.add_n(*[F.reshape(product, (128, 128)) for product in products])

def bits():
    y.forward()
    y.backward()
    return y.d.tobytes(), products[0].parent.inputs[0].g.tobytes()

def again():
    for product in products:
        for x in product.parent.inputs:
            x.grad.zero()
    return bits()

undisturbed = again()
signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
start = time.monotonic()
while time.monotonic() - start < 2:
    assert again() == undisturbed
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no interval timers")
@pytest.mark.parametrize("threads", [1, 2])
def test_products_survive_signals(threads: int) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, str(threads)], check=True)
