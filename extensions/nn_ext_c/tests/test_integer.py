"""Networks in integers: the C code has the bits of the reference, which is close to the network in float32."""

import re

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_c.tests.compiled import Network, code_bytes
from nn_core.ext import ArgumentError
from nn_ext_c import export_source, quantize
from nn_ext_c.integer import cells, numbers, reference


def convnet(x):
    h = F.relu(PF.batch_normalization(PF.convolution(x, 6, (3, 3), pad=(1, 1)), batch_stat=False))
    h = F.max_pooling(h, (2, 2))
    h = F.relu6(PF.convolution(h, 8, (3, 3), stride=(2, 2), dilation=(1, 1), group=2, name="c2"))
    return F.softmax(PF.affine(h, 5))


def separable(x):
    h = F.relu6(PF.batch_normalization(PF.depthwise_convolution(x, (3, 3), pad=(1, 1), multiplier=2), batch_stat=False))
    h = F.relu(PF.convolution(h, 9, (1, 1)))
    return PF.affine(F.global_average_pooling(h), 4)


def residual(x):
    h = PF.convolution(x, 6, (3, 3), pad=(1, 1))
    h = F.relu(h + PF.convolution(F.relu(h), 6, (3, 3), pad=(1, 1), name="b"))
    return PF.affine(F.average_pooling(h, (2, 2)), 3)


def branches(x):
    a, b = F.tanh(x), F.sigmoid(PF.convolution(x, 2, (1, 1)))
    h = F.concatenate(a, b, F.pad(x[:, :1], (0, 0, 0, 0)), axis=1)
    return F.sum(h * F.transpose(h, (0, 1, 3, 2)) - 0.5, axis=(2, 3))


def line(x):
    h = F.leaky_relu(PF.convolution(F.reshape(x, (x.shape[0], 3, -1)), 4, (5,), stride=(2,), pad=(2,)))
    return F.mean(F.max_pooling(h, (3,), ignore_border=False, pad=(1,)), axis=2)


def channel_last(x):
    h = F.transpose(x, (0, 2, 3, 1))
    h = F.relu(PF.convolution(h, 4, (3, 3), pad=(1, 1), channel_last=True))
    h = F.max_pooling(h, (2, 2), channel_last=True)
    return PF.affine(F.swish(h), 3)


def mlp(x):
    h = F.relu(PF.affine(x, 16, name="a"))
    return F.softmax(PF.affine(F.elu(PF.affine(h, 12, name="b")) * 2 + 1, 4, name="c"))


def several(x):
    h = F.relu(x)
    a, b = F.split(F.pad(h, (1, 1, 2, 2)), axis=1)[:2]
    return {"a": F.flip(a, axes=(1,)), "b": F.maximum_scalar(b, 0.25) - a, "x": x}


def sequences(x):
    return F.transpose(F.reshape(x, (x.shape[0], -1, 8)), (1, 0, 2))


def recurrent(x):
    s = sequences(x)
    zeros = nn.Variable.from_numpy_array(np.zeros((1, 1, x.shape[0], 6)))
    y, h, c = PF.lstm(s, zeros, zeros, name="lstm")
    z, g = PF.gru(F.tanh(s), h, name="gru")
    return {"y": PF.affine(y, 3, base_axis=2), "c": c, "z": z, "g": g}


def bidirectional(x):
    s = sequences(x)
    states = [F.reshape(0.5 * x[:, :, :, :5], (2, 2, x.shape[0], 30))[..., k : k + 5] for k in (0, 9)]
    y, h, c = PF.lstm(s, *states, num_layers=2, bidirectional=True, name="lstm")
    z, g = PF.gru(y[::-1], states[1], num_layers=2, bidirectional=True, with_bias=False, name="gru")
    return {"h": h, "c": c, "z": z, "g": g}


NETS = [recurrent, bidirectional, convnet, separable, residual, branches, line, channel_last, mlp, several]


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
@pytest.mark.parametrize("build", NETS, ids=lambda build: build.__name__)
def test_c_has_the_bits_of_the_reference(build, method, tmp_path):
    rng = np.random.default_rng(5)
    x = nn.Variable((2, 3, 8, 8))
    y = build(x)
    outputs = y if isinstance(y, dict) else {"y": y}
    samples = rng.normal(0, 1, (10, 3, 8, 8))
    settings = {"calibration": samples, "method": method, "percentile": 99.0}
    net = Network(tmp_path, outputs, {"x": x}, dtype="int8", **settings)
    network = quantize(outputs, {"x": x}, **settings)
    for scale in (1, 1, 30):  # beyond the range of the calibration too
        values = (scale * rng.normal(size=x.shape)).astype(np.float32)
        expected = reference.run(network, {"x": values})
        found = net(values, shapes=[output.shape for output in outputs.values()])
        for output, q in zip(found, expected.values(), strict=True):
            np.testing.assert_array_equal(output, q)
    if method == "minmax":
        x.d = samples[:2]
        for name, output in outputs.items():
            output.forward()
            wanted, got = np.asarray(output.d), reference.run(network, {"x": x.d})[name]
            assert np.abs(got - wanted).max() < 0.1 * np.ptp(wanted), name


