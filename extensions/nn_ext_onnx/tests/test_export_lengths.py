"""Export of graphs that read lengths for axes of any length: each number follows, or the export is refused."""

import math

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_onnx.tests.exported import setting, typed
from nn_core.errors import ArgumentError, NNCoreError
from nn_core.models.imagenet import ShuffleNet05
from nn_core.models.transformer import GPT, VisionTransformer
from nn_ext_onnx import export, export_model
from nn_ext_onnx.exporting import verification
from tools.nnabla.nnabla_samples import SAMPLES, Draw

#: Uses of lengths that the model follows.
FOLLOWED = {
    "quotient": lambda x: F.sum(x, axis=0, keepdims=True) / x.shape[0],
    "quotient of a result": lambda x: x / F.concatenate(x, x, axis=0).shape[0],
    "quotient of a result of a length": lambda x: x / F.tile(x, (F.concatenate(x, x, axis=0).shape[0], 1)).shape[0],
    "product": lambda x: x * x.shape[0],
    "sum": lambda x: x + x.shape[0],
    "difference": lambda x: (3 * x.shape[0] - 1) - x,
    "reshape": lambda x: F.reshape(x, (x.shape[0], -1, 2)),
    "reshape by a product": lambda x: F.reshape(F.reshape(x, (x.shape[0] * 2, 2)) * 2, (x.shape[0], 4)),
    "broadcast": lambda x: F.broadcast(F.sum(x, axis=0, keepdims=True), x.shape),
    "constant": lambda x: x + F.constant(2, shape=x.shape),
    "tile": lambda x: F.tile(F.sum(x, axis=0, keepdims=True), (x.shape[0], 1)),
    "slice": lambda x: F.concatenate(x, x + 1, axis=0)[: x.shape[0]],
    "power": lambda x: x * x.shape[0] ** -0.5,
    "size": lambda x: F.sum(x * x) / x.size + x / x.size_from_axis(1) + F.reshape(x, (x.size,))[0],
    "square": lambda x: x / x.shape[0] ** 2,
    "numbers in order": lambda x: x * F.reshape(F.arange(0, x.shape[0]), (-1, 1)),
    "halves, rounded up": lambda x: F.concatenate(x, x + 1, axis=0)[: -(-x.shape[0] // 2) + x.shape[0] // 2],
    "rounded": lambda x: x * (x.shape[0] % 3 + round(x.shape[0] / 2) + math.floor(x.shape[0] / 4) - abs(2 - x.shape[0])),
}


def _with_ones(x):
    y = x * 1
    y[:, 1] = 1
    return y


def _weights(*shape):
    return nn.Variable.from_numpy_array(np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32))


def _shuffled(x):
    n, c, h, w = x.shape
    return F.reshape(F.transpose(F.reshape(x, (n, 3, c // 3, h, w)), (0, 2, 1, 3, 4)), (n, c, h, w))


#: Uses of lengths that no formula expresses, and the function that has numbers for them.
REFUSED = {
    "a diagonal": (lambda x: F.matmul(F.transpose(F.matrix_diag(F.sum(x, axis=1)), (0, 1)), x), "MatrixDiag"),
    "running products": (lambda x: F.cumprod(x, axis=0), "CumProd"),
    "an assignment": (_with_ones, "ScatterNd"),
    "a gradient": (lambda x: nn.grad([F.mean(x**3)], [x])[0], "Broadcast"),
}
#: Functions of images with axes of any length, some of which change what is computed at some lengths.
IMAGES = {
    "convolution": lambda x: F.convolution(x, _weights(2, 3, 3, 3), pad=(1, 1), stride=(2, 2)),
    "deconvolution": lambda x: F.deconvolution(x, _weights(3, 2, 3, 3), stride=(2, 2)),
    "pooling with the border": lambda x: F.max_pooling(x, (3, 3), stride=(2, 2), ignore_border=False),
    "pooling": lambda x: F.average_pooling(x, (2, 2), pad=(1, 1)),
    "sums over the border": lambda x: F.sum_pooling(x, (2, 3), stride=(2, 3), ignore_border=False),
    "global pooling": F.global_average_pooling,
    "flat": lambda x: F.reshape(x, (x.shape[0], -1)),
    "rows": lambda x: F.transpose(F.reshape(x, (x.shape[0], 3, x.shape[2] * x.shape[3])), (0, 2, 1)),
    "groups": lambda x: F.group_normalization(x, None, None, 3),
    "instances": lambda x: F.instance_normalization(x, None, None),
    "shuffled channels": _shuffled,
    "reflected": lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"),
    "cut": lambda x: F.concatenate(x[:, :, 1:-1, ::-1], x[:, :, -x.shape[2] : x.shape[2] - 2, :], axis=2),
    "broadcast": lambda x: F.broadcast(F.sum(x, axis=(2, 3), keepdims=True), x.shape) / (x.shape[2] * x.shape[3]),
    "sorted": lambda x: F.sort(x, axis=3),
    "places": lambda x: F.max(x, axis=(2, 3), only_index=True),
    "places of rows": lambda x: x + F.reshape(F.arange(0, x.shape[2]), (1, 1, -1, 1)),
    "noise of its own": lambda x: x + 0 * F.randn(shape=x.shape),
    "attention": lambda x: F.scaled_dot_product_attention(*[F.transpose(x, (0, 2, 3, 1))] * 3, is_causal=True),
}


def _values(shape):
    return np.random.RandomState(shape[0]).uniform(-1, 1, shape).astype(np.float32)


def _follows(model, build, arrays):
    for array in arrays:
        fresh = build(nn.Variable.from_numpy_array(array))
        fresh.forward()
        (found,) = verification.run_model(model, {"x": array})
        np.testing.assert_allclose(found, fresh.d, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("use", FOLLOWED)
def test_the_model_follows(use):
    x = nn.Variable((3, 4))
    model = export_model({"y": FOLLOWED[use](x)}, {"x": x}, dynamic_batch=True)
    _follows(model, FOLLOWED[use], [_values((n, 4)) for n in (1, 3, 8)])


@pytest.mark.parametrize("use", REFUSED)
def test_what_no_formula_expresses_is_refused(use):
    build, function = REFUSED[use]
    x = nn.Variable((3, 4), need_grad=True)
    with pytest.raises(ArgumentError, match=rf"(?s)export: .*\b{function} \(function \d+ of"):
        export_model({"y": build(x)}, {"x": x}, dynamic_batch=True)


@pytest.mark.parametrize("use", IMAGES)
def test_all_axes_of_images_are_dynamic(use):
    x = nn.Variable((2, 3, 8, 6))
    model = export_model({"y": IMAGES[use](x)}, {"x": x}, dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}})
    _follows(model, IMAGES[use], [_values(shape) for shape in ((2, 3, 8, 6), (1, 3, 7, 9), (3, 3, 12, 5))])


def _axes(entries):
    return [[axis.dim_param or axis.dim_value for axis in entry.type.tensor_type.shape.dim] for entry in entries]


def test_axes_have_names():
    x, t = nn.Variable((2, 5, 4)), nn.Variable((2, 4))
    outputs = {"y": F.transpose(x, (1, 0, 2)) * t, "z": F.concatenate(x, x, axis=1), "loss": F.mean(x)}
    given = {"x": {0: "N", -2: "T"}, "t": {0: "N"}, "z": {1: "twice"}}
    model = export_model(outputs, {"x": x, "t": t}, dynamic_axes=given)
    assert _axes(model.graph.input) == [["N", "T", 4], ["N", 4]]
    assert _axes(model.graph.output) == [["T", "N", 4], ["N", "twice", 4], []]
    model = export_model({"y": F.tanh(x)}, {"x": x}, dynamic_axes={"x": [1]})
    assert _axes(model.graph.output) == [[2, "x_1", 4]]


@pytest.mark.parametrize(
    ("axes", "match"),
    [
        ({"u": [0]}, r"dynamic_axes must name inputs and outputs \(x, t, y\), got 'u'"),
        ({"x": [3]}, r"dynamic_axes of 'x' must be axes from -2 to 1, got 3"),
        ({"x": {0: 7}}, r"dynamic_axes must be names by numbers of axes, got \{0: 7\} for 'x'"),
        ({"x": {0: "N", 1: "N"}}, r"axes of one name must have one length, got 3 and 4 for 'N'"),
        ({"y": [0]}, r"dynamic_axes must name an axis of an input, got none"),
        ({"x": {0: "N"}}, r"the graph must work for any N, got for \d+ in place of 3: add2: "),
        ({"x": {0: "N"}, "t": {0: "M"}}, r"the graph must work for any N, got for \d+ in place of 3: add2: "),
        ({"x": {0: "N"}, "t": {0: "N"}, "y": {1: "C"}}, r"axis 1 of output 'y' must follow the inputs as 'C', got lengths"),
    ],
)
def test_axes_that_cannot_be_dynamic_are_refused(axes, match):
    x, t = nn.Variable((3, 4)), nn.Variable((3, 4))
    with pytest.raises(ArgumentError, match=match):
        export_model({"y": x + t}, {"x": x, "t": t}, dynamic_axes=axes)


def test_the_batch_and_axes_are_not_given_both():
    x = nn.Variable((3, 4))
    with pytest.raises(ArgumentError, match="dynamic_batch and dynamic_axes must not be given both"):
        export_model({"y": F.tanh(x)}, {"x": x}, dynamic_batch=True, dynamic_axes={"x": [0]})


def test_verification_runs_the_model_with_other_lengths(tmp_path, monkeypatch):
    x, t = nn.Variable((3, 4)), nn.Variable((1, 4))
    x.d, t.d = 1, 2
    shapes = []

    def run_model(model, arrays):
        shapes.append([array.shape for array in arrays.values()])
        return real(model, arrays)

    real = verification.run_model
    monkeypatch.setattr(verification, "run_model", run_model)
    export(tmp_path / "net.onnx", {"y": x * t}, {"x": x, "t": t}, dynamic_axes={"x": {0: "N"}}, verify=True)
    assert shapes == [[(3, 4), (1, 4)], [(4, 4), (1, 4)], [(9, 4), (1, 4)]]
    monkeypatch.setattr(verification, "run_model", lambda model, arrays: [y + (len(y) > 3) for y in real(model, arrays)])
    with pytest.raises(ArgumentError, match="output 'y' must be equal within"):
        export(tmp_path / "wrong.onnx", {"y": x * t}, {"x": x, "t": t}, dynamic_axes={"x": {0: "N"}}, verify=True)
    assert not (tmp_path / "wrong.onnx").exists()


def test_a_size_that_positions_fix_is_refused():
    network = VisionTransformer(16, 8, n_layers=1, n_features=8, n_heads=2, n_hidden=16, n_classes=3)
    x = nn.Variable((2, 3, 16, 16))
    with pytest.raises(ArgumentError, match="must work for any H, got for 35 in place of 16: add2"):
        export_model({"y": network(x)}, {"x": x}, dynamic_axes={"x": {2: "H", 3: "W"}})


def test_random_numbers_are_drawn_for_each_sample():
    x = nn.Variable((3, 4))
    model = export_model({"y": x + F.randn(shape=x.shape)}, {"x": x}, dynamic_batch=True)
    (found,) = verification.run_model(model, {"x": np.zeros((8, 4), np.float32)})
    assert len(np.unique(found)) == 32


def test_a_number_is_a_constant():
    x = nn.Variable((3, 4))
    model = export_model({"y": x / int(x.shape[0])}, {"x": x}, dynamic_batch=True)
    (found,) = verification.run_model(model, {"x": np.ones((6, 4), np.float32)})
    np.testing.assert_allclose(found, np.full((6, 4), 1 / 3), rtol=1e-6)


def test_a_transformer_for_images():
    network = VisionTransformer(16, 8, n_layers=1, n_features=8, n_heads=2, n_hidden=16, n_classes=3)
    x = nn.Variable((2, 3, 16, 16))
    model = export_model({"y": network(x)}, {"x": x}, dynamic_batch=True)
    _follows(model, network, [_values((n, 3, 16, 16)) for n in (1, 2, 5)])


def test_a_language_model():
    network = GPT(n_tokens=11, n_positions=12, n_layers=1, n_features=8, n_heads=2)
    x = nn.Variable.from_numpy_array(np.zeros((2, 6), np.int32))
    model = export_model({"y": network(x)}, {"x": x}, dynamic_axes={"x": {0: "N", 1: "T"}})
    arrays = [np.random.RandomState(n).randint(0, 11, (n, t)) for n, t in ((1, 1), (2, 6), (5, 12))]
    _follows(model, network, arrays)


@pytest.mark.slow
def test_a_network_that_shuffles_channels():
    network = ShuffleNet05(weights=None)

    def build(x):
        return network(x, use_up_to="lastconv")

    x = nn.Variable((2, 3, 32, 32))
    model = export_model({"y": build(x)}, {"x": x}, dynamic_axes={"x": {0: "N", 2: "H", 3: "W"}})
    _follows(model, build, [_values(shape) for shape in ((1, 3, 32, 32), (2, 3, 37, 50))])


def _resized(array, axis, length):
    random = np.random.RandomState(length)
    return np.take(array, np.sort(random.randint(0, array.shape[axis], length)), axis)


def _called(api, sample, arrays):
    variables = {name: nn.Variable.from_numpy_array(array.copy()) for name, array in arrays.items()}
    inputs = [None if array is None else variables[f"x{number}"] for number, array in enumerate(sample.inputs)]
    named = {name: variables[name] for name in sample.named}
    outputs = getattr(F, api)(*inputs, **named, **{key: setting(value) for key, value in sample.settings.items()})
    return variables, list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


def _wrong_with_any_axis(api):
    """Axes of the first input and lengths with which the model of a random call gives something else than the call."""
    sample = SAMPLES[api](Draw([7, 0, *api.encode()]))
    arrays = {f"x{number}": np.asarray(array) for number, array in enumerate(sample.inputs) if array is not None}
    arrays.update({name: np.asarray(array) for name, array in sample.named.items()})
    for axis in range(arrays["x0"].ndim if "x0" in arrays and not (sample.random or sample.dynamic) else 0):
        present = arrays["x0"].shape[axis]
        axes = {name: {axis: "n"} for name, a in arrays.items() if a.ndim > axis and a.shape[axis] == present > 1}
        for length in (present + 1, 2 * present + 3):
            others = {name: _resized(array, axis, length) if name in axes else array for name, array in arrays.items()}
            try:
                variables, outputs = _called(api, sample, arrays)
                model = export_model(outputs, variables, dynamic_axes=axes)
                _, fresh = _called(api, sample, others)
                nn.forward_all([output for output in fresh if output.parent is not None])
            except NNCoreError:
                continue
            found = verification.run_model(model, typed(model, others))
            for mine, other in zip((np.asarray(output.d) for output in fresh), found, strict=True):
                if mine.shape != other.shape or verification.largest_difference(other, mine) > 1e-4:
                    yield f"{api}: axis {axis} of length {length}, exported with {present}"


@pytest.mark.slow
def test_every_function_with_any_axis_dynamic():
    assert [text for api in SAMPLES for text in _wrong_with_any_axis(api)] == []


@pytest.mark.parametrize(
    "build",
    [
        lambda x: F.interpolate(x, scale=(2, 3), mode="linear", align_corners=False, half_pixel=True),
        lambda x: F.interpolate(x, scale=(2, 1.5), mode="linear", align_corners=True),
        lambda x: F.interpolate(x, scale=(0.5, 2), mode="linear", align_corners=False, half_pixel=False),
        lambda x: F.interpolate(x, scale=(2, 1.5), mode="nearest", align_corners=False),
        lambda x: F.interpolate(
            x, scale=(2, 0.3), mode="nearest", align_corners=False, half_pixel=True, half_pixel_for_nn=True
        ),
        lambda x: F.interpolate(x, output_size=(1, 5), mode="linear", align_corners=False, half_pixel=True),
        lambda x: F.unpooling(x, (2, 3)),
        lambda x: F.shift(x, (1, -2), border_mode="nearest"),
        lambda x: F.shift(x, (-3, 2), border_mode="reflect"),
        lambda x: x + F.reshape(F.linspace(0.5, 2.0, x.shape[3]), (1, 1, 1, x.shape[3])),
    ],
)
def test_places_in_images_of_any_size_are_those_of_nn_core(build):
    x = nn.Variable((1, 2, 6, 4))
    model = export_model({"y": build(x)}, {"x": x}, dynamic_axes={"x": {2: "H", 3: "W"}})
    rng = np.random.default_rng(0)
    for height, width in ((6, 4), (7, 10), (4, 4), (20, 7)):
        values = rng.normal(size=(1, 2, height, width)).astype(np.float32)
        expected = build(nn.Variable.from_numpy_array(values))
        expected.forward()
        (found,) = verification.run_model(model, {"x": values})
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected.d, rtol=1e-5, atol=1e-6)


def test_recurrent_networks_have_their_batch_second():
    x, h, c = nn.Variable((6, 2, 4)), nn.Variable((1, 1, 2, 5)), nn.Variable((1, 1, 2, 5))
    y = PF.lstm(x, h, c, name="l")[0]
    axes = {"x": {0: "steps", 1: "batch"}, "h": {2: "batch"}, "c": {2: "batch"}}
    model = export_model({"y": y}, {"x": x, "h": h, "c": c}, dynamic_axes=axes)
    assert [axis.dim_param or axis.dim_value for axis in model.graph.output[0].type.tensor_type.shape.dim] == [
        "steps",
        "batch",
        5,
    ]
    state = np.zeros((1, 1, 3, 5), np.float32)
    assert verification.run_model(model, {"x": np.ones((7, 3, 4), np.float32), "h": state, "c": state})[0].shape == (7, 3, 5)
