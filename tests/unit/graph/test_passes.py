"""Forward and backward passes: accumulation, clear flags, invalidation, hooks, recompute, dynamic graphs, depth."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.dispatch.plugin_manager import get_backend
from nn_core.engine.graph.apply import operator
from nn_core.engine.graph.call import forget
from nn_core.errors import GraphError, ShapeError

sin, cos, exp, mul2, add2 = (operator(name) for name in ("sin", "cos", "exp", "mul2", "add2"))
affine, reduce_sum, reshape, split = (operator(name) for name in ("affine", "reduce_sum", "reshape", "split"))
FLAGS = [{}, {"clear_no_need_grad": True}]


def variable(*values, need_grad=True):
    return nn.Variable.from_numpy_array(np.float32(values), need_grad=need_grad)


def test_leaf_gradients_accumulate_and_intermediate_ones_do_not():
    x = variable(1, 2)
    h = sin(x)
    y = mul2(h, h)
    for repeat in (1, 2, 3):
        y.forward()
        y.backward()
        assert np.allclose(x.g, repeat * 2 * np.sin(x.d) * np.cos(x.d))
        assert np.allclose(h.g, 2 * np.sin(x.d))


def test_gradients_of_leaves_are_wide_whatever_they_come_from(monkeypatch):
    backend = get_backend("reference")
    monkeypatch.setattr(type(backend), "parameter_dtypes", {"bfloat16": "float32"}, raising=False)
    forget()
    with nn.context_scope(nn.Context(["reference:bfloat16"])):
        x, w = variable(1, 2), variable(3, 4)
        y = add2(mul2(x, w), sin(w))
        for repeat in (1, 2):
            y.forward(clear_no_need_grad=True)
            y.backward(clear_buffer=True)
            assert y.d.dtype.name == "bfloat16"
            assert (x.g.dtype, w.g.dtype) == (np.float32, np.float32)
            assert np.allclose(w.g, repeat * (x.d + np.cos(w.d)), atol=0.02)
        w.grad.zero()
        y.backward()
        assert np.allclose(w.g, x.d + np.cos(w.d), atol=0.02)
    forget()


def test_zero_starts_the_accumulation_again():
    x = variable(1, 2)
    y = sin(x)
    for _ in range(4):
        y.forward()
        x.grad.zero()
        y.backward()
        assert np.allclose(x.g, np.cos(x.d))


def test_gradients_add_to_what_the_user_wrote():
    x = variable(1, 2)
    y = sin(x)
    for _ in range(3):
        x.g = [10, 20]
        y.forward()
        y.backward()
        assert np.allclose(x.g, np.cos(x.d) + np.float32([10, 20]))


def test_some_gradients_zeroed_and_some_not():
    x, w = variable(1, 2), variable(3, 4)
    y = mul2(x, w)
    y.forward()
    y.backward()
    x.grad.zero()
    y.backward()
    assert np.allclose(x.g, w.d) and np.allclose(w.g, 2 * x.d)
    w.grad.zero()
    y.backward()
    assert np.allclose(x.g, 2 * w.d) and np.allclose(w.g, x.d)


def test_a_variable_used_twice_gets_the_sum():
    x = variable(1, 2)
    y = add2(mul2(x, x), sin(x))
    y.forward()
    y.backward()
    assert np.allclose(x.g, 2 * x.d + np.cos(x.d))


def test_unlinked_variables_of_one_parameter_share_its_gradient():
    w = variable(1, 2)
    a, b = w.get_unlinked_variable(), w.get_unlinked_variable()
    y = mul2(sin(a), b)
    y.forward()
    y.backward()
    assert np.allclose(w.g, np.cos(w.d) * w.d + np.sin(w.d))


@pytest.mark.parametrize(
    ("grad", "factor"),
    [(1, [1, 1]), (2.5, [2.5, 2.5]), (np.array([3.0, 4.0]), [3, 4]), ("ndarray", [5, 6]), (None, [7, 8])],
)
def test_start_of_the_backward_pass(grad, factor):
    x = variable(1, 2)
    y = sin(x)
    y.forward()
    y.g = [7, 8]
    for _ in range(2):
        x.grad.zero()
        y.backward(nn.NdArray.from_numpy_array(np.float32([5, 6])) if isinstance(grad, str) else grad)
        assert np.allclose(x.g, np.cos(x.d) * factor)
        assert y.g.tolist() == [7, 8]


def test_start_of_a_wrong_shape():
    y = sin(variable(1, 2))
    y.forward()
    with pytest.raises(ShapeError, match=r"grad must have the variable's shape \(2,\), got \(3,\)"):
        y.backward(np.ones(3))


def test_backward_over_two_graphs():
    x = variable(1, 2)
    h = sin(x)
    unlinked = h.get_unlinked_variable(need_grad=True)
    y = mul2(unlinked, unlinked)
    h.forward()
    y.forward()
    y.backward()
    assert np.array_equal(x.g, [0, 0])
    h.backward(grad=None)
    assert np.allclose(x.g, 2 * np.sin(x.d) * np.cos(x.d))


def test_backward_stops_where_no_gradient_is_needed():
    x, w = variable(1, 2), variable(3, 4)
    h = sin(x)
    h.need_grad = False
    y = mul2(h, w)
    y.forward()
    y.backward()
    assert np.array_equal(x.g, [0, 0]) and np.allclose(w.g, np.sin(x.d))


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("clear", [False, True])
def test_clear_flags_do_not_change_results(flags, clear):
    x, w = variable(1, 2), variable(3, 4)
    h = exp(sin(mul2(x, w)))
    y = reduce_sum(mul2(reshape(h, shape=(2, 1)), reshape(h, shape=(2, 1))))
    for _ in range(4):
        x.grad.zero()
        w.grad.zero()
        y.forward(**flags)
        y.backward(clear_buffer=clear)
        inner = np.exp(2 * np.sin(x.d * w.d)) * 2 * np.cos(x.d * w.d)
        assert np.allclose(x.g, inner * w.d, rtol=1e-5) and np.allclose(w.g, inner * x.d, rtol=1e-5)


def test_clear_buffer_frees_intermediate_values_only():
    x = variable(1, 2)
    h = sin(x)
    k = exp(h)
    y = reduce_sum(k)
    y.forward(clear_buffer=True)
    assert [v.data.clear_called for v in (x, h, k, y)] == [False, True, True, False]
    with pytest.raises(GraphError, match="must not be read after its memory was reused"):
        h.d  # noqa: B018  # reading is what is tested


def test_clear_no_need_grad_keeps_what_gradients_need():
    x = variable(1, 2)
    h = sin(x)
    k = exp(h)
    y = reduce_sum(k)
    y.forward(clear_no_need_grad=True)
    assert [v.data.clear_called for v in (x, h, k, y)] == [False, True, False, False]
    y.backward(clear_buffer=True)
    assert [v.data.clear_called for v in (x, h, k, y)] == [False, True, True, False]
    y.forward()
    assert np.allclose(h.d, np.sin(x.d))


def test_persistent_variables_survive():
    x = variable(1, 2)
    h = sin(x).apply(persistent=True)
    y = reduce_sum(exp(h))
    y.forward(clear_buffer=True)
    assert np.allclose(h.d, np.sin(x.d))
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    assert np.allclose(h.d, np.sin(x.d)) and np.allclose(h.g, np.exp(np.sin(x.d)))


def test_backward_after_clear_buffer_says_what_to_do():
    y = reduce_sum(exp(sin(variable(1, 2))))
    y.forward(clear_buffer=True)
    with pytest.raises(GraphError, match=r"clear_no_need_grad=True"):
        y.backward()


def test_two_losses_share_a_trunk():
    x = variable(1, 2)
    h = sin(x)
    first, second = reduce_sum(exp(h)), reduce_sum(cos(h))
    for _ in range(3):
        nn.forward_all([first, second], clear_no_need_grad=True)
        x.grad.zero()
        first.backward()
        second.backward(clear_buffer=True)
        assert np.allclose(x.g, np.cos(x.d) * (np.exp(np.sin(x.d)) - np.sin(np.sin(x.d))), rtol=1e-5)


def test_separate_branches_are_freed_separately():
    x, z = variable(1, 2), variable(3, 4)
    first, second = reduce_sum(exp(exp(x))), reduce_sum(exp(exp(z)))
    nn.forward_all([first, second], clear_no_need_grad=True)
    first.backward(clear_buffer=True)
    second.backward(clear_buffer=True)
    assert np.allclose(z.g, np.exp(np.exp(z.d)) * np.exp(z.d), rtol=1e-5)


def test_plans_that_share_variables_do_not_disturb_each_other():
    x = variable(1, 2)
    h = sin(x)
    y, z = exp(h), cos(h)
    for step in range(4):
        x.d = [step, step + 1]
        y.forward(clear_buffer=True)
        z.forward()
        assert np.allclose(h.d, np.sin(x.d))
        assert np.allclose(y.d, np.exp(np.sin(x.d))) and np.allclose(z.d, np.cos(np.sin(x.d)))


@pytest.mark.parametrize("assign", ["float32", "float64", "int64"])
def test_new_input_values_are_seen(assign):
    x = nn.Variable((2,), need_grad=True)
    y = sin(x)
    for step in range(4):
        x.d = np.array([step, 2 * step], assign)
        y.forward()
        assert np.allclose(y.d, np.sin([step, 2 * step]))


def test_changes_through_a_kept_reference_are_seen():
    x = nn.Variable.from_numpy_array(np.array([1, 2]))
    y = sin(x)
    values = x.d
    for step in range(3):
        values[:] = step
        y.forward()
        assert np.allclose(y.d, np.sin([step, step]))


def test_filled_inputs_are_seen():
    x = variable(1, 2)
    y = sin(x)
    for step in range(3):
        x.data.fill(step)
        y.forward()
        assert np.allclose(y.d, np.sin([step, step]))


def test_new_data_array_is_seen():
    x = variable(1, 2)
    y = sin(x)
    y.forward()
    x.data = nn.NdArray.from_numpy_array(np.float32([5, 6]))
    y.forward()
    y.backward()
    assert np.allclose(y.d, np.sin([5, 6])) and np.allclose(x.g, np.cos([5, 6]))


def test_new_gradient_array_is_seen():
    x = variable(1, 2)
    y = sin(x)
    y.forward()
    y.backward()
    x.grad = nn.NdArray.from_numpy_array(np.float32([100, 100]))
    y.backward()
    assert np.allclose(x.g, np.cos(x.d) + 100)


def test_need_grad_changes_are_seen():
    x, w = variable(1, 2), variable(3, 4)
    y = mul2(sin(x), w)
    y.forward()
    y.backward()
    x.grad.zero()
    x.need_grad = False
    y.backward()
    assert np.array_equal(x.g, [0, 0])
    x.need_grad = True
    y.backward()
    assert np.allclose(x.g, np.cos(x.d) * w.d)


def test_persistent_set_later_is_seen():
    x = variable(1, 2)
    h = sin(x)
    y = reduce_sum(exp(h))
    y.forward(clear_buffer=True)
    h.persistent = True
    y.forward(clear_buffer=True)
    assert np.allclose(h.d, np.sin(x.d))


def test_rewiring_is_seen():
    x, z = variable(1, 2), variable(5, 6)
    h = sin(x)
    y = exp(h)
    y.forward()
    h.rewire_on(cos(z))
    y.forward()
    assert np.allclose(y.d, np.exp(np.cos(z.d)))


def test_cutting_the_graph_is_seen():
    h = sin(variable(1, 2))
    y = exp(h)
    y.forward()
    h.parent = None
    h.d = [0, 1]
    y.forward()
    assert np.allclose(y.d, np.exp([0, 1]))


def test_reset_shape_is_seen():
    x = variable(1, 2)
    y = reduce_sum(sin(x))
    y.forward()
    x.reset_shape((2, 1))
    x.d = [[3], [4]]
    y.forward()
    assert np.allclose(y.d, np.sin([3, 4]).sum())


def test_function_hooks():
    names = []
    x = variable(1, 2)
    y = exp(sin(x))
    y.forward(
        function_pre_hook=lambda f: names.append(f"before {f.name}"),
        function_post_hook=lambda f: names.append(f"after {f.name}"),
    )
    y.backward(function_pre_hook=lambda f: names.append(f"back {f.name}"))
    assert names == ["before Sin", "after Sin", "before Exp", "after Exp", "back Exp", "back Sin"]


def test_global_hooks():
    names = []
    nn.set_function_post_hook("note", lambda f: names.append(f.name))
    try:
        sin(variable(1, 2)).forward()
        with nn.auto_forward():
            cos(variable(1, 2))
    finally:
        nn.unset_function_post_hook("note")
    sin(variable(1, 2)).forward()
    assert names == ["Sin", "Cos"]


def test_hooks_can_read_data_of_a_pass_that_clears():
    seen = []
    y = reduce_sum(exp(sin(variable(1, 2))))
    y.forward(clear_buffer=True, function_post_hook=lambda f: seen.append(f.outputs[0].d.copy() if f.outputs else None))
    assert np.allclose(seen[-1], np.exp(np.sin([1, 2])).sum())


def test_communicator_callbacks():
    class Callback:
        def __init__(self):
            self.calls = []

        def on_finish_function_backward(self, function):
            self.calls.append(function.name)

        def on_finish_backward(self):
            self.calls.append("end")

    callback = Callback()
    y = exp(sin(variable(1, 2)))
    y.forward()
    y.backward(communicator_callbacks=callback)
    assert callback.calls == ["Exp", "Sin", "end"]


def test_recompute_gives_the_same_gradients():
    x = variable(1, 2)
    with nn.recompute():
        h = sin(mul2(x, x))
        k = exp(h)
    y = reduce_sum(mul2(k, k))
    for _ in range(3):
        x.grad.zero()
        y.forward(clear_no_need_grad=True)
        assert h.data.clear_called and k.data.clear_called
        y.backward(clear_buffer=True)
        truth = np.exp(2 * np.sin(x.d**2)) * 2 * np.cos(x.d**2) * 2 * x.d
        assert np.allclose(x.g, truth, rtol=1e-5)


@pytest.mark.parametrize("clear", [False, True])
def test_dynamic_graphs_give_the_same_numbers(clear):
    x, w = variable(1, 2), variable(3, 4)

    def network():
        return reduce_sum(exp(sin(mul2(x, w))))

    y = network()
    y.forward()
    y.backward()
    expected = y.d.copy(), x.g.copy(), w.g.copy()
    for _ in range(3):
        x.grad.zero()
        w.grad.zero()
        with nn.auto_forward():
            y = network()
            assert np.array_equal(y.d, expected[0])
        y.backward(clear_buffer=clear)
        assert np.array_equal(x.g, expected[1]) and np.array_equal(w.g, expected[2])


def test_imperative_mode_gives_the_same_numbers():
    x = variable(1, 2)
    y = exp(sin(x))
    y.forward()
    assert np.array_equal(exp(sin(x.data)).data, y.d)


def test_no_grad_takes_parameters_as_constants_and_lets_gradients_pass():
    x = variable(1, 2)
    with nn.no_grad():
        w = nn.parameter.get_parameter_or_create("w", (2,), np.float32([3, 4]))
        y = mul2(sin(x), w)
    assert y.need_grad and not w.need_grad and nn.get_parameters()["w"].need_grad
    y.forward()
    y.backward()
    assert np.allclose(x.g, np.cos([1, 2]) * [3, 4])
    with nn.auto_forward(), nn.no_grad():
        assert not sin(x).need_grad
    assert sin(x).need_grad


def test_outputs_of_several():
    x = nn.Variable.from_numpy_array(np.float32([[1, 2], [3, 4]]), need_grad=True)
    parts = split(x, axis=0)
    y = mul2(parts[0], parts[0])
    y.forward()
    y.backward()
    assert y.d.tolist() == [1, 4] and x.g.tolist() == [[2, 4], [0, 0]]


def test_an_output_that_nobody_holds():
    x = nn.Variable.from_numpy_array(np.float32([[1, 2], [3, 4]]), need_grad=True)
    y = split(x, axis=0)[1]
    y.forward()
    y.backward()
    assert y.d.tolist() == [3, 4] and x.g.tolist() == [[0, 0], [1, 1]]


def test_given_outputs_receive_the_result():
    x = variable(1, 2)
    target = nn.NdArray((2,))
    memory = target.data
    result = nn.engine.graph.apply.apply(nn.engine.dispatch.registry.spec_of("Sin"), (x.data,), {}, [target])
    assert result is target and np.allclose(memory, np.sin([1, 2]))


def test_very_deep_graphs():
    x = variable(0.5, 0.25)
    y = x
    for _ in range(3000):
        y = add2(y, x)
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    assert np.allclose(x.g, 3001)
    assert y.no_grad().need_grad  # x is no registered parameter


def test_zero_size_arrays():
    x = nn.Variable((0, 3), need_grad=True)
    w = nn.Variable.from_numpy_array(np.ones((3, 2), np.float32), need_grad=True)
    y = sin(affine(x, w))
    y.forward(clear_no_need_grad=True)
    y.backward(clear_buffer=True)
    assert y.d.shape == (0, 2) and np.array_equal(w.g, np.zeros((3, 2)))


def test_python_function():
    class Double(nn.PythonFunction):
        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].d = inputs[0].d * 2

        def backward_impl(self, inputs, outputs, propagate_down, accum):
            if propagate_down[0]:
                inputs[0].g = outputs[0].g * 2 + (inputs[0].g if accum[0] else 0)

    x = variable(1, 2)
    y = sin(Double()(mul2(x, x)))
    for flags in ({}, {"clear_no_need_grad": True}):
        x.grad.zero()
        y.forward(**flags)
        y.backward(clear_buffer=bool(flags))
        assert np.allclose(y.d, np.sin(2 * x.d**2)) and np.allclose(x.g, np.cos(2 * x.d**2) * 4 * x.d)
    with nn.auto_forward():
        assert np.allclose(Double()(x).d, 2 * x.d)


def test_double_precision_context():
    with nn.context_scope(nn.Context(["reference:double"])):
        x = nn.Variable.from_numpy_array(np.array([0.1, 0.2]), need_grad=True)
        y = sin(x)
        y.forward()
        y.backward()
    assert y.d.dtype == np.float64 and x.g.dtype == np.float64
    assert np.array_equal(y.d, np.sin([0.1, 0.2]))


def test_half_precision_context():
    with nn.context_scope(nn.Context(["reference:half"])):
        x = variable(1, 2)
        y = sin(x)
        y.forward()
        y.backward()
    assert y.d.dtype == np.float16 and np.allclose(x.g, np.cos([1, 2]), rtol=1e-2)


def test_a_function_whose_shape_is_known_only_when_it_has_run():
    nonzero = operator("nonzero")
    x = variable(0, 2, 0, 3)
    y = nonzero(x)
    assert y.shape == (1, 2)
    y.forward()
    assert y.d.tolist() == [[1, 3]]
    x.d = [1, 0, 0, 4]
    y.forward()
    assert y.d.tolist() == [[0, 3]]
    x.d = [1, 1, 1, 0]
    y.forward()
    assert y.d.tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_rewritten_input_that_a_function_computed_stays(dynamic):
    scatter_nd, tanh = operator("scatter_nd"), operator("tanh")
    x = variable(1, 2, 3)
    with nn.auto_forward(dynamic):
        h = tanh(x)
        values, places = variable(9.0), nn.Variable.from_numpy_array(np.array([[1]]))
        y = scatter_nd(values, places, h)
    y.forward()
    y.backward()
    assert np.allclose(y.d, [np.tanh(1), 9, np.tanh(3)])
    assert np.allclose(x.g, (1 - np.tanh(x.d) ** 2) * [1, 0, 1], atol=1e-6)


def test_given_arrays_are_the_data_of_the_results():
    x = variable(1, 2)
    array = nn.NdArray((2,))
    y = nn.engine.graph.apply.apply(nn.engine.dispatch.registry.spec_of("Sin"), (x,), {}, [array])
    assert y.data is array and y.parent is not None
    y.forward()
    assert np.allclose(array.data, np.sin([1, 2]))


def test_a_gradient_read_in_another_dtype_is_refreshed():
    x = variable(1, 2)
    y = sin(x)
    for scale in (1, 2, 3):
        y.forward()
        x.grad.zero()
        y.backward(scale)
        assert np.allclose(x.grad.get_data("r", np.float64), scale * np.cos(x.d))


def test_a_sink_passes_on_the_gradients_that_were_set():
    sink = operator("sink")
    x = nn.Variable.from_numpy_array(np.float32([[1, 2], [3, 4]]), need_grad=True)
    a, b = split(x, axis=0)
    s = sink(a, b, one_input_grad=False)
    for repeat in (1, 2):
        s.forward()
        a.g, b.g = [10, 20], [30, 40]
        x.grad.zero()
        s.backward(clear_buffer=repeat == 2)
        assert x.g.tolist() == [[10, 20], [30, 40]]


def test_gradients_of_leaves_add_up_in_float32_under_half_precision():
    with nn.context_scope(nn.Context(["reference:half"])):
        x = variable(1, 2)
        y = add2(mul2(x, x), x)
    for _ in range(3):
        y.forward()
        x.grad.zero()
        y.backward()
        plans = list(y.plans.values())
        assert x.grad.dtype == np.float32
        np.testing.assert_allclose(x.g, 2 * x.d + 1, rtol=1e-3)
        x.grad.data *= 0.5  # as solvers do with gradients, in float32
    assert list(y.plans.values()) == plans


def test_the_engine_asks_no_variable_for_its_truth(monkeypatch):
    """A comparison refuses ``bool()``; it is an input of functions like any other."""

    def refuse(variable):
        raise AssertionError("bool() of a variable")

    monkeypatch.setattr(nn.Variable, "__bool__", refuse)
    x = nn.Variable.from_numpy_array(np.array([-1.0, 2.0, 3.0], np.float32), need_grad=True)
    x.grad.zero()
    y = F.sum(F.greater(x, x * 0 + 0.5) * x**2)
    for flags in ({}, {"clear_no_need_grad": True}):
        y.forward(**flags)
        y.backward(clear_buffer=True)
    np.testing.assert_array_equal(x.g, [0, 8, 12])
    (dx,) = nn.grad([y], [x])
    dx.forward()
    np.testing.assert_array_equal(dx.d, [0, 4, 6])
    with nn.auto_forward():
        z = F.sum(F.greater(x, x * 0 + 0.5) * x)
        z.backward()
    np.testing.assert_array_equal(x.g, [0, 9, 13])


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}])
def test_a_view_that_is_recomputed_leaves_the_memory_of_its_source_alone(flags):
    x = nn.Variable.from_numpy_array(np.linspace(0.1, 1, 6, dtype=np.float32).reshape(2, 3), need_grad=True)
    x.grad.zero()
    h = F.sin(x)
    with nn.recompute():
        view = F.reshape(h, (-1,))
    y = F.sum(F.tile(view, (2,)) ** 2) + F.sum(h**2)
    y.forward(**flags)
    if not flags:
        np.testing.assert_allclose(h.d, np.sin(x.d), rtol=1e-6)
    y.backward(clear_buffer=True)
    np.testing.assert_allclose(x.g, 3 * np.sin(2 * x.d), rtol=1e-5)


@pytest.mark.parametrize("dynamic", [False, True])
def test_views_follow_data_that_is_exchanged(dynamic):
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32), need_grad=True)
    with nn.auto_forward(dynamic):
        y = F.reshape(F.reshape(x, (2, 3)), (3, 2))
        z = F.sum(y**2)
    z.forward()
    for data in (nn.NdArray((6,)), nn.NdArray((12,)).narrow(0, 3, 6)):
        data.data = np.ones(6, np.float32)
        x.data = data
        z.forward()
        x.grad.zero()
        z.backward()
        assert (float(z), y.d.tolist(), x.g.tolist()) == (6, [[1, 1]] * 3, [2] * 6)


@pytest.mark.parametrize("lean", [False, True])
def test_hooks_of_a_backward_pass_see_each_gradient_once_and_nothing_that_is_recomputed(lean):
    x = nn.Variable.from_numpy_array(np.float32([0.1, 0.2]), need_grad=True)
    with nn.recompute():
        h = F.tanh(F.sin(x))
        h = h * F.cos(h)
    y = F.sum(F.sigmoid(h))
    calls = []
    y.forward(clear_no_need_grad=lean)
    x.grad.zero()
    y.backward(
        clear_buffer=lean,
        function_pre_hook=lambda f: calls.append(f"before {f.name}"),
        function_post_hook=lambda f: calls.append(f"after {f.name}"),
    )
    names = ["Sum", "Sigmoid", "Mul2", "Cos", "Tanh", "Sin"]
    assert calls == [f"{when} {name}" for name in names for when in ("before", "after")]


def test_a_pass_with_hooks_frees_nothing():
    x = nn.Variable.from_numpy_array(np.float32([0.1, 0.2]), need_grad=True)
    h = F.sin(x)
    y = F.sum(F.tanh(h))
    for flags in ({"clear_buffer": True}, {"clear_no_need_grad": True}):
        y.forward(**flags, function_pre_hook=lambda f: None)
        np.testing.assert_allclose(h.d, np.sin(x.d), rtol=1e-6)
        y.backward(clear_buffer=True, function_post_hook=lambda f: None)
        np.testing.assert_allclose(h.d, np.sin(x.d), rtol=1e-6)


def test_values_that_a_backward_pass_has_recomputed_are_given_up_again():
    x = nn.Variable.from_numpy_array(np.float32([0.1, 0.2]), need_grad=True)
    with nn.recompute():
        h = F.sin(x)
    y = F.sum(F.tanh(h * 2))
    y.forward()
    y.backward()
    with pytest.raises(GraphError, match="memory was reused"):
        _ = h.d


@pytest.mark.parametrize("backend", ["reference:half", "reference:float"])
@pytest.mark.parametrize(
    "start", [1e39, np.full(3, 1e39), nn.NdArray.from_numpy_array(np.full(3, 1e39))], ids=["number", "array", "NdArray"]
)
def test_a_start_that_the_dtype_does_not_hold_is_infinite_without_a_warning(backend, start):
    with nn.context_scope(nn.Context([backend])):
        x = nn.Variable.from_numpy_array(np.ones(3), need_grad=True)
        y = x * 2.0
        y.forward()
        y.backward(start)
    assert np.isinf(x.g).all()


@pytest.mark.parametrize("dynamic", [False, True])
def test_gradients_that_half_precision_does_not_hold_are_infinite_without_a_warning(dynamic):
    with nn.context_scope(nn.Context(["reference:half"])):
        for _ in range(2):
            x = nn.Variable.from_numpy_array([300.0, 300.0, 300.0], need_grad=True)
            with nn.auto_forward(dynamic):
                y = F.sum(F.cumprod(x))
            y.forward()
            y.backward(clear_buffer=dynamic)
            assert np.isinf(x.g[0])