@pytest.mark.parametrize("build", [convnet, several], ids=lambda build: build.__name__)
def test_inputs_and_outputs_can_be_integers(build, tmp_path):
    rng = np.random.default_rng(5)
    x = nn.Variable((2, 3, 8, 8))
    y = build(x)
    outputs = y if isinstance(y, dict) else {"y": y}
    samples = rng.normal(0, 1, (6, 3, 8, 8))
    net = Network(tmp_path, outputs, {"x": x}, dtype="int8", calibration=samples, io="int8")
    network = quantize(outputs, {"x": x}, calibration=samples)
    values = rng.integers(-128, 128, x.shape)
    expected = reference.run_integers(network, {"x": values})
    for found, name in zip(net(values, shapes=[v.shape for v in outputs.values()], dtype=np.int8), outputs, strict=True):
        np.testing.assert_array_equal(found, expected[name])
    scale = network.tensors[0].scale
    assert f"#define NET_INPUT_X_ZERO ({scale.zero})" in net.source.header
    (text,) = re.findall(r"#define NET_INPUT_X_SCALE (\S+)f", net.source.header)
    assert np.float32(text) == np.float32(scale.scale)
    assert "float " not in net.source.code


def test_nearest_interpolation_moves_integers(tmp_path):
    x = nn.Variable((1, 2, 3, 4))
    y = F.interpolate(x, output_size=(6, 8), mode="nearest")
    samples = np.random.default_rng(0).normal(size=(5, 2, 3, 4))
    net = Network(tmp_path, {"y": y}, {"x": x}, dtype="int8", calibration=samples)
    expected = reference.run(quantize({"y": y}, {"x": x}, calibration=samples), {"x": samples[:1]})["y"]
    np.testing.assert_array_equal(net(samples[:1], shapes=[y.shape])[0], expected)
    np.testing.assert_allclose(expected[..., ::2, ::2], samples[:1], atol=0.02)
    with pytest.raises(ArgumentError, match="mode must be 'nearest'"):
        export_source({"y": F.interpolate(x, output_size=(6, 8), mode="linear")}, dtype="int8", calibration=samples)


def test_every_kind_of_node_is_compared():
    rng = np.random.default_rng(5)
    kinds = set()
    for build in NETS:
        with nn.parameter_scope("", {}):
            x = nn.Variable((2, 3, 8, 8))
            y = build(x)
            network = quantize(y if isinstance(y, dict) else {"y": y}, {"x": x}, calibration=rng.normal(0, 1, (2, 3, 8, 8)))
            kinds |= {node.kind for node in network.nodes}
    assert kinds == reference.KINDS - {"constant"}
    z = nn.Variable((2, 3))
    c = nn.Variable.from_numpy_array(np.arange(3.0))
    assert "constant" in {node.kind for node in quantize({"y": z + c}, {"z": z}, calibration=np.ones((2, 3))).nodes}


def test_constants_in_arithmetic(tmp_path):
    x, c = nn.Variable((2, 3)), nn.Variable.from_numpy_array([0.25, -1.5, 3.0])
    outputs = {"y": (F.abs(x) - c) * c + F.constant(1, (2, 3))}
    samples = np.random.default_rng(0).normal(size=(50, 3))
    net = Network(tmp_path, outputs, {"x": x}, dtype="int8", calibration=samples)
    network = quantize(outputs, {"x": x}, calibration=samples)
    expected = reference.run(network, {"x": samples[:2]})["y"]
    np.testing.assert_array_equal(net(samples[:2], shapes=[(2, 3)])[0], expected)
    wanted = (np.abs(samples[:2]) - c.d) * c.d + 1
    np.testing.assert_allclose(expected, wanted, atol=0.1)


def test_numbers_beyond_the_range_are_held_at_its_ends(tmp_path):
    x = nn.Variable((1, 6))
    samples = np.linspace(-2, 3, 60).reshape(10, 6)
    net = Network(tmp_path, {"y": F.identity(x)}, {"x": x}, dtype="int8", calibration=samples)
    (found,) = net([np.nan, np.inf, -np.inf, 1e30, 0.0, -0.0], shapes=[(6,)])
    scale = numbers.scale_of(-2, 3)
    low, high = (numbers.dequantized(np.asarray(q), scale) for q in (-128, 127))
    np.testing.assert_array_equal(found, np.array([low, high, low, high, 0, 0], np.float32))


def test_rounding_is_to_the_nearest_and_halves_go_away_from_zero():
    found = numbers.shifted(np.array([-6, -5, -3, -2, -1, 0, 1, 2, 3, 5, 6]), 2)
    assert found.tolist() == [-2, -1, -1, -1, 0, 0, 0, 1, 1, 1, 2]
    for factor in (0.3, 1.0, 1.7e-5, 12345.678, 2.0**-32, 1 - 2.0**-40):
        multiplier, shift = numbers.fixed_point(factor)
        assert 2**30 <= multiplier < 2**31
        assert abs(multiplier / 2**shift - factor) <= factor * 2.0**-31
    assert numbers.fixed_point(2.0**-40)[0] == 0
    with pytest.raises(ValueError, match="must be below"):
        numbers.fixed_point(2.0**30)


