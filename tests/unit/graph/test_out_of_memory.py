"""Arrays that do not fit into memory: the error names the function, shapes and a remedy, and leaves everything as it was."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import HostMemoryError

#: More bytes than a process can address.
_LONG = 2**23


@pytest.fixture(params=["cpu", "reference"], autouse=True)
def backend(request):
    with nn.context_scope(nn.Context([request.param])):
        yield


def _require_named(error):
    text = str(error.value)
    assert text.startswith("broadcast: its results must fit into the memory of the host, got inputs of shape (1, 8388608)")
    assert "hint: take a smaller batch" in text
    assert isinstance(error.value, MemoryError)


def test_a_graph_is_as_before():
    x = nn.Variable((1, _LONG))
    y = F.broadcast(x, (_LONG, _LONG))
    z = x * 2
    x.d = 3
    z.forward()
    with pytest.raises(HostMemoryError) as error:
        y.forward()
    _require_named(error)
    assert "results (8388608, 8388608)" in str(error.value)
    assert z.d[0, 0] == 6
    assert x.d[0, -1] == 3
    with pytest.raises(HostMemoryError):
        nn.forward_all([z, y])
    z.forward()
    assert z.d[0, -1] == 6


@pytest.mark.parametrize("dynamic", [False, True])
def test_calls_that_compute_at_once(dynamic):
    x = nn.Variable((1, _LONG)) if dynamic else nn.NdArray((1, _LONG))
    with nn.auto_forward(dynamic), pytest.raises(HostMemoryError) as error:
        F.broadcast(x, (_LONG, _LONG))
    _require_named(error)
    with nn.auto_forward(dynamic):
        small = F.broadcast(x, (2, _LONG))
    assert small.shape == (2, _LONG)


def test_arrays_name_their_shape():
    x = nn.NdArray((_LONG, _LONG))
    with pytest.raises(HostMemoryError, match=r"memory: .* got 262144.0 GiB for \(8388608, 8388608\) of float32"):
        x.data  # noqa: B018
    x.fill(2)
    with pytest.raises(HostMemoryError):
        x.data = np.ones(1)
    assert x.shape == (_LONG, _LONG)
