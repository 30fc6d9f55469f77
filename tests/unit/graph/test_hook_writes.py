"""Values and gradients that hooks write while a pass runs: the functions after it read them, as in NNabla."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


def passed(**hooks):
    """Return the value of 3 exp(sin(x)) and the gradient of x, each in the first and in the second pass."""
    x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    z = F.exp(F.sin(x)) * 3
    found = []
    for _ in range(2):
        x.grad.zero()
        z.forward(function_pre_hook=hooks.get("before"), function_post_hook=hooks.get("after"))
        z.backward(function_pre_hook=hooks.get("before_gradient"), function_post_hook=hooks.get("after_gradient"))
        found.append((z.d.copy(), x.g.copy()))
    return found


def at_exp(write):
    return lambda function: write(function) if function.name == "Exp" else None


def assign(array, value):
    array.data = value


def change(array, value):
    array.data[...] = value


def fill(array, value):
    array.fill(value)


@pytest.mark.parametrize("write", [assign, change, fill])
def test_values_that_a_hook_writes(write):
    x = np.array([1.0, 2.0])
    plain = 3 * np.exp(np.sin(x))
    cases = [
        ("before", lambda f: write(f.inputs[0].data, 5), 3 * np.exp([5, 5])),
        ("before", lambda f: write(f.outputs[0].data, 5), plain),  # is overwritten
        ("after", lambda f: write(f.outputs[0].data, 7), np.array([21.0, 21.0])),
        ("after", lambda f: write(f.inputs[0].data, 7), plain),
    ]
    for moment, hook, value in cases:
        slope = np.cos(x)
        for z, dx in passed(**{moment: at_exp(hook)}):
            np.testing.assert_allclose(z, value, rtol=1e-5)
            np.testing.assert_allclose(dx, value * slope, rtol=1e-5)


@pytest.mark.parametrize("write", [assign, change, fill])
def test_gradients_that_a_hook_writes(write):
    x = np.array([1.0, 2.0])
    exact = np.exp(np.sin(x)) * np.cos(x)
    for _, dx in passed(before_gradient=at_exp(lambda f: write(f.outputs[0].grad, 5))):
        np.testing.assert_allclose(dx, 5 * exact, rtol=1e-5)
    for _, dx in passed(before_gradient=at_exp(lambda f: write(f.inputs[0].grad, 9))):  # is overwritten
        np.testing.assert_allclose(dx, 3 * exact, rtol=1e-5)
    for _, dx in passed(after_gradient=at_exp(lambda f: write(f.inputs[0].grad, 9))):
        np.testing.assert_allclose(dx, 9 * np.cos(x), rtol=1e-5)


def test_hooks_that_zero_what_a_function_is_about_to_write():
    seen = []
    plain = passed()
    hooked = passed(
        before=lambda f: f.outputs[0].data.zero(),
        after=lambda f: seen.append((f.name, float(f.outputs[0].d.sum()))),
        before_gradient=lambda f: f.inputs[0].grad.zero(),
        after_gradient=lambda f: seen.append((f.name, float(f.inputs[0].g.sum()))),
    )
    np.testing.assert_array_equal(hooked, plain)
    assert [name for name, _ in seen[:6]] == ["Sin", "Exp", "MulScalar", "MulScalar", "Exp", "Sin"]
    assert all(total for _, total in seen)


def test_a_hook_may_write_to_a_leaf_of_the_graph():
    x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    y = F.exp(x * 1)
    for value in (np.array([3, 4]), np.array([5.0, 6.0])):
        y.forward(function_pre_hook=lambda f, value=value: f.name == "MulScalar" and assign(x.data, value))
        np.testing.assert_allclose(y.d, np.exp(value), rtol=1e-5)
        y.forward(function_pre_hook=lambda f: x.data.fill(2))
        np.testing.assert_allclose(y.d, np.exp([2, 2]), rtol=1e-5)


@pytest.mark.parametrize(
    ("grad", "left", "start"),
    [
        (1, None, 1),
        (3.5, None, 3.5),
        (np.array(2.0), None, 2),
        (nn.NdArray.from_numpy_array(np.array(2.0, np.float32)), None, 2),
        (None, None, 9),
        (1, lambda variable: variable.grad.zero(), 0),
        (1, lambda variable: variable.grad.fill(4), 4),
        (1, lambda variable: setattr(variable, "g", 5), 5),
    ],
)
def test_hooks_see_the_gradient_that_a_pass_starts_from(grad, left, start):
    """As in NNabla, where it is the gradient of the variable during the pass; what a hook leaves there is propagated."""
    x = nn.Variable.from_numpy_array([1.0, 2.0], need_grad=True)
    y = F.sum(F.exp(x))
    for _ in range(2):
        x.grad.zero()
        y.forward()
        y.g = 9
        seen = []

        def look(function, seen=seen):
            if function.info.type_name == "Sum":
                if left is not None:
                    left(function.outputs[0])
                seen.append(float(function.outputs[0].g))

        y.backward(grad, function_pre_hook=look, function_post_hook=look)
        assert seen == [start] * 2
        np.testing.assert_allclose(x.g, start * np.exp([1.0, 2.0]), rtol=1e-6)
        assert float(y.g) == (start if grad is None and left is None else 9)


def test_hooks_that_only_look_do_not_round_the_gradient_that_a_pass_starts_from():
    with nn.context_scope(nn.Context(["reference:double"])):
        x = nn.Variable.from_numpy_array(np.array([1.0, 2.0]), need_grad=True)
        y = F.sum(x * 3.0)
        y.forward()
        gradients = []
        for hook in (None, lambda function: function.outputs[0].g):
            x.grad.zero()
            y.backward(0.1, function_pre_hook=hook)
            gradients.append(x.g.copy())
    assert gradients[0].dtype == np.float64
    assert gradients[0].tolist() == gradients[1].tolist()
