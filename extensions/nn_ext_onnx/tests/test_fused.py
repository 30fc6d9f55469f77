"""Functions of onnxruntime that stand for several of ONNX, beside onnxruntime."""

import numpy as np
import onnx
import pytest

from extensions.nn_ext_onnx.tests.quantized import expected, make, model_of
from nn_core.ext import ArgumentError
from nn_ext_onnx import load
from nn_ext_onnx.backend import run_model


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


BORDER, SLOPE = {"pads": [1, 1, 1, 1]}, {"activation_params": [0.3, 0.4]}
ROWS, IMAGE = drawn(2, 3, 8), drawn(2, 4, 6, 5)
CASES = {
    "gelu": ("Gelu", {}, [ROWS]),
    "bias_gelu": ("BiasGelu", {}, [ROWS, drawn(8)]),
    "fast_gelu": ("FastGelu", {}, [ROWS]),
    "fast_gelu_with_bias": ("FastGelu", {}, [ROWS, drawn(8)]),
    "quick_gelu": ("QuickGelu", {"alpha": 1.5}, [ROWS]),
    "matmul": ("FusedMatMul", {"alpha": 0.5, "transB": 1}, [ROWS, drawn(2, 5, 8)]),
    "matmul_of_columns": ("FusedMatMul", {"transA": 1}, [ROWS, drawn(3, 5)]),
    "gemm": ("FusedGemm", {"activation": "LeakyRelu", "activation_alpha": 0.3, "transB": 1}, [ROWS[0], drawn(5, 8), drawn(5)]),
    "gemm_relu": ("FusedGemm", {"activation": "Relu"}, [ROWS[0], drawn(8, 5)]),
    "conv": ("FusedConv", {"activation": "Clip", "activation_params": [-0.5, 1.0], **BORDER}, [IMAGE, drawn(3, 4, 3, 3)]),
    "conv_and_sum": ("FusedConv", {"activation": "Relu"}, [IMAGE, drawn(3, 4, 1, 1), drawn(3), drawn(2, 3, 6, 5)]),
    "conv_hard_sigmoid": ("FusedConv", {"activation": "HardSigmoid", **SLOPE}, [IMAGE, drawn(3, 4, 2, 2)]),
    "skip": ("SkipLayerNormalization", {"epsilon": 1e-3}, [ROWS, drawn(2, 3, 8) / 2, drawn(8), drawn(8), drawn(8)]),
    "skip_without_beta": ("SkipLayerNormalization", {}, [ROWS, drawn(2, 3, 8) / 2, drawn(8)]),
    "skip_simplified": ("SkipSimplifiedLayerNormalization", {"epsilon": 1e-3}, [ROWS, drawn(2, 3, 8) / 2, drawn(8), drawn(8)]),
}  # fmt: skip


def one_node(kind, attributes, arrays, outputs=("y",)):
    names = [f"i{place}" for place in range(len(arrays))]
    constants = dict(zip(names[1:], arrays[1:], strict=True))
    model = model_of(
        [make(kind, names, outputs, domain="com.microsoft", **attributes)], {"i0": list(arrays[0].shape)}, {}, constants
    )
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs if name)
    return model, {"i0": arrays[0]}


@pytest.mark.parametrize("case", sorted(CASES))
def test_fused_functions(case):
    model, feed = one_node(*CASES[case])
    np.testing.assert_allclose(run_model(model, feed)[0], expected(model, feed)[0], rtol=1e-5, atol=2e-6)


def test_the_sum_that_is_normalized_is_an_output():
    model, feed = one_node(*CASES["skip"], outputs=("y", "", "", "sum"))
    for found, wanted in zip(run_model(model, feed), expected(model, feed), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


def test_unknown_activations_are_refused():
    model, _ = one_node("FusedConv", {"activation": "Wave"}, [IMAGE, drawn(3, 4, 1, 1)])
    with pytest.raises(ArgumentError, match=r"com\.microsoft\.FusedConv .*: activation 'Wave'"):
        load(model)
