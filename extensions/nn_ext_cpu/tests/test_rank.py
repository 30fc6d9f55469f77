"""Arrays of more axes than the native loops have are left to others."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


@pytest.mark.parametrize("function", [F.exp, lambda x: F.broadcast(x, (2,) * 3 + (1,) * 17), lambda x: x + x[..., ::-1]])
def test_many_axes(function):
    x = nn.NdArray.from_numpy_array(np.full((1,) * 20, 0.5, np.float32))
    with nn.context_scope(nn.Context(["reference"])):
        expected = function(x).data
    with nn.context_scope(nn.Context(["cpu"])):
        np.testing.assert_allclose(function(x).data, expected, rtol=1e-6)
