"""Quantization-aware training: recorders, scales, the course of a training; the numbers are those of NNabla 1.39."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, ShapeError
from nn_core.experimental.graph_converters import GraphConverter
from nn_core.experimental.graph_converters.quantize import QuantizeRecordingToTrainingModifier
from nn_core.graph_rewriting import functions_of
from nn_core.utils import qnn

PASSES = np.array([[0.5, -2.0], [3.0, 1.0], [-1.0, 2.0]], np.float32)


@pytest.fixture
def data():
    return np.random.RandomState(5).randn(16, 6).astype(np.float32)


@pytest.mark.parametrize(
    ("record", "ends", "expected"),
    [
        (qnn.abs_max_recorder, "M", [[2.0], [3.0], [3.0]]),
        (qnn.max_max_recorder, "M", [[0.5], [3.0], [3.0]]),
        (qnn.max_mva_recorder, "M", [[0.005], [0.03495], [0.0546005]]),
        (qnn.minmax_minmax_recorder, "mM", [[-2.0, 0.5], [-2.0, 3.0], [-2.0, 3.0]]),
        (qnn.minmax_mva_recorder, "mM", [[-0.02, 0.005], [-0.0098, 0.03495], [-0.019702, 0.0546005]]),
    ],
)
def test_recorders_note_the_range_and_pass_values_and_gradients_on(record, ends, expected):
    x, limits = nn.Variable((1, 2), need_grad=True), [nn.Variable.from_numpy_array([[0.0]]) for _ in ends]
    y = record(x, *limits)
    for values, wanted in zip(PASSES, expected, strict=True):
        x.d = [values]
        y.forward()
        np.testing.assert_allclose([end.d.item() for end in limits], wanted, rtol=1e-5)
        np.testing.assert_array_equal(y.d, x.d)
    x.g = 7.0
    y.backward(3.0)
    assert x.g.tolist() == [[10.0, 10.0]]
    before = [end.d.item() for end in limits]
    record(x, *limits, training=False).forward()
    assert [end.d.item() for end in limits] == before


def test_a_range_of_each_column():
    x, upper = nn.Variable.from_numpy_array(PASSES), nn.Variable((1, 2))
    upper.d = 0
    qnn.max_max_recorder(x, upper).forward()
    assert upper.d.tolist() == [[3.0, 2.0]]
    with pytest.raises(ShapeError, match=r"a range must have 1 or the length of x at each axis, got \(1, 3\) for \(3, 2\)"):
        qnn.max_max_recorder(x, nn.Variable((1, 3)))


@pytest.mark.parametrize(("method", "scale"), [("NOTROUND", 3 / 127), ("CEIL", 2**-5), ("ROUND", 2**-5), ("FLOOR", 2**-6)])
def test_scales(method, scale):
    callback = qnn.AbsMaxRecorderCallback
    x = nn.Variable.from_numpy_array(PASSES)
    callback()(x, name="x0").forward()
    for given in (method, qnn.QATConfig.RoundingMethod(method)):
        made, zero = callback.get_scale_zeropoint(x, round_method=given, name="x0")
        assert made.shape == zero.shape == (1, 1)
        assert (made.d.item(), zero.d.item()) == (pytest.approx(scale, rel=1e-6), 0)
    with pytest.raises(ArgumentError, match=r"round_method must be one of .*, got 'UP'"):
        callback.get_scale_zeropoint(x, round_method="UP", name="x0")
    with pytest.raises(ArgumentError, match=r"the values must have been recorded, got no parameter 'M-x1'"):
        callback.get_scale_zeropoint(x, name="x1")


def layers(x):
    h = F.relu(PF.affine(x, 5, name="first"))
    h = F.relu(PF.affine(F.dropout(h, 0.0), 4, name="middle"))
    return F.softmax(PF.affine(h, 3, name="last"))


def config(**settings):
    made = qnn.QATTensorRTConfig()
    made.niter_to_recording, made.niter_to_training = 1, 3
    made.skip_inputs_layers = ["Affine"]
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def rounded(values, scale):
    return np.clip(np.round(values / scale), -128, 127) * scale


def test_the_course_of_a_training(data):
    x = nn.Variable.from_numpy_array(data)
    y = layers(x)
    loss = F.sum(y)
    for name, parameter in nn.get_parameters().items():
        parameter.d = np.random.RandomState(len(name)).randn(*parameter.shape) * 0.5
    plain = nn.get_parameters()
    solver = S.Momentum(0.5)
    solver.set_parameters(plain)
    scheduler = qnn.QATScheduler(config(recorder_activation=qnn.AbsMaxRecorderCallback), solver)
    scheduler(y)
    states = []
    for _ in range(4):
        scheduler.step()
        loss.forward()
        states.append(scheduler.state.name)
    assert states == ["NON_QNN", "RECORDING", "RECORDING", "TRAINING"]
    assert solver.learning_rate() == pytest.approx(0.05)
    assert set(solver.get_parameters()) == set(plain)

    w = {name: parameter.d for name, parameter in plain.items()}
    p = {name: parameter.d.item() for name, parameter in nn.get_parameters(grad_only=False).items() if "scale" in name}
    assert all(np.log2(scale) == round(np.log2(scale)) for scale in p.values())
    h = np.maximum(rounded(data @ w["first/affine/W"] + w["first/affine/b"], p["ReLU-1/scale-x0"]), 0)
    h = rounded(h, p["Affine-2/scale-x0"]) @ rounded(w["middle/affine/W"], p["Affine-2/scale-w0"])
    assert p["Affine-2/scale-b"] == p["Affine-2/scale-x0"] * p["Affine-2/scale-w0"]
    h = h + rounded(w["middle/affine/b"], p["Affine-2/scale-b"])
    h = np.maximum(rounded(h, p["ReLU-3/scale-x0"]), 0)
    logits = h @ w["last/affine/W"] + w["last/affine/b"]
    np.testing.assert_allclose(y.d, np.exp(logits) / np.exp(logits).sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("settings", "n_recorders"),
    [
        ({}, 5),
        ({"skip_inputs_layers": []}, 8),
        ({"skip_outputs_layers": []}, 8),
        ({"record_layers": ["ReLU"]}, 2),
        ({"recorder_position": qnn.QATConfig.RecorderPosition.BOTH}, 8),
    ],
)
def test_what_is_recorded(data, settings, n_recorders):
    y = layers(nn.Variable.from_numpy_array(data))
    scheduler = qnn.QATScheduler(config(niter_to_recording=0, **settings))
    scheduler(y)
    scheduler.step()
    assert sum("Recorder" in function.name for function in functions_of([y])) == n_recorders


def test_biases_may_be_left(data):
    y = layers(nn.Variable.from_numpy_array(data))
    scheduler = qnn.QATScheduler(config(niter_to_recording=0, niter_to_training=1, skip_bias=True))
    scheduler(y)
    for _ in range(2):
        scheduler.step()
        y.forward()
    biases = [function.inputs[2].parent for function in functions_of([y]) if function.name == "Affine"]
    assert biases == [None, None, None]


def normalized(x, test):
    h = PF.convolution(x, 4, (3, 3), pad=(1, 1), with_bias=False, name="c1")
    h = F.relu(PF.batch_normalization(h, batch_stat=not test, name="b1"))
    h = PF.batch_normalization(PF.convolution(h, 4, (1, 1), name="c2"), batch_stat=not test, name="b2")
    return PF.affine(F.relu(h), 3, name="out")


def trained(rng, n_steps=30):
    """Return a scheduler that has trained a network, with its inputs, its result for evaluation, and the losses."""
    x, t = nn.Variable((16, 2, 6, 6)), nn.Variable((16, 1))
    x.d, t.d = rng.randn(*x.shape), rng.randint(0, 3, size=t.shape)
    prediction, evaluation = normalized(x, False), normalized(x, True)
    loss = F.mean(F.softmax_cross_entropy(prediction, t))
    solver = S.Adam(0.01)
    solver.set_parameters(nn.get_parameters())
    settings = {"niter_to_recording": 15, "niter_to_training": 20, "recorder_activation": qnn.AbsMaxRecorderCallback}
    scheduler = qnn.QATScheduler(config(**settings), solver)
    scheduler(prediction)
    scheduler(evaluation, training=False)
    losses = []
    for _ in range(n_steps):
        scheduler.step()
        loss.forward()
        solver.zero_grad()
        loss.backward()
        solver.update()
        losses.append(loss.d.item())
    return scheduler, x, prediction, evaluation, losses


def test_training_and_evaluation_share_folded_weights():
    scheduler, _, prediction, evaluation, losses = trained(np.random.RandomState(0))
    assert losses[29] < losses[20] < losses[0]
    names = [function.name for function in functions_of([prediction])]
    assert "BatchNormalization" not in names and names.count("QuantizeLinear") == 8
    nn.forward_all([prediction, evaluation])
    np.testing.assert_array_equal(prediction.d, evaluation.d)
    assert scheduler.solver.learning_rate() == pytest.approx(0.001)
    assert set(scheduler.solver.get_parameters()) == {
        f"{layer}/{name}" for layer, name in [("out/affine", "W"), ("out/affine", "b")]
    } | {f"{layer}/conv/{name}-folded" for layer in ("c1", "c2") for name in "wb"}


def test_a_saved_network_computes_the_same(tmp_path):
    pytest.importorskip("nn_ext_nnp")
    from nn_core.utils.nnp_graph import NnpLoader

    scheduler, x, _, evaluation, _ = trained(np.random.RandomState(1), 22)
    scheduler.save(str(tmp_path / "net.nnp"), [x], batch_size=16)
    evaluation.forward()
    nn.clear_parameters()
    network = NnpLoader(str(tmp_path / "net.nnp")).get_network("net")
    network.inputs["x0"].d = x.d
    network.outputs["y0"].forward()
    np.testing.assert_allclose(network.outputs["y0"].d, evaluation.d, rtol=1e-6, atol=1e-6)
    with pytest.raises(ArgumentError, match=r"(?s)save: deploy must be False, got True.*nn_ext_c.quantize"):
        scheduler.save(str(tmp_path / "net.nnp"), [x], deploy=True)


def test_what_a_scheduler_refuses(data):
    y = layers(nn.Variable.from_numpy_array(data))
    with pytest.raises(ArgumentError, match=r"precision_mode must be PrecisionMode.SIM_QNN, got <PrecisionMode.QNN: 0>"):
        qnn.QATScheduler(config(precision_mode=qnn.PrecisionMode.QNN))
    with pytest.raises(ArgumentError, match=r"config.dtype must be <class 'numpy.int8'>, got"):
        qnn.QATScheduler(config(dtype=np.uint8))
    scheduler = qnn.QATScheduler(config(niter_to_recording=5, niter_to_training=0))
    with pytest.raises(ArgumentError, match=r"pred must be the result of a function, got"):
        scheduler(nn.Variable((2,)))
    with pytest.raises(ArgumentError, match=r"save: a graph must have been given, got none"):
        scheduler.save("net.nnp", [])
    scheduler(y)
    with pytest.raises(ArgumentError, match=r"niter_to_training must be greater than niter_to_recording, got 0 and 5"):
        scheduler.step()
    scheduler.config.niter_to_recording = 0
    scheduler.step()
    with pytest.raises(ArgumentError, match=r"graphs must be given before recording begins, got one in QNNState.RECORDING"):
        scheduler(y)


def test_a_range_that_is_no_parameter(data):
    x, upper = nn.Variable.from_numpy_array(data), nn.Variable.from_numpy_array([[1.0]])
    y = F.relu(qnn.max_mva_recorder(x, upper))
    with pytest.raises(ArgumentError, match=r"the range of .*MaxMvaRecorder.* must be a parameter of the current scope"):
        GraphConverter(QuantizeRecordingToTrainingModifier()).convert(y)
