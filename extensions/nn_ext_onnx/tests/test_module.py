"""Models as modules: called with inputs of any shape, trained, saved, copied."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
from onnx import parser

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError, MissingFileError, ShapeError
from nn_core.training import fit
from nn_ext_onnx import OnnxModule, export

SAMPLES = np.random.default_rng(0).normal(size=(6, 3, 8, 8)).astype(np.float32)
LABELS = np.arange(6) % 5


@pytest.fixture
def exported(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Return the path of a model, and what it gives for the samples."""
    x = nn.Variable((1, 3, 8, 8))
    h = PF.batch_normalization(F.relu(PF.convolution(x, 4, (3, 3), name="conv")), batch_stat=False, name="norm")
    y = PF.affine(h, 5, name="scores")
    export(tmp_path / "net.onnx", {"y": y}, {"x": x}, dynamic_batch="N")
    x.reset_shape(SAMPLES.shape, True)
    x.d = SAMPLES
    y.forward()
    return tmp_path / "net.onnx", y.d.copy()


def test_calls_of_all_batch_sizes_share_the_parameters(exported):
    path, expected = exported
    net = OnnxModule(path)
    np.testing.assert_allclose(nn.predict(net, SAMPLES), expected, atol=1e-5)
    names = list(net.get_parameters(grad_only=False))
    np.testing.assert_allclose(nn.predict(net, SAMPLES, batch_size=4), expected, atol=1e-5)
    assert names == list(net.get_parameters(grad_only=False))
    assert set(names) >= {"conv/conv/W", "conv/conv/b", "norm/bn/mean", "scores/affine/W", "scores/affine/b"}
    y = net(nn.Variable.from_numpy_array(SAMPLES[:2]))
    net.get_parameters()["scores/affine/b"].d += 1
    y.forward()
    np.testing.assert_allclose(y.d, expected[:2] + 1, atol=1e-5)
    np.testing.assert_allclose(nn.predict(net, SAMPLES), expected + 1, atol=1e-5)


def test_a_model_is_trained_saved_and_copied(exported, tmp_path):
    net = OnnxModule(exported[0])
    result = fit(net, (SAMPLES, LABELS), epochs=20, solver=S.Adam(0.01), progress=False)
    assert result.history[-1]["loss"] < 0.1 * result.history[0]["loss"]
    trained = nn.predict(net, SAMPLES)
    net.save_parameters(tmp_path / "trained.h5")
    other = OnnxModule(exported[0])
    assert len(other.load_parameters(tmp_path / "trained.h5").created) == len(net.get_parameters(grad_only=False))
    for same in (other, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(nn.predict(same, SAMPLES), trained)


def test_a_model_computes_at_once_in_a_dynamic_graph(exported):
    net = OnnxModule(exported[0])
    with nn.auto_forward():
        y = net(nn.Variable.from_numpy_array(SAMPLES))
    np.testing.assert_allclose(y.d, exported[1], atol=1e-5)


def test_several_inputs_and_outputs_go_by_position_and_by_name():
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> sums (float[N, 2] a, float[N, 2] b) => (float[N, 2] c, float[N, 2] d)
        { c = Sub(a, b) d = Add(a, b) }"""
    )
    net = OnnxModule(model)
    a, b = nn.Variable.from_numpy_array([[5.0, 1.0]]), nn.Variable.from_numpy_array([[2.0, 3.0]])
    for outputs in (net(a, b), net(a, b=b), net(b=b, a=a)):
        nn.forward_all(outputs)
        assert [y.d.tolist() for y in outputs] == [[[3.0, -2.0]], [[7.0, 4.0]]]
    for args, kwargs in (((a,), {}), ((a, b, a), {}), ((a, b), {"a": a}), ((a,), {"c": b})):
        with pytest.raises(ArgumentError, match=r"^sums: the inputs must be \['a', 'b'\], got"):
            net(*args, **kwargs)


def test_inputs_that_do_not_fit_are_refused(exported):
    net = OnnxModule(exported[0])
    for shape in ((2, 3, 9, 8), (3, 8, 8), ()):
        with pytest.raises(ShapeError, match=r"x must have shape \(N, 3, 8, 8\), got \("):
            net(nn.Variable(shape))
    with pytest.raises(ArgumentError, match=r"x must be a Variable, got ndarray\n  hint: nn_core.predict\(net, array\)"):
        net(SAMPLES)
    with pytest.raises(MissingFileError, match=r"nowhere\.onnx"):
        OnnxModule("nowhere.onnx")