def test_zero_is_an_integer_of_every_range():
    for low, high in ((0.1, 3), (-3, -0.1), (0, 0), (-1e-30, 1e30), (-2.7, 1.3)):
        scale = numbers.scale_of(low, high)
        assert -128 <= scale.zero <= 127
        assert numbers.dequantized(numbers.quantized(np.zeros(1), scale), scale)[0] == 0


def test_channels_without_weights_keep_their_bias(tmp_path):
    x = nn.Variable((1, 2, 4, 4))
    w = nn.Variable.from_numpy_array(np.zeros((3, 2, 1, 1)))
    b = nn.Variable.from_numpy_array([0.0, 1e-3, 5.0])
    y = F.convolution(x, w, b)
    samples = np.random.default_rng(0).normal(size=(4, 2, 4, 4))
    (found,) = Network(tmp_path, {"y": y}, {"x": x}, dtype="int8", calibration=samples)(samples[:1], shapes=[y.shape])
    np.testing.assert_allclose(found[0, :, 0, 0], b.d, atol=5.0 / 255)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
@pytest.mark.parametrize(("n_steps", "n_inputs", "hidden"), [(6, 5, 7), (40, 12, 20)])
def test_recurrent_networks_are_smaller_than_in_float_and_close_to_them(kind, n_steps, n_inputs, hidden, tmp_path):
    x = nn.Variable((n_steps, 1, n_inputs))
    zeros = nn.Variable.from_numpy_array(np.zeros((1, 1, 1, hidden)))
    y = (PF.lstm(x, zeros, zeros) if kind == "lstm" else PF.gru(x, zeros))[0]
    samples = np.random.default_rng(1).normal(size=(10 * n_steps, 1, n_inputs))
    single = export_source({"y": y}, {"x": x}, name="net")
    made = export_source({"y": y}, {"x": x}, name="net", dtype="int8", calibration=samples, io="int8")
    code = [code_bytes(tmp_path, source) for source in (single, made)]
    assert made.constant_bytes < single.constant_bytes / 1.9 and code[1] < code[0]
    assert made.constant_bytes + made.arena_bytes + code[1] < 0.6 * (single.constant_bytes + single.arena_bytes + code[0])
    x.d = samples[:n_steps]
    y.forward()
    found = reference.run(quantize({"y": y}, {"x": x}, calibration=samples), {"x": x.d})["y"]
    assert np.sqrt(np.mean((found - y.d) ** 2)) < 0.01 * np.ptp(y.d)


def test_gates_are_within_a_thousandth_and_held_at_their_ends():
    numbers_in = np.arange(-(2**15) - 10, 2**15 + 10)
    found = cells.sigmoid(numbers_in) / 2**15
    assert np.abs(found - 1 / (1 + np.exp(-numbers_in / 4096))).max() < 4e-4
    assert cells.sigmoid(np.array([-(2**40), 2**40])).tolist() == cells.sigmoid(np.array([-(2**15), 2**15])).tolist()


def test_sequences_that_are_too_long_are_refused():
    x, zeros = nn.Variable((2**14, 1, 1)), nn.Variable.from_numpy_array(np.zeros((1, 1, 1, 1)))
    with pytest.raises(ArgumentError, match="there must be fewer than 16384 steps, got 16384"):
        export_source(PF.gru(x, zeros)[0], {"x": x}, dtype="int8", calibration=np.ones((2**14, 1, 1)))


def test_functions_without_integers_are_listed():
    x = nn.Variable((2, 3, 4))
    y = F.sort(F.cumsum(x)) + F.layer_normalization(x, None, None)
    with pytest.raises(ArgumentError) as caught:
        export_source({"y": y}, {"x": x}, dtype="int8", calibration=np.random.default_rng(0).normal(size=(2, 3, 4)))
    assert str(caught.value).count("there is no way to compute it in integers") == 3


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"io": "int4"}, "io must be 'float32', or 'int8' where dtype is, got 'int4'"),
        ({"io": "int8", "dtype": "float32"}, "io must be 'float32', or 'int8' where dtype is, got 'int8'"),
        ({"dtype": "int4"}, "dtype must be 'float32' or 'int8', got 'int4'"),
        ({"calibration": None}, "calibration must be given for int8"),
        ({"calibration": np.ones((4, 2))}, r"must be samples of shape \(3,\)"),
        ({"calibration": np.ones((0, 3))}, r"must be samples of shape \(3,\)"),
        ({"calibration": {"y": np.ones((4, 3))}}, r"an array for each of \['x'\]"),
        ({"calibration": np.full((4, 3), np.nan)}, "values must be finite"),
        ({"method": "best"}, "method must be one of minmax, percentile, mse"),
        ({"method": "percentile", "percentile": 50}, "percentile must be above 50"),
    ],
)
def test_wrong_settings_are_refused(settings, match):
    x = nn.Variable((2, 3))
    with pytest.raises(ArgumentError, match=match):
        export_source({"y": F.tanh(x)}, {"x": x}, **{"dtype": "int8", "calibration": np.ones((4, 3)), **settings})
