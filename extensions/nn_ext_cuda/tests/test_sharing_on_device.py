"""Memory shared with PyTorch on a real device; skipped where there is none."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.ext_utils import get_extension_context
from nn_ext_cuda import plugin

_REFUSAL = plugin.probe()
pytestmark = pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch was built without CUDA")
    with nn.context_scope(get_extension_context("cuda")):
        yield torch


@pytest.mark.parametrize("how", ["dlpack", "interface"])
@pytest.mark.parametrize("in_own_stream", [False, True])
def test_pytorch_reads_and_writes_values_of_ours(torch, how, in_own_stream):
    x = nn.Variable.from_numpy_array(np.arange(1 << 20, dtype=np.float32))
    y = F.mul_scalar(x, 2)
    with torch.cuda.stream(torch.cuda.Stream() if in_own_stream else torch.cuda.current_stream()):
        for step in range(6):  # launch by launch, then as a graph
            x.d = np.full(1 << 20, step)
            y.forward()
            tensor = torch.from_dlpack(y) if how == "dlpack" else torch.as_tensor(y.data, device="cuda")
            assert tensor.is_cuda and float(tensor.sum()) == 2 * step * 2**20
    tensor.fill_(7)
    torch.cuda.synchronize()
    assert y.data.get_data("r").min() == y.data.get_data("r").max() == 7


def test_memory_of_pytorch_is_an_input(torch):
    tensor = torch.ones(4, 3, device="cuda")
    x = nn.Variable((4, 3))
    x.data = nn.NdArray.from_dlpack(tensor)
    y = F.sum(x)
    for value in range(6):
        tensor.fill_(value)
        y.forward()
        assert float(y.d) == 12 * value
