"""Post-training quantization: near the network of floating-point numbers, and no function by another one's rule."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core.errors import ArgumentError
from nn_core.graph_rewriting import functions_of
from nn_core.utils.data_iterator import data_iterator_simple
from nn_core.utils.quantization import quantize
from nn_core.utils.quantization.calibration import Range, scale_of
from tests.calls import n_calls


def convolutional(x, *, batch_stat=False):
    """Return scores by all that becomes part of a product, or stays between two."""
    h = PF.convolution(x, 16, (3, 3), pad=(1, 1), with_bias=False, name="first")
    h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=batch_stat, name="first")), (2, 2))
    y = F.relu(PF.depthwise_convolution(h, (3, 3), pad=(1, 1), name="depthwise"))
    y = PF.convolution(y, 16, (1, 1), name="pointwise")
    h = F.relu(h + y)
    h = F.concatenate(F.average_pooling(h, (2, 2)), F.max_pooling(h, (2, 2)), axis=1)
    h = F.relu(PF.affine(h, 20, name="hidden"))
    return PF.affine(h, 10, name="scores")


def attention(x):
    """Return one head of attention over rows, and a layer after it."""
    q, k, v = (PF.affine(x, 16, base_axis=2, name=name) for name in "qkv")
    scores = F.softmax(F.batch_matmul(q, k, transpose_b=True) * 0.25)
    return PF.affine(F.transpose(F.batch_matmul(scores, v), (0, 2, 1)), 3, base_axis=2, name="last")


def distance(y, x, samples, network):
    """Return how far a network of integers is from that of floating-point numbers, relative to the largest number."""
    found = network(samples)
    x.d = samples
    y.forward()
    return float(np.abs(found - y.d).max() / np.abs(y.d).max())


@pytest.mark.parametrize("method", ["minmax", "percentile", "mse"])
def test_networks_are_near_those_of_floating_point_numbers(rng, method):
    samples = rng.normal(size=(24, 3, 8, 8)).astype(np.float32)
    x = nn.Variable((4, 3, 8, 8))
    y = convolutional(x)
    network = quantize(y, [x], calibration=samples, method=method, percentile=99.999)
    assert network.in_integers == ["Convolution", "DepthwiseConvolution", "Convolution", "Affine", "Affine"]
    assert "BatchNormalization" not in network.in_floats
    assert network.in_floats.count("ReLU") == 1  # that of the sum; the others are part of a product
    assert distance(y, x, samples[:4], network) < 0.03


def test_products_of_two_values_are_those_of_integers(rng):
    samples = rng.normal(size=(8, 5, 12)).astype(np.float32)
    x = nn.Variable((2, 5, 12))
    y = attention(x)
    network = quantize(y, calibration=samples)
    assert sorted(network.in_integers) == ["Affine"] * 4 + ["BatchMatmul"] * 2
    assert network.in_floats == ["MulScalar", "Softmax"]  # levels are transposed
    assert distance(y, x, samples[:2], network) < 0.03


def test_the_network_that_is_given_stays_as_it_is(rng):
    x = nn.Variable((4, 3, 8, 8))
    y = convolutional(x)
    x.d = given = rng.normal(size=x.shape).astype(np.float32)
    y.forward()
    before, names = y.d.copy(), [function.name for function in functions_of([y])]
    parameters = {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}
    quantize(y, calibration=rng.normal(size=(4, 3, 8, 8)))
    np.testing.assert_array_equal(y.d, before)
    np.testing.assert_array_equal(x.d, given)
    assert [function.name for function in functions_of([y])] == names
    assert parameters.keys() == nn.get_parameters(grad_only=False).keys()


def test_weights_have_a_scale_for_each_filter(rng):
    x = nn.Variable((1, 2, 4, 4))
    weight = rng.normal(size=(3, 2, 1, 1)).astype(np.float32) * np.array([1, 100, 0.001], np.float32).reshape(3, 1, 1, 1)
    y = F.convolution(x, nn.Variable.from_numpy_array(weight))
    samples = rng.normal(size=(4, 2, 4, 4)).astype(np.float32)
    found = quantize(y, [x], calibration=samples)(samples[:1])
    x.d = samples[:1]
    y.forward()
    assert (np.abs(found - y.d).max(axis=(0, 2, 3)) / np.abs(y.d).max(axis=(0, 2, 3))).max() < 0.02


def test_several_results_are_planned_once(rng):
    x = nn.Variable((2, 3))
    h = x
    for n in range(10):
        h = F.tanh(PF.affine(h, 3, name=str(n)))
    samples = rng.normal(size=(2, 3)).astype(np.float32)
    network = quantize({"a": PF.affine(h, 2, name="a"), "b": PF.affine(h, 2, name="b")}, [x], calibration=samples)
    first, _, later = (n_calls(network, samples) for _ in range(3))
    assert 3 * later < first


def test_batches_come_in_several_forms(rng):
    x, z = nn.Variable((2, 3)), nn.Variable((2, 3))
    y = PF.affine(x * z, 4)
    a, b = (rng.normal(size=(6, 3)).astype(np.float32) for _ in range(2))
    forms = [
        {"x": a, "z": b},
        [(a[:2], b[:2], None), (a[2:], b[2:], None)],
        ({"x": a[k : k + 1], "z": b[k : k + 1]} for k in range(6)),
    ]
    found = [quantize(y, {"x": x, "z": z}, calibration=form)(a[:2], b[:2]) for form in forms]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_data_iterator_gives_one_epoch(rng):
    x = nn.Variable((4, 5))
    y = PF.affine(x, 3)
    samples = rng.normal(size=(10, 5)).astype(np.float32)
    with data_iterator_simple(lambda k: (samples[k],), len(samples), 4) as batches:
        found = quantize(y, [x], calibration=batches)
    given = [samples[[*range(k, min(k + 4, 10)), *range(max(k + 4 - 10, 0))]] for k in (0, 4, 8)]
    np.testing.assert_array_equal(found(samples[:4]), quantize(y, [x], calibration=given)(samples[:4]))


def test_modules_and_several_results(rng):
    net = nn.Sequential(nn.layers.Affine(8), nn.layers.ReLU(), nn.layers.Affine(3))
    samples = rng.normal(size=(20, 5)).astype(np.float32)
    network = quantize(net, calibration=samples)
    assert network(samples).shape == (20, 3)
    x = nn.Variable((20, 5))
    hidden = F.relu(PF.affine(x, 6, name="a"))
    network = quantize({"hidden": hidden, "y": PF.affine(hidden, 2, name="b")}, calibration=samples)
    assert list(network.outputs) == ["hidden", "y"]
    assert [array.shape for array in network(samples)] == [(20, 6), (20, 2)]


def test_ranges_follow_the_method(rng):
    values = np.append(rng.normal(size=100_000), 50.0)
    found = {}
    for method in ("minmax", "percentile", "mse"):
        entry = Range()
        entry.widen(values)
        entry.count(values)
        found[method] = entry.bounds(method, 99.9)
    assert found["minmax"] == (values.min(), 50.0)
    assert 2.9 < found["percentile"][1] < 3.3
    assert found["mse"][1] < 50.0
    entry = Range()
    entry.widen(np.array([2.0, 3.0]))
    assert entry.bounds("minmax", 99.9) == (0.0, 3.0)  # 0 is always a level
    assert scale_of(0.0, 0.0) == (1.0, 0)
    assert scale_of(-1.0, 1.0)[1] in (127, 128)


def test_what_does_not_fit_is_refused(rng):
    x = nn.Variable((2, 3, 4, 4))
    y = F.convolution(x, nn.Variable.from_numpy_array(np.ones((1, 3, 1, 1))))
    samples = rng.normal(size=(4, 3, 4, 4))
    with pytest.raises(ArgumentError, match="method must be one of minmax, percentile, mse, got 'entropy'"):
        quantize(y, [x], calibration=samples, method="entropy")
    with pytest.raises(ArgumentError, match="percentile must be above 50 and at most 100, got 3"):
        quantize(y, [x], calibration=samples, percentile=3)
    with pytest.raises(
        ArgumentError, match=r"calibration of 'x' must be samples of shape \(3, 4, 4\), got an array of \(4, 3\)"
    ):
        quantize(y, [x], calibration=np.ones((4, 3)))
    with pytest.raises(ArgumentError, match="calibration must have samples, got none"):
        quantize(y, [x], calibration=[])
    with pytest.raises(ArgumentError, match="calibration must be arrays or an iterable of batches, got int"):
        quantize(y, [x], calibration=3)
    with pytest.raises(ArgumentError, match="values must be finite to be calibrated"):
        quantize(y, [x], calibration=np.full_like(samples, np.nan))
    with pytest.raises(ArgumentError, match="normalizations must use running statistics, got BatchNormalization"):
        quantize(convolutional(nn.Variable((2, 3, 8, 8)), batch_stat=True), calibration=rng.normal(size=(2, 3, 8, 8)))
    with pytest.raises(ArgumentError, match="there must be an array for each of"):
        quantize(y, [x], calibration=samples)()


def digits_network(x, *, is_training):
    """Return the scores of ten digits."""
    h = x
    for number, maps in enumerate((8, 16)):
        h = PF.convolution(h, maps, (3, 3), pad=(1, 1), with_bias=False, name=f"conv{number}")
        h = F.max_pooling(F.relu(PF.batch_normalization(h, batch_stat=is_training, name=f"norm{number}")), (2, 2))
    return PF.affine(h, 10, name="classifier")


def test_digits_are_recognised_as_well(rng):
    nn.seed(0)
    digits = load_digits()
    order = rng.permutation(len(digits.images))
    images, labels = (digits.images / 16).astype(np.float32)[order][:, None], digits.target[order][:, None]
    x, t = nn.Variable((64, 1, 8, 8)), nn.Variable((64, 1))
    loss = F.mean(F.softmax_cross_entropy(digits_network(x, is_training=True), t))
    solver = S.Adam(alpha=5e-3)
    solver.set_parameters(nn.get_parameters())
    for step in range(50):
        rows = np.arange(64 * step, 64 * step + 64) % 1200
        x.d, t.d = images[rows], labels[rows]
        solver.zero_grad()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        solver.update()
    x = nn.Variable((597, 1, 8, 8))
    y = digits_network(x, is_training=False)
    x.d = images[1200:]
    y.forward()
    accuracy = np.mean(y.d.argmax(axis=1) == labels[1200:, 0])
    assert accuracy > 0.9
    for method in ("minmax", "mse"):
        small = nn.Variable((50, 1, 8, 8))
        network = quantize(digits_network(small, is_training=False), calibration=images[:200], method=method)
        right = [network(images[k : k + 50]).argmax(axis=1) == labels[k : k + 50, 0] for k in range(1200, 1750, 50)]
        whole = np.mean(y.d[:550].argmax(axis=1) == labels[1200:1750, 0])
        assert np.mean(right) >= whole - 0.005, method
