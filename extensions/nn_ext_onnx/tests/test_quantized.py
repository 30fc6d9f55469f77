"""Quantized models: beside onnxruntime, which quantizes them and runs them without optimization."""

import logging
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import nn_ext_onnx.importing.builder as builder
from extensions.nn_ext_onnx.tests.quantized import (
    NETS,
    WAYS,
    dynamic_levels,
    expected,
    lstm_steps,
    make,
    model_of,
    quantized,
    step_of,
)
from nn_core.ext import ArgumentError
from nn_core.graph_rewriting import functions_of
from nn_ext_onnx import load
from nn_ext_onnx.backend import prepare, run_model

#: Networks in which every operator appears that quantizers write, in each way.
QUICK = [("dense", 13), ("convolutional", 17), ("residual", 21), ("attention", 11), ("recurrent", 13)]
#: onnxruntime does not load its own quantizer's models of this kind.
INVALID = {(net, "qdq_channels", 11) for net in NETS}
#: Averages of levels are often halfway between two, and go to either by the order of a sum; a product follows.
MOST = {"pooled": 3.01}
UINT8, INT32 = TensorProto.UINT8, TensorProto.INT32


@pytest.fixture(autouse=True)
def quiet():
    """Keep out of the log that the quantizer recommends preprocessing."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def steps_apart(net, way, opset, path):
    """Return how far the results are from those of onnxruntime, in steps of the output, or 127ths of the largest number."""
    model, feeds = quantized(net, way, opset, path)
    prepared, found = prepare(model), 0.0
    for feed in feeds:
        (wanted,), (given,) = expected(model, feed), prepared.run(feed)
        assert given.dtype == wanted.dtype
        step = step_of(model) or np.abs(wanted).max() / 127
        found = max(found, float(np.abs(given - wanted).max() / step))
    return found


@pytest.mark.parametrize("way", sorted(WAYS))
def test_quantized_models_are_within_a_step_of_onnxruntime(tmp_path, way):
    # 16 bits of a step are near the rounding of float32
    assert [net for net, opset in QUICK if (net, way, opset) not in INVALID
            and steps_apart(net, way, opset, tmp_path / "net.onnx") > (1.01 if "16" in way else 1.001)] == []  # fmt: skip


@pytest.mark.parametrize(("net", "product"), [("convolutional", "Conv"), ("dense", "MatMul")])
@pytest.mark.parametrize("way", ["qdq_uint8", "qdq_channels", "qoperator_mixed", "dynamic_int8"])
def test_quantized_models_run_in_integers(tmp_path, way, net, product):
    model, _ = quantized(net, way, 17, tmp_path / "net.onnx")
    names = [function.name for function in functions_of(load(model).outputs.values())]
    assert (f"{product}Integer" if way == "dynamic_int8" else f"QLinear{product}") in names
    assert not {"Convolution", "Affine", "BatchMatmul"} & set(names)


@pytest.mark.slow
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
def test_all_quantized_models_are_within_a_step_of_onnxruntime(tmp_path, opset):
    cases = [(net, way, opset) for net in NETS for way in WAYS if not (net == "enlarging" and opset < 13)]
    found = {case: steps_apart(*case, tmp_path / "net.onnx") for case in cases if case not in INVALID}
    assert {case: steps for case, steps in found.items() if steps > MOST.get(case[0], 1.01)} == {}


# Single functions ---------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
SCALE, FINE = np.float32(0.05), np.float32(0.013)
A, B = (RNG.integers(0, 256, (2, 4, 6, 5), np.uint8) for _ in range(2))
LEFT, RIGHT = RNG.integers(0, 256, (3, 8), np.uint8), RNG.integers(-64, 64, (8, 6), np.int8)
FLOATS = RNG.normal(size=(2, 3, 8)).astype(np.float32)
COLUMNS, ZEROS = RNG.uniform(0.01, 0.05, 6).astype(np.float32), np.zeros(6, np.int8)
BIAS = RNG.integers(-(2**16), 2**16, 6).astype(np.int32)
U, S, WIDE = np.uint8(130), np.int8(-3), RNG.integers(-(2**15), 2**15, (2, 3), np.int16)
X, Z, Y = (A, SCALE, U), (B, FINE, np.uint8(7)), (FINE, np.uint8(99))
SHARE = (np.float32(1 / 256), np.uint8(0))
POOLING = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}
#: The operator, attributes, and inputs: the first array of several axes is the input of the model.
FUNCTIONS = {
    "add": ("QLinearAdd", {}, [*X, *Z, *Y]),
    "multiply": ("QLinearMul", {}, [*X, *Z, SCALE]),
    "sigmoid": ("QLinearSigmoid", {}, [*X, *SHARE]),
    "leaky_relu": ("QLinearLeakyRelu", {"alpha": 0.3}, [*X, *Y]),
    "softmax": ("QLinearSoftmax", {"axis": 1, "opset": 13}, [*X, *SHARE]),
    "softmax_of_two_axes": ("QLinearSoftmax", {"axis": 2, "opset": 11}, [*X, *SHARE]),
    "average": ("QLinearAveragePool", POOLING, [*X, *Y]),
    "average_of_last_channels": ("QLinearAveragePool", {**POOLING, "channels_last": 1}, [*X, *Y]),
    "global_average": ("QLinearGlobalAveragePool", {}, [*X, *Y]),
    "global_average_of_last_channels": ("QLinearGlobalAveragePool", {"channels_last": 1}, [*X, *Y]),
    "concatenate": ("QLinearConcat", {"axis": 2}, [*Y, *X, B[:, :, :2].copy(), *Z[1:]]),
    "choose": ("QLinearWhere", {}, [A > 99, *X, *Z, *Y]),
    "gemm": ("QGemm", {"alpha": 0.5, "transB": 1}, [LEFT, SCALE, U, RIGHT.T.copy(), COLUMNS, ZEROS, BIAS, *Y]),
    "gemm_to_floats": ("QGemm", {"transA": 1}, [LEFT.T.copy(), SCALE, U, RIGHT, FINE, S]),
    "matmul_to_floats": ("MatMulIntegerToFloat", {}, [LEFT, RIGHT, SCALE, COLUMNS, U, ZEROS, COLUMNS]),
    "quantize_to_16_bits": ("QuantizeLinear", {}, [FLOATS, np.float32(1e-4), np.uint16(20000)]),
    "dequantize_16_bits": ("DequantizeLinear", {"axis": 1}, [WIDE, COLUMNS[:3], np.zeros(3, np.int16)]),
}  # fmt: skip


def one_node(kind, attributes, arrays, domain="com.microsoft", computed=(0,), opset=13):
    """Return a model of one node and the arrays that it gets; the others are constants."""
    names = ["" if array is None else f"i{place}" for place, array in enumerate(arrays)]
    given = {name: np.asarray(array) for name, array in zip(names, arrays, strict=True) if name}
    feed = {f"i{place}": given.pop(f"i{place}") for place in computed}
    inputs = {name: (helper.np_dtype_to_tensor_dtype(array.dtype), array.shape) for name, array in feed.items()}
    output = onnx.ValueInfoProto(name="y")
    model = model_of([make(kind, names, ["y"], domain=domain, **attributes)], inputs, {}, given, opset)
    model.graph.output.append(output)
    return model, feed


def assert_within_a_step(model, feed, atol=1e-5):
    """Return the results, which are those of onnxruntime but for ties, which processors round to different sides."""
    (wanted,), (found,) = expected(model, feed), run_model(model, feed)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=atol)
    else:
        apart = np.abs(found.astype(np.int64) - wanted)
        assert apart.max() <= 1
        assert np.count_nonzero(apart) <= max(1, 0.02 * apart.size)
    return found


@pytest.mark.parametrize("case", sorted(FUNCTIONS))
def test_functions_of_onnxruntime(case):
    kind, attributes, arrays = FUNCTIONS[case]
    first = next(place for place, array in enumerate(arrays) if np.ndim(array) > 1)
    assert_within_a_step(*one_node(kind, attributes, arrays, computed=(first,)))


def test_what_is_quantized_dynamically_is_multiplied_by_the_definition():
    model, feed = one_node("DynamicQuantizeMatMul", {}, [FLOATS, RIGHT, FINE, S, COLUMNS])
    found = assert_within_a_step(model, feed, np.ptp(FLOATS) / 255 * float(np.abs(RIGHT - S).max() * FINE))
    levels, scale, zero_point = dynamic_levels(FLOATS)
    sums = (levels.astype(int) - zero_point) @ (RIGHT.astype(int) - S)
    np.testing.assert_allclose(found, sums * float(scale * FINE) + COLUMNS, rtol=1e-5, atol=1e-5)


def test_levels_of_gemm_are_those_of_exact_numbers():
    _, attributes, arrays = FUNCTIONS["gemm"]
    (found,) = run_model(*one_node("QGemm", attributes, arrays))
    sums = (LEFT.astype(int) - U) @ RIGHT.astype(int) + BIAS
    exact = np.clip(sums * (0.5 * SCALE * COLUMNS.astype(float) / FINE) + int(Y[1]), 0, 255)
    np.testing.assert_allclose(found, exact, atol=0.5001)


@pytest.mark.parametrize(
    ("left", "right"), [((3, 8), (8, 6)), ((8,), (8, 6)), ((3, 8), (8,)), ((8,), (8,)), ((2, 1, 3, 8), (4, 8, 6))]
)
def test_matmul_integer_has_the_shapes_of_matmul(left, right):
    arrays = [RNG.integers(0, 256, left, np.uint8), RNG.integers(0, 256, right, np.uint8), U, np.uint8(100)]
    assert_within_a_step(*one_node("MatMulInteger", {}, arrays, "", computed=(0, 1)))


def test_matmul_integer_takes_zero_points_of_rows_and_columns():
    rows = np.array([1, 128, 255], np.uint8)
    model, feed = one_node("MatMulInteger", {}, [LEFT, RIGHT, rows, RIGHT[0]], "")
    wanted = (LEFT.astype(int) - rows[:, None]) @ (RIGHT.astype(int) - RIGHT[0])
    np.testing.assert_array_equal(run_model(model, feed)[0], wanted)


@pytest.mark.parametrize("geometry", [
    {"pads": [0, 0, 1, 1], "strides": [2, 2]}, {"pads": [1, 0, 0, 2], "dilations": [2, 1]}, {"pads": [2, 1, 0, 0]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 3]}, {"auto_pad": "SAME_LOWER", "group": 2}, {"auto_pad": "VALID"},
    {"pads": [0, 0, 4, 5], "strides": [3, 2]},
])  # fmt: skip
def test_conv_integer_pads_as_conv(geometry):
    weight = RNG.integers(0, 256, (4, 4 // geometry.get("group", 1), 3, 2), np.uint8)
    assert_within_a_step(*one_node("ConvInteger", geometry, [A, weight, U, np.uint8(3)], ""))
    qlinear = [*X, weight, COLUMNS[:4], np.full(4, 128, np.uint8), np.float32(0.9), np.uint8(120), BIAS[:4] // 64]
    assert_within_a_step(*one_node("QLinearConv", geometry, qlinear, ""))


def test_sums_are_exact_where_float32_is_not():
    left, right = np.full((1, 600), 255, np.uint8), np.full((600, 1), 127, np.int8)
    right[0] = 126
    model, feed = one_node("MatMulInteger", {}, [left, right], "", computed=(0, 1))
    assert run_model(model, feed)[0].tolist() == [[19_430_745]]
    model, feed = one_node("ConvInteger", {}, [left.reshape(1, 600, 1), right.reshape(1, 600, 1)], "", computed=(0, 1))
    assert run_model(model, feed)[0].tolist() == [[[19_430_745]]]


@pytest.mark.parametrize("settings", [
    {}, {"initial": True}, {"direction": "reverse"}, {"direction": "bidirectional", "initial": True}, {"peepholes": True},
    {"lengths": True}, {"per_channel": True},
])  # fmt: skip
def test_lstm_quantizes_inputs_and_states(settings):
    n_directions, batch, n_inputs, hidden = 1 + (settings.get("direction") == "bidirectional"), 2, 4, 6
    weights = [RNG.integers(-64, 64, (n_directions, n, 4 * hidden), np.int8) for n in (n_inputs, hidden)]
    x = RNG.normal(size=(5, batch, n_inputs)).astype(np.float32)

    def drawn(*shape):
        return (RNG.normal(size=shape) / 5).astype(np.float32)

    states = [drawn(n_directions, batch, hidden) if settings.get("initial") else None for _ in range(2)]
    peepholes = drawn(n_directions, 3 * hidden) if settings.get("peepholes") else None
    lengths = np.array([3, 5], np.int32) if settings.get("lengths") else None
    shape = (n_directions, 4 * hidden) if settings.get("per_channel") else (n_directions,)
    quantization = [
        array for _ in range(2) for array in (np.abs(drawn(*shape)) / 10 + np.float32(0.01), np.zeros(shape, np.int8))
    ]
    bias = drawn(n_directions, 8 * hidden)
    arrays = [x, *weights, bias, lengths, *states, peepholes, *quantization]
    attributes = {"hidden_size": hidden, "direction": settings.get("direction", "forward")}
    largest = max(
        float(np.abs(w * s.reshape(n_directions, 1, -1)).max()) for w, s in zip(weights, quantization[::2], strict=True)
    )
    found = assert_within_a_step(*one_node("DynamicQuantizeLSTM", attributes, arrays), atol=largest * np.ptp(x) / 255)
    for d in range(n_directions):
        backwards = d == 1 or settings.get("direction") == "reverse"
        own = [None if array is None else array[d].astype(float) for array in (*weights, bias, *states, peepholes)]
        given = found[:, d][::-1] if backwards else found[:, d]
        judged = lstm_steps(x[::-1] if backwards else x, given, *own, [s[d].astype(float) for s in quantization[::2]], lengths)
        np.testing.assert_allclose(given, judged, rtol=1e-5, atol=1e-5)


def test_numbers_are_quantized_dynamically():
    text = make("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    model = model_of([text], {"x": [2, 3]}, {"y": (UINT8, [2, 3]), "s": [], "z": (UINT8, [])}, {})
    some = np.array([[0.5, 1, 2], [3, 4, 5]], np.float32)
    for values in (np.zeros_like(some), some, -some, RNG.normal(size=(2, 3)).astype(np.float32)):
        found = run_model(model, {"x": values})
        for judged, given in zip(dynamic_levels(values), found, strict=True):
            assert given.dtype == judged.dtype
            np.testing.assert_array_equal(given, judged)
        for wanted, given, step in zip(expected(model, {"x": values}), found, (1, 0, 1), strict=True):
            assert given.dtype == wanted.dtype
            np.testing.assert_allclose(given, wanted.astype(float), rtol=1e-6, atol=step)


@pytest.mark.parametrize("case", ["add", "sigmoid", "softmax", "average", "gemm"])
def test_functions_without_a_schema_compute_in_the_number_type_of_the_context(case):
    kind, attributes, arrays = FUNCTIONS[case]
    model, _ = one_node(kind, attributes, arrays)
    types = {entry for f in functions_of(load(model).outputs.values()) for entry in f.context.backend}
    assert not any(entry.endswith(":double") for entry in types)


# Constants ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
def test_quantized_weights_are_constants_that_nn_core_computes(monkeypatch, opset):
    monkeypatch.setattr(builder, "evaluate", lambda *_: pytest.fail("the package of ONNX computes"))
    per_column = {"axis": 1} if opset > 10 else {}
    scale, zero_point = (COLUMNS, S + ZEROS) if opset > 10 else (FINE, S)
    nodes = [make("DequantizeLinear", ["w", "s", "z"], ["f"], **per_column), make("MatMul", ["x", "f"], ["y"])]
    constants = {"w": RIGHT, "s": scale, "z": zero_point}
    model = model_of(nodes, {"x": [3, 8]}, {"y": [3, 6]}, constants, opset)
    feed = {"x": FLOATS.reshape(6, 8)[:3].copy()}
    np.testing.assert_allclose(run_model(model, feed)[0], expected(model, feed)[0], rtol=1e-5, atol=1e-5)
    network = load(model)
    assert network.parameters == {}
    assert [function.name for function in functions_of(network.outputs.values())] == ["Affine"]


@pytest.mark.slow
def test_quantized_weights_are_constants_where_the_reference_is_the_only_backend(tmp_path):
    model = model_of(
        [make("DequantizeLinear", ["w", "s", "z"], ["f"]), make("MatMul", ["x", "f"], ["y"])],
        {"x": [3, 8]}, {"y": [3, 6]}, {"w": RIGHT, "s": FINE, "z": S}, 10,
    )  # fmt: skip
    onnx.save(model, tmp_path / "net.onnx")
    program = "import sys, nn_ext_onnx; print(list(nn_ext_onnx.load(sys.argv[1]).outputs))"
    command, environment = [sys.executable, "-c", program, "net.onnx"], {**os.environ, "NN_CORE_PLUGINS": "-cpu"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "['y']\n", done.stderr


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, "int4", "uint4"])
def test_blocks_have_scales_of_their_own(dtype):
    kind = (
        np.dtype(dtype)
        if not isinstance(dtype, str)
        else np.dtype(helper.tensor_dtype_to_np_dtype(getattr(TensorProto, dtype.upper())))
    )
    weight = RNG.integers(0, 7, (7, 6)).astype(kind)
    scale, zero_point = RNG.uniform(0.1, 1, (3, 6)).astype(np.float32), RNG.integers(0, 3, (3, 6)).astype(kind)
    nodes = [make("DequantizeLinear", ["w", "s", "z"], ["f"], axis=0, block_size=3), make("MatMul", ["x", "f"], ["y"])]
    model = model_of(nodes, {"x": [2, 7]}, {"y": [2, 6]}, {"w": weight, "s": scale, "z": zero_point}, 21)
    feed = {"x": FLOATS.reshape(-1)[:14].reshape(2, 7)}
    np.testing.assert_allclose(run_model(model, feed)[0], expected(model, feed)[0], rtol=1e-5, atol=1e-5)


def test_levels_that_are_moved_stay_levels():
    nodes = [
        make("Concat", ["x", "x"], ["c"], axis=1),
        make("MaxPool", ["c"], ["m"], kernel_shape=[2, 2]),
        make("Pad", ["m", "pads", "z"], ["p"]),
        make("MatMulInteger", ["p", "w", "z"], ["y"]),
    ]
    constants = {"pads": np.array([0, 0, 1, 0, 0, 0, 0, 1]), "z": U, "w": RIGHT[:5]}
    model = model_of(nodes, {"x": (UINT8, A.shape)}, {"y": (INT32, [2, 8, 6, 6]), "p": (UINT8, [2, 8, 6, 5])}, constants)
    for wanted, found in zip(expected(model, {"x": A}), run_model(model, {"x": A}), strict=True):
        np.testing.assert_array_equal(found, wanted)
    names = {function.name for function in functions_of(load(model).outputs.values())}
    assert names == {"Concatenate", "MaxPooling", "Pad", "QuantizeInteger", "MatMulInteger"}


def test_levels_are_moved_between_a_dequantizer_and_a_quantizer():
    nodes = [make("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    for number, (kind, *rest) in enumerate([("Reshape", "shape"), ("Transpose",), ("Unsqueeze", "axis"), ("Identity",)]):
        settings = {"perm": [1, 0, 2]} if kind == "Transpose" else {}
        nodes += [
            make("DequantizeLinear", [f"q{number}", "s", "z"], [f"d{number}"]),
            make(kind, [f"d{number}", *rest], [f"m{number}"], **settings),
            make("QuantizeLinear", [f"m{number}", "s", "z"], [f"q{number + 1}"]),
        ]
    nodes += [make("QuantizeLinear", ["m3", "t", "z"], ["y"])]
    constants = {
        "s": np.float32(0.1),
        "t": np.float32(0.3),
        "z": np.uint8(7),
        "shape": np.array([2, 3, 4]),
        "axis": np.array([1]),
    }
    results = {"q4": (UINT8, [3, 1, 2, 4]), "y": (UINT8, [3, 1, 2, 4])}
    model, feed = model_of(nodes, {"x": [2, 12]}, results, constants), {"x": FLOATS.reshape(-1)[:24].reshape(2, 12)}
    for wanted, found in zip(expected(model, feed), run_model(model, feed), strict=True):
        np.testing.assert_array_equal(found, wanted)
    names = [function.name for function in functions_of([load(model).outputs["q4"]])]
    assert names.count("QuantizeInteger") == 1
    assert "DequantizeLinear" not in names
    names = [function.name for function in functions_of([load(model).outputs["y"]])]
    assert (names.count("QuantizeInteger"), names.count("DequantizeLinear")) == (2, 1)  # the steps have another length


def test_levels_of_other_types_are_refused():
    model, _ = one_node("QuantizeLinear", {}, [FLOATS, SCALE, np.int32(0)])
    with pytest.raises(ArgumentError, match=r"com\.microsoft\.QuantizeLinear .*: levels of type int32"):
        load(model)


def test_scales_beyond_any_number_are_refused():
    text = (
        '<ir_version: 8, opset_import: ["": 13]> g (uint8[2, 2] x) => (uint8[2, 2] y) '
        "<float large = {3e38}, float one = {1}, uint8 zero = {0}, uint8[2, 2] w = {1, 2, 3, 4}> "
        "{ y = QLinearMatMul(x, large, zero, w, large, zero, one, zero) }"
    )
    with pytest.raises(ArgumentError, match=r"QLinearMatMul .*: scales of which the product and quotient are not finite"):
        load(parser.parse_model(text))
