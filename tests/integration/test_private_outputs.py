"""Inputs that are replaced between the passes of functions whose kernels keep sums or states for their gradients."""

from functools import partial

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph import backward_data
from nn_core.ext_utils import get_extension_context

#: By name: a function of variables, and the shapes of these.
KEEPING = {
    "attention": (F.scaled_dot_product_attention, [(2, 2, 6, 3)] * 3 + [(6, 6)]),
    "causal attention": (partial(F.scaled_dot_product_attention, is_causal=True), [(2, 2, 6, 3)] * 3),
    "attention with dropout": (lambda *given: F.dropout_attention(*given, p=0.3, seed=3)[0], [(2, 2, 6, 3)] * 3),
    "rnn": (lambda *given: F.rnn(*given)[0], [(5, 2, 3), (1, 1, 2, 4), (1, 4, 7)]),
    "lstm": (lambda *given: F.lstm(*given)[0], [(5, 2, 3), (1, 1, 2, 4), (1, 1, 2, 4), (1, 4, 4, 7)]),
    "gru": (lambda *given: F.gru(*given)[0], [(5, 2, 3), (1, 1, 2, 4), (1, 3, 4, 7)]),
}
CASES = [(name, index) for name, (_, shapes) in KEEPING.items() for index in range(len(shapes))]


def arrays(name, seed, scale=1):
    draw = np.random.default_rng(seed)
    return [(draw.standard_normal(shape) * scale).astype(np.float32) for shape in KEEPING[name][1]]


def leaves(name):
    return [nn.Variable.from_numpy_array(values, need_grad=True) for values in arrays(name, 1)]


def assign(x, values):
    x.d = values


def write_into_view(x, values):
    x.d[...] = values


def replace_array(x, values):
    x.data = nn.NdArray.from_numpy_array(values)


def replaced(name, index, way, write=assign, times=1):
    """Return the gradients of all inputs after one of them got other values between the passes."""
    values, results = arrays(name, 2, 20), []
    function = KEEPING[name][0]
    for time in range(times):
        if time == 0 or way == "dynamic":
            given = leaves(name)
            with nn.auto_forward(way == "dynamic"):
                root = F.sum(F.sin(function(*[x * 1 for x in given] if way == "recomputed" else given)))
        if way == "recomputed":
            with nn.recompute():
                root = F.sum(F.sin(function(*[x * 1 for x in given])))
        given[index].d = arrays(name, 1)[index]
        if way != "dynamic":
            root.forward(clear_no_need_grad=way != "kept")
        write(given[index], values[index])
        for x in given:
            x.grad.zero()
        root.backward(clear_buffer=way != "kept")
        results = [x.g.copy() for x in given]
    return results


def on(backend, *given, **settings):
    with nn.context_scope(get_extension_context(backend)):
        return replaced(*given, **settings)


def require_equal(found, truth):
    for ours, expected in zip(found, truth, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=2e-4 * np.abs(expected).max() + 1e-6)


@pytest.mark.parametrize("way", ["static", "kept", "recomputed", "dynamic"])
@pytest.mark.parametrize("name", KEEPING)
def test_private_outputs_are_computed_again_for_replaced_inputs(name, way):
    for index in range(len(KEEPING[name][1])):
        require_equal(on("cpu", name, index, way), on("reference", name, index, way))


@pytest.mark.parametrize("write", [write_into_view, replace_array])
@pytest.mark.parametrize("way", ["static", "dynamic"])
def test_every_way_to_write_is_seen(way, write):
    require_equal(on("cpu", "attention", 0, way, write), on("reference", "attention", 0, way))


@pytest.mark.parametrize("way", ["static", "recomputed", "dynamic"])
def test_later_passes_see_replaced_inputs(way):
    for name in ("attention", "gru"):  # the third pass of a plan or a template runs bound steps
        require_equal(on("cpu", name, 0, way, times=3), on("reference", name, 0, way))


def attending(values):
    """Return a leaf, and a sum over its attention to itself."""
    x = nn.Variable.from_numpy_array(values, need_grad=True)
    y = F.scaled_dot_product_attention(x, x, x)
    return x, F.sum(F.sin(y))


def gradient(x, root):
    x.grad.zero()
    root.backward(clear_buffer=True)
    return x.g.copy()


