"""Predictors: strict inputs, padding, pools, networks that may not be batched, exchanges of weights."""

import threading
import time

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from extensions.nn_ext_serve.tests.networks import DEPTH, scaled, weights
from nn_core.ext import ArgumentError, DTypeError, NNCoreError, ShapeError
from nn_ext_serve import Graph, NonFiniteError, Predictor, TensorSpec


def network(n):
    x = nn.Variable((n, 1, 6, 6))
    h = F.relu(PF.batch_normalization(PF.convolution(x, 4, (3, 3)), batch_stat=False))
    return Graph({"x": x}, {"y": F.softmax(PF.affine(h, 3))})


def test_answers_are_those_of_the_network_for_any_number_of_samples():
    predictor = Predictor(network, graphs=2, max_batch=6)
    assert predictor.inputs == {"x": TensorSpec("x", (1, 6, 6), np.dtype("float32"))}
    assert predictor.max_batch == 6
    samples = np.random.default_rng(0).normal(size=(6, 1, 6, 6)).astype(np.float32)
    graph = network(6)
    graph.inputs["x"].d = samples
    graph.outputs["y"].forward()
    for n in range(1, 7):
        np.testing.assert_allclose(predictor.predict({"x": samples[:n]})["y"], graph.outputs["y"].d[:n], atol=1e-6)
    assert len(nn.get_parameters()) == 6  # one set for all graphs


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"x": np.zeros((2, 4))}, ShapeError, r"predict: 'x' must have shape \(n, 3\) with n >= 1 samples, got \(2, 4\)"),
        ({"x": np.zeros(3)}, ShapeError, r"'x' must have shape \(n, 3\)"),
        ({"x": 1.0}, ShapeError, r"got \(\)"),
        ({"x": np.zeros((0, 3))}, ShapeError, r"got \(0, 3\)"),
        ({"x": np.zeros((1, 1))}, ShapeError, r"got \(1, 1\)"),  # would be broadcast by `x.d = a`
        ({"x": [[1, 2, 3], [1]]}, ShapeError, "'x' must be nested lists of equal lengths"),
        ({"x": [["a", "b", "c"]]}, DTypeError, "'x' must hold numbers that fit float32"),
        ({"x": np.zeros((1, 3), complex)}, DTypeError, "got complex128"),
        ({"x": np.zeros((1, 3), bool)}, DTypeError, "got bool"),
        ({"x": np.full((1, 3), 1e300)}, ArgumentError, "'x' must hold numbers that float32 represents"),
        ({"x": np.full((1, 3), 2**24 + 1)}, ArgumentError, "'x' must hold numbers that float32 represents"),
        ({"z": np.zeros((1, 3))}, ArgumentError, r"inputs must be \['x'\], got \['z'\]"),
        ({}, ArgumentError, r"inputs must be \['x'\], got \[\]"),
        ({"x": np.zeros((5, 3))}, ArgumentError, "a call must have at most 4 samples, got 5"),
    ],
    ids=str,
)  # fmt: skip
def test_inputs_that_do_not_fit_are_refused_by_name(given, kind, text):
    predictor = Predictor(scaled(weights(1.0)), max_batch=4)
    with pytest.raises(kind, match=text):
        predictor.predict(given)
    np.testing.assert_array_equal(predictor.predict({"x": np.ones((1, 3), np.float64)})["y"], np.ones((1, 3)))


def test_several_inputs_have_the_same_number_of_samples():
    def build(n):
        a, b = nn.Variable((n, 2)), nn.Variable.from_numpy_array(np.zeros((n,), np.int64))
        return Graph({"a": a, "b": b}, {"y": F.sum(a, axis=1) + b})

    predictor = Predictor(build, max_batch=2)
    np.testing.assert_array_equal(predictor.predict({"a": [[1, 2]], "b": [3]})["y"], [6])
    with pytest.raises(ShapeError, match=r"the same number of samples, got \{'a': 1, 'b': 2\}"):
        predictor.predict({"a": [[1, 2]], "b": [3, 4]})
    with pytest.raises(DTypeError, match="'b' must hold numbers that fit int64, got float64"):
        predictor.predict({"a": [[1, 2]], "b": [3.0]})


def test_a_network_whose_samples_depend_on_each_other_is_refused():
    def build(n):
        x = nn.Variable((n, 4))
        return Graph({"x": x}, {"y": PF.batch_normalization(x, name="b")})

    with pytest.raises(ArgumentError, match="output 'y' of a sample must not depend on the other samples of its batch"):
        Predictor(build)
    Predictor(build, max_batch=1)
    Predictor(build, check_samples=False)


