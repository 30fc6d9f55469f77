"""Gradients that pass through sums unchanged: several values share one array, and what is added is written elsewhere."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.backward import backward_plan
from nn_core.operators.spec.builtin import BY_NAME, SPECS
from nn_core.settings import without
from nn_core.testing.operators import run_gradient

SHAPE = (3, 4)


def leaf(seed):
    return nn.Variable.from_numpy_array(np.random.default_rng(seed).normal(size=SHAPE).astype("float32"), need_grad=True)


def gradients(build, passes=3, **options):
    """The gradients of all leaves after some passes, with and without shared arrays."""
    results = []
    for shares in (True, False):
        leaves, y = build()
        for number in range(passes):
            y.forward(clear_no_need_grad=True)
            for k, each in enumerate(leaves):
                each.grad.fill(k if number else 0)  # they add to what is there, too
            if shares:
                y.backward(2.0, clear_buffer=True)
            else:
                with without("share_memory"):
                    y.backward(2.0, clear_buffer=True)
        results.append([each.g.copy() for each in leaves])
    return results


def residual():
    x = leaf(0)
    h = F.sin(x)
    for _ in range(3):
        h = h + F.tanh(h * 0.5)
    return [x], F.sum(h**2)


def twice():
    x = leaf(0)
    h = F.sin(x)
    return [x], F.sum((h + h) ** 2)


def three_readers():
    x = leaf(0)
    h = F.sin(x)
    k = F.tanh(h)
    total = h + k
    return [x], F.sum(F.exp(total + h * k) + k * 3)


def of_a_leaf():
    x, z = leaf(0), leaf(1)
    return [x, z], F.sum((x + F.sin(z)) ** 2)


def broadcast():
    x = leaf(0)
    z = nn.Variable.from_numpy_array(np.ones((1, 4), "float32"), need_grad=True)
    return [x, z], F.sum((F.sin(x) + F.tanh(z)) ** 2)


def several():
    x, z = leaf(0), leaf(1)
    h, k = F.sin(x), F.tanh(z)
    return [x, z], F.sum(F.add_n(h, k, h * k, F.identity(h)) ** 2) + F.mean(h)


def reshaped():
    x = leaf(0)
    h = F.sin(x)
    flat = F.reshape(h, (12,))
    return [x], F.sum((flat + F.tanh(F.reshape(h, (12,)))) ** 2) + F.sum(F.reshape(h + h * h, (2, 6)) ** 2)


@pytest.mark.parametrize("build", [residual, twice, three_readers, of_a_leaf, broadcast, several, reshaped])
def test_gradients_are_those_of_arrays_of_their_own(build):
    for one, other in zip(*gradients(build), strict=True):
        np.testing.assert_array_equal(one, other)


def random_sums(seed):
    """Functions of some values each, many of them sums."""
    rng = np.random.default_rng(seed)
    leaves = [leaf(seed), leaf(seed + 100)]
    values = [F.sin(each) for each in leaves]
    for _ in range(12):
        one, other, third = (values[rng.integers(max(len(values) - 4, 0), len(values))] for _ in range(3))
        makers = [
            lambda a=one, b=other: a + b,
            lambda a=one, b=other, c=third: F.add_n(a, b, c) * 0.5,
            lambda a=one: a + 1.5,
            lambda a=one: F.tanh(a),
            lambda a=one, b=other: a * b,
            lambda a=one: F.reshape(F.reshape(a, (12,)), SHAPE, inplace=bool(rng.integers(2))),
            lambda a=one, b=other: F.add2(F.tanh(a), b, inplace=True),
        ]
        made = makers[rng.choice(len(makers), p=[0.35, 0.1, 0.1, 0.15, 0.1, 0.1, 0.1])]()
        made.persistent = bool(rng.random() < 0.1)
        values.append(made)
    return leaves, F.sum(F.tanh(F.add_n(*values[-3:])))


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_have_the_gradients_of_arrays_of_their_own(seed):
    for one, other in zip(*gradients(lambda: random_sums(seed)), strict=True):
        np.testing.assert_array_equal(one, other)


def functions_of(y):
    """The functions whose gradients a pass computes."""
    y.forward(clear_no_need_grad=True)
    return [entry.node.spec.name for entry in backward_plan(y, True, True, None).entries if entry.node is not None]


def test_nothing_is_computed_for_a_sum():
    _, y = residual()
    assert "Add2" not in functions_of(y)
    with without("share_memory"):
        assert functions_of(residual()[1]).count("Add2") == 3


def test_gradients_that_are_seen_have_arrays_of_their_own():
    x = leaf(0)
    h, k = F.sin(x), F.tanh(x)
    h.persistent = k.persistent = True
    y = F.sum((h + k) ** 2)
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    expected = k.g.copy()
    np.testing.assert_array_equal(h.g, expected)
    h.g[...] = 0
    np.testing.assert_array_equal(k.g, expected)


def test_the_gradient_that_the_caller_gives_stays_as_it_is():
    x = leaf(0)
    h = F.sin(x)
    y = h + F.tanh(h)
    y.forward(clear_no_need_grad=True)
    given = nn.NdArray.from_numpy_array(np.ones(SHAPE, "float32"))
    found = []
    for _ in range(3):
        x.grad.zero()
        y.forward(clear_no_need_grad=True)
        y.backward(given, clear_buffer=True)
        found.append(x.g.copy())
    np.testing.assert_array_equal(given.data, np.ones(SHAPE))
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


@pytest.mark.parametrize("name", sorted(spec.name for spec in SPECS if spec.has("passes_gradient")))
def test_rules_of_functions_that_pass_gradients_return_them(name):
    """The tag lets inputs share the gradient of the output, so it must be what the rule gives."""
    rng = np.random.default_rng(0)
    spec = BY_NAME[name]
    inputs = [rng.normal(size=(2, 3)) for _ in range(2 if spec.variadic else len(spec.inputs))]
    grad = rng.normal(size=(2, 3))
    for found in run_gradient(name, *inputs, grads=[grad]):
        np.testing.assert_array_equal(found, grad)
