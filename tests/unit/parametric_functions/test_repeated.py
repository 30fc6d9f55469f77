"""Layers of dynamic graphs that repeat: their bodies do not run again, and that changes nothing."""

from importlib import import_module

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.parameter import get_parameter, set_parameter
from nn_core.parametric_functions.scope import parametric_function_api

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def bodies(monkeypatch):
    """The number of outputs of each affine layer whose body has run."""
    calls = []
    module = import_module("nn_core.parametric_functions.affine")
    sizes = module.affine_sizes
    monkeypatch.setattr(module, "affine_sizes", lambda inp, n, axis: calls.append(n) or sizes(inp, n, axis))
    return calls


def step(layer, values=X, backward=True):
    """One step with a leaf, a function in front of the layer, and a backward pass; returns the layer's values."""
    x = nn.Variable(values.shape)
    x.d = values
    with nn.auto_forward():
        y = layer(F.add_scalar(x, 1))
        loss = F.sum(y)
    result = y.d.copy()
    if backward:
        for parameter in nn.get_parameters().values():
            parameter.grad.zero()
        loss.backward()
    return result


def expected(values=X, scope="a/affine"):
    w, b = get_parameter(f"{scope}/W"), get_parameter(f"{scope}/b")
    return (values + 1) @ w.d + (0 if b is None else b.d)


def layer(x):
    return PF.affine(x, 4, name="a")


def test_the_body_does_not_run_again(bodies):
    for _ in range(5):
        np.testing.assert_allclose(step(layer), expected(), rtol=1e-6)
        np.testing.assert_array_equal(get_parameter("a/affine/b").g, 2)
        np.testing.assert_array_equal(get_parameter("a/affine/W").g, np.repeat((X + 1).sum(0), 4).reshape(3, 4))
    assert len(bodies) == 1


def test_bodies_of_other_packages_run_each_time():
    calls = []

    @parametric_function_api("own", [])
    def own(x):
        calls.append(x)
        return F.mul_scalar(x, 2)

    for _ in range(3):
        step(own)
    assert len(calls) == 3


def changed_values():
    get_parameter("a/affine/W").d += 1


def new_parameter():
    w = nn.Variable.from_numpy_array(np.ones((3, 4), np.float32), need_grad=True)
    set_parameter("a/affine/W", w)


def new_data():
    get_parameter("a/affine/W").data = nn.NdArray.from_numpy_array(np.full((3, 4), 3, np.float32))


def fixed():
    get_parameter("a/affine/W").need_grad = False


def no_longer_fixed():
    get_parameter("a/affine/W").need_grad = True


CHANGES = [changed_values, new_parameter, nn.clear_parameters, new_data, fixed, no_longer_fixed]


@pytest.mark.parametrize("n_steps", [1, 2, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_of_parameters_are_seen(change, n_steps):
    for _ in range(n_steps):
        step(layer)
    change()
    for _ in range(n_steps):
        np.testing.assert_allclose(step(layer), expected(), rtol=1e-6)
        assert get_parameter("a/affine/W").need_grad


OTHER_CALLS = {
    "fixed parameters": lambda x: PF.affine(x, 4, fix_parameters=True, name="a"),
    "keyword": lambda x: PF.affine(x, n_outmaps=4, name="a"),
    "all keywords": lambda x: PF.affine(inp=x, n_outmaps=4, name="a"),
    "name as the last positional argument": lambda x: PF.affine(x, 4, 1, None, None, False, None, True, None, None, "a"),
    "initial values": lambda x: PF.affine(x, 4, w_init=np.zeros((3, 4)), name="a"),
    "several lengths": lambda x: F.reshape(PF.affine(F.reshape(x, (2, 3)), [4], name="a"), (2, 4)),
}


@pytest.mark.parametrize("other", OTHER_CALLS)
def test_other_calls_of_the_same_layer_give_the_same_values(other):
    for _ in range(3):
        np.testing.assert_allclose(step(layer), expected(), rtol=1e-6)
        np.testing.assert_allclose(step(OTHER_CALLS[other]), expected(), rtol=1e-6)


def test_fixed_parameters_get_no_gradient():
    for _ in range(3):
        step(layer)
        step(OTHER_CALLS["fixed parameters"], backward=False)
    x = nn.Variable((2, 3))
    with nn.auto_forward():
        assert not OTHER_CALLS["fixed parameters"](x).need_grad
        assert layer(x).need_grad
    with nn.auto_forward(), nn.no_grad():
        assert not layer(x).need_grad


def test_functions_of_parameters_are_called_each_time():
    calls = []

    def doubled(w):
        calls.append(w)
        return w * 2

    for _ in range(3):
        step(lambda x: PF.affine(x, 4, apply_w=doubled, name="a"))
    assert len(calls) == 3


@pytest.mark.parametrize("n_steps", [1, 3])
def test_calls_that_do_not_fit_are_refused_as_before(n_steps):
    for _ in range(n_steps):
        step(layer)
    with pytest.raises(ShapeError, match=r"'a/affine/W' must keep its shape \(3, 4\), got \(3, 5\)"):
        step(lambda x: PF.affine(x, 5, name="a"))
    with pytest.raises(ShapeError, match=r"'a/affine/W' must keep its shape \(3, 4\), got \(2, 4\)"):
        step(layer, X[:, :2])
    with pytest.raises(ArgumentError, match=r"n_outmaps must be an integer, got 4\.5"):
        step(lambda x: PF.affine(x, 4.5, name="a"))
    with pytest.raises(ArgumentError, match="n_outmaps must be a positive integer, got array"):
        step(lambda x: PF.affine(x, np.array([4, 4]) / 3, name="a"))
    np.testing.assert_allclose(step(layer), expected(), rtol=1e-6)


def test_a_parameter_of_another_shape_is_refused_where_a_function_has_taken_it():
    rows = nn.Variable.from_numpy_array(np.ones((5, 2), np.float32), need_grad=True)
    calls = {"layer": lambda x: PF.embed(x, 4, 2, name="e"), "function": lambda x: F.embed(x, rows)}
    index = np.array([0, 1], np.float32)
    for call in ("layer", "function", "layer"):
        step(calls[call], index, backward=False)
    set_parameter("e/embed/W", rows)
    with pytest.raises(ShapeError, match="must keep its shape"):
        step(calls["layer"], index, backward=False)


def test_layers_in_changing_scopes():
    names = ["a", "b", "a", "c", "b", "a"]
    for _ in range(3):
        for name in names:
            values = step(lambda x, name=name: PF.affine(x, 4, name=name))
            np.testing.assert_allclose(values, expected(scope=f"{name}/affine"), rtol=1e-6)
    own = {}
    for _ in range(3):
        with nn.parameter_scope("", own):
            np.testing.assert_allclose(step(layer), expected(), rtol=1e-6)
        assert own["a"]["affine"]["W"] is not get_parameter("a/affine/W")


def test_inputs_of_the_function_belong_to_one_graph():
    parents = []
    for _ in range(3):
        x = nn.Variable((2, 3))
        with nn.auto_forward():
            parents.append(layer(F.add_scalar(x, 1)).parent)
    weights = [parent.inputs[1] for parent in parents]
    assert len({id(w) for w in weights}) == 3
    assert [w.name for w in weights] == ["W"] * 3
    weights[0].need_grad = False
    assert get_parameter("a/affine/W").need_grad
    assert weights[1].need_grad