@pytest.mark.parametrize(
    ("build", "kind", "text"),
    [
        (lambda n: Graph({}, {"y": F.constant(1, (n,))}), ArgumentError, "a network must have inputs and outputs"),
        (lambda n: (lambda x: Graph({"x": x}, {"y": F.mean(x)}))(nn.Variable((n, 2))), ShapeError, "axis 0 of all inputs and"),
        (lambda n: (lambda x: Graph({"x": x}, {"y": F.transpose(x, (1, 0))}))(nn.Variable((n, 2))), ShapeError, "must be the"),
    ],
    ids=["no input", "scalar", "another axis"],
)  # fmt: skip
def test_networks_that_cannot_be_served(build, kind, text):
    with pytest.raises(kind, match=text):
        Predictor(build)
    with pytest.raises(ArgumentError, match="Predictor: graphs must be at least 1, got 0"):
        Predictor(build, graphs=0)


def test_a_network_with_a_fixed_number_of_samples_is_padded():
    shared = weights(2.0)
    predictor = Predictor(lambda n: scaled(shared)(5), max_batch=2)
    assert predictor.max_batch == 5
    np.testing.assert_array_equal(predictor.predict({"x": np.ones((3, 3))})["y"], np.full((3, 3), 2.0**DEPTH))


def test_answers_that_are_not_finite_are_refused_on_request():
    def build(n):
        x = nn.Variable((n, 2))
        return Graph({"x": x}, {"y": F.log(x)})

    given = {"x": [[1.0, 0.0]]}
    assert np.isneginf(Predictor(build, max_batch=1).predict(given)["y"][0, 1])
    with pytest.raises(NonFiniteError, match="predict: output 'y' must be finite, got 1 of 2 numbers that are not"):
        Predictor(build, max_batch=1, check_finite=True).predict(given)


def test_answers_come_from_one_set_of_weights_while_they_are_exchanged():
    shared = weights(1.0)
    predictor = Predictor(scaled(shared, pauses=True), graphs=3, max_batch=4, parameters=shared)
    one, two, found, ends = weights(1.0), weights(2.0), [], threading.Event()

    def ask():
        while not ends.is_set():
            answer = predictor.predict({"x": np.ones((2, 3))})["y"]
            found.append(answer[0, 0] if (answer == answer[0, 0]).all() else np.nan)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    n_swaps = 0
    while len(found) < 30 or n_swaps < 30:
        predictor.swap_parameters((two, one)[n_swaps % 2])
        n_swaps += 1
        time.sleep(0.001)  # an exchange goes before calls that wait
    ends.set()
    for thread in threads:
        thread.join()
    assert set(found) == {1.0, 2.0**DEPTH}


def test_a_wrong_set_of_weights_changes_nothing():
    shared = weights(3.0)
    predictor = Predictor(scaled(shared), parameters=shared)
    with pytest.raises(ArgumentError, match="source must have exactly the parameters"):
        predictor.swap_parameters({"w0": weights(9.0)["w0"]})
    np.testing.assert_array_equal(predictor.predict({"x": np.ones((1, 3))})["y"], np.full((1, 3), 3.0**DEPTH))


def test_a_network_is_replaced_by_one_with_the_same_inputs_and_outputs():
    predictor = Predictor(scaled(weights(1.0)), graphs=2)

    def other(n):
        x = nn.Variable((n, 3))
        return Graph({"x": x}, {"y": F.exp(x)})

    predictor.replace(other)
    np.testing.assert_array_equal(predictor.predict({"x": np.zeros((1, 3))})["y"], np.ones((1, 3)))

    def wider(n):
        x = nn.Variable((n, 4))
        return Graph({"x": x}, {"y": F.exp(x)})

    with pytest.raises(ArgumentError, match="replace: the inputs must stay"):
        predictor.replace(wider)
    np.testing.assert_array_equal(predictor.predict({"x": np.zeros((1, 3))})["y"], np.ones((1, 3)))


def test_a_failing_call_gives_its_graph_back():
    def build(n):
        x = nn.Variable.from_numpy_array(np.zeros((n,), np.int64))
        return Graph({"i": x}, {"y": F.embed(x, nn.Variable.from_numpy_array(np.eye(3)))})

    predictor = Predictor(build, graphs=1, max_batch=1)
    for _ in range(3):
        with pytest.raises(NNCoreError):
            predictor.predict({"i": [7]})
    np.testing.assert_array_equal(predictor.predict({"i": [2]})["y"], [[0, 0, 1]])


def test_each_graph_of_a_network_with_parameters_of_its_own_shares_them():
    built = []

    def build(n):
        own = weights(2.0)
        graph = scaled(own)(n)
        graph.parameters = own
        built.append(own)
        return graph

    predictor = Predictor(build, graphs=2, max_batch=2)
    assert len(built) == 4
    predictor.swap_parameters(weights(3.0))
    for n in (1, 2):
        np.testing.assert_array_equal(predictor.predict({"x": np.ones((n, 3))})["y"], np.full((n, 3), 3.0**DEPTH))
