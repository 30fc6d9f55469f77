"""Types of few bits, in which nothing is computed, and the longest integers."""

import numpy as np
import pytest
from onnx import TensorProto, helper, parser

from nn_ext_onnx import load
from nn_ext_onnx.backend import run_model

NARROW = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float4e2m1", "int4", "uint4", "int2", "uint2")


def text_model(text, opset=25):
    return parser.parse_model(f'<ir_version: 13, opset_import: ["": {opset}]> g {text}')


def dtype_of(name):
    return np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name.upper())))


def numbers_of(name):
    """Return all numbers that a narrow type has, but NaN and infinities."""
    bits = np.arange(16, dtype=np.uint8) if name.startswith(("int", "uint", "float4")) else np.arange(256, dtype=np.uint8)
    if name.startswith(("int", "uint")):
        info = {"int4": (-8, 8), "uint4": (0, 16), "int2": (-2, 2), "uint2": (0, 4)}[name]
        return np.arange(*info).astype(dtype_of(name))
    values = bits.view(dtype_of(name))
    return values[np.isfinite(values.astype(np.float32))]


@pytest.mark.parametrize("name", NARROW)
def test_narrow_numbers_are_those_that_were_given(name):
    values = numbers_of(name)
    number = getattr(TensorProto, name.upper())
    model = text_model(
        f"({name}[N] x, float[N] f) => (float[N] y, {name}[N] z, {name}[N, 1] t) {{"
        f"y = Cast<to = 1>(x)  z = Cast<to = {number}>(f)  axes = Constant<value_ints = [1]>()  t = Unsqueeze(x, axes) }}"
    )
    y, z, t = run_model(model, [values, values.astype(np.float32)])
    np.testing.assert_array_equal(y, values.astype(np.float32))
    assert z.dtype == t.dtype == values.dtype
    np.testing.assert_array_equal(z.astype(np.float32), values.astype(np.float32))
    np.testing.assert_array_equal(t.astype(np.float32), values.astype(np.float32)[:, None])


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_levels_of_four_bits_are_limited_and_rounded_to_even(name):
    model = text_model(
        f"(float[N] x, {name}[N] l) => ({name}[N] y, float[N] z) {{ s = Constant<value_float = 0.5>()  zero = Cast<to = "
        f"{getattr(TensorProto, name.upper())}>(s)  y = QuantizeLinear(x, s, zero)  z = DequantizeLinear(l, s) }}"
    )
    x, levels = np.array([-100, -1.25, 0.25, 0.75, 1.25, 100], np.float32), numbers_of(name)[:6]
    y, z = run_model(model, [x, levels])
    low, high = (-8, 7) if name == "int4" else (0, 15)
    assert y.astype(int).tolist() == [low, max(-2, low), 0, 2, 2, high]
    assert z.tolist() == (levels.astype(np.float32) / 2).tolist()


def test_the_longest_integers_are_exact():
    model = text_model(
        """(uint64[N] a, uint64[N] b) => (uint64[N] y, bool[N] less, double[N] d, uint64[N, 1] t) {
            y = Add(a, b)  less = Less(a, b)  d = Cast<to = 11>(a)
            axes = Constant<value_ints = [1]>()  t = Unsqueeze(a, axes) }"""
    )
    a, b = np.array([2**64 - 2, 2**63 + 2**11], np.uint64), np.array([1, 2**63], np.uint64)
    y, less, d, t = run_model(model, [a, b])
    assert (y.dtype, y.tolist()) == (np.uint64, [2**64 - 1, 2**11])
    assert less.tolist() == [False, False]
    assert (d.dtype, d.tolist()) == (np.float64, [float(2**64 - 2), float(2**63 + 2**11)])
    assert (t.dtype, t.tolist()) == (np.uint64, [[2**64 - 2], [2**63 + 2**11]])


def test_narrow_inputs_are_held_as_wider_numbers():
    network = load(
        text_model("(int4[2] x, float8e5m2[2] z) => (float[2] y, float[2] w) { y = Cast<to = 1>(x)  w = Cast<to = 1>(z) }")
    )
    assert [network.inputs[name].data.dtype for name in "xz"] == [np.int8, np.float32]