def test_writes_through_a_view_that_a_program_holds_are_seen():
    first, second = arrays("attention", 5)[0], arrays("attention", 6, 20)[0]
    x, root = attending(first)
    view = x.d
    for values in (first, second):
        view[...] = first
        root.forward(clear_no_need_grad=True)
        view[...] = values
        found = gradient(x, root)
        with nn.context_scope(get_extension_context("reference")):
            other, its_root = attending(first)
            its_root.forward()
            other.d = values
            require_equal([found], [gradient(other, its_root)])


def computed_again(monkeypatch):
    """Return a list that grows with each function that a backward pass computes again."""
    again = []
    emit = backward_data.emit_forward
    monkeypatch.setattr(backward_data, "emit_forward", lambda *given, **named: again.append(1) or emit(*given, **named))
    return again


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_nothing_is_computed_again_where_nobody_wrote(dynamic, monkeypatch):
    again = computed_again(monkeypatch)
    for _ in range(3):
        with nn.auto_forward(dynamic):
            x, root = attending(arrays("attention", 5)[0])
        if not dynamic:
            root.forward(clear_no_need_grad=True)
        gradient(x, root)
    assert not again


def test_reading_an_input_between_the_passes_changes_no_bit():
    gradients = []
    for reads in (False, True):
        x, root = attending(arrays("attention", 5)[0])
        for _ in range(3):
            root.forward(clear_no_need_grad=True)
            assert not reads or x.d.size
            gradients.append(gradient(x, root))
    assert all(np.array_equal(found, gradients[0]) for found in gradients)


def test_a_view_that_nobody_writes_to_costs_no_computation(monkeypatch):
    again = computed_again(monkeypatch)
    x, root = attending(arrays("attention", 5)[0])
    view = x.d
    for _ in range(3):
        root.forward(clear_no_need_grad=True)
        gradient(x, root)
    assert not again and view.size


def test_parameters_updated_between_the_passes_are_read_as_they_are():
    found = []
    for backend in ("cpu", "reference"):
        with nn.context_scope(get_extension_context(backend)):
            x, *weights = leaves("lstm")
            root = F.sum(F.lstm(x, *weights)[0])
            root.forward(clear_no_need_grad=True)
            solver = nn.solvers.Sgd(1.0)
            solver.set_parameters({"w": weights[-1]})
            weights[-1].grad.fill(1.0)
            solver.update()
            weights[-1].grad.zero()
            root.backward(clear_buffer=True)
            found.append([weights[-1].g.copy()])
    require_equal(*found)


def test_an_intermediate_input_that_is_written_is_seen():
    found = []
    for backend in ("cpu", "reference"):
        with nn.context_scope(get_extension_context(backend)):
            q, k, v, _ = leaves("attention")
            h = F.tanh(q)
            root = F.sum(F.sin(F.scaled_dot_product_attention(h, k, v)))
            root.forward()
            h.d = arrays("attention", 8, 20)[0]
            for x in (q, k, v):
                x.grad.zero()
            root.backward()
            found.append([x.g.copy() for x in (q, k, v)])
    require_equal(*found)


@pytest.mark.parametrize("name", ["attention", "lstm"])
def test_backward_of_a_function_by_hand_reads_inputs_as_they_are(name):
    found = []
    for backend in ("cpu", "reference"):
        with nn.context_scope(get_extension_context(backend)):
            given = leaves(name)
            y = KEEPING[name][0](*given)
            function = y.parent
            outputs = list(function.outputs)
            function.forward(list(function.inputs), outputs)
            given[0].d = arrays(name, 2, 20)[0]
            for x in (*given, *outputs):
                x.grad.zero()
            y.g = 1.0
            function.backward(list(function.inputs), outputs)
            found.append([x.g.copy() for x in given])
    require_equal(*found)


def test_a_hook_that_writes_an_input_after_its_function_is_seen():
    found = []
    for backend in ("cpu", "reference"):
        with nn.context_scope(get_extension_context(backend)):
            x, root = attending(arrays("attention", 5)[0])
            other = arrays("attention", 6, 20)[0]

            def write(function, x=x, other=other):
                if function.name == "Sin":
                    x.d = other

            root.forward(function_post_hook=write)
            x.grad.zero()
            root.backward()
            found.append([x.g.copy()])
    require_equal(*found)
