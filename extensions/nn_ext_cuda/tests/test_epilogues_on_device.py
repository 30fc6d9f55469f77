"""Products with activations by the true cublasLt, on a real device; skipped where there is none."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.ext_utils import get_extension_context
from nn_ext_cuda import plugin

_REFUSAL = plugin.probe()
pytestmark = pytest.mark.skipif(_REFUSAL is not None, reason=str(_REFUSAL))

#: The largest difference, as a part of the largest value.
TOLERANCE = {"float": 1e-4, "half": 1e-2, "bfloat16": 5e-2}


@pytest.fixture
def fused(monkeypatch):
    """The epilogues that products have taken over."""
    from nn_ext_cuda.gemm import cublaslt

    found = []
    start = cublaslt.Prepared.__init__

    def noting(self, given, product, arrays, fusion=None):
        start(self, given, product, arrays, fusion)
        if fusion is not None and self.algorithm is not None:
            found.append(fusion.epilogue.name)

    monkeypatch.setattr(cublaslt.Prepared, "__init__", noting)
    return found


def network(activation, values, need_grad):
    x = nn.Variable.from_numpy_array(values, need_grad=need_grad)
    y = activation(PF.affine(x, 512, name="a"))
    return x, activation(PF.affine(y, 128, name="b"))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("activation", [F.relu, F.gelu])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_activations_within_products_are_those_apart(fused, dtype, activation, training):
    values = np.random.default_rng(0).normal(size=(64, 128)).astype("float32")
    results = []
    for context in (get_extension_context("cuda", type_config=dtype), nn.Context(["reference:float"])):
        nn.clear_parameters()
        nn.seed(3)
        with nn.context_scope(context):
            x, y = network(activation, values, training)
            for _ in range(5):
                if not training:
                    y.forward(clear_buffer=True)
                    continue
                y.forward(clear_no_need_grad=True)
                x.grad.zero()
                y.backward(1.0, clear_buffer=True)
            results.append(x.g.copy() if training else y.d.copy())
    found, expected = results
    # elements beside the kink of ReLU may fall on either side of it, and each is one of 512 that add up
    tolerance = TOLERANCE[dtype] * (10 if activation is F.relu and training else 1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max(), err_msg=str(set(fused)))
    print(dtype, activation.__name__, "fused:", sorted(set(fused)))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_nan_is_not_hidden_by_relu(fused, dtype):
    nn.clear_parameters()
    with nn.context_scope(get_extension_context("cuda", type_config=dtype)):
        y = F.relu(PF.affine(nn.Variable.from_numpy_array(np.ones((64, 128), "float32")), 256, name="a"))
        for value in (0.0, 0.0, 0.0, 0.0, np.nan):
            nn.get_parameters()["a/affine/b"].d = value
            y.forward(clear_buffer=True)
    assert np.isnan(y.d).all(), sorted(set(fused))
