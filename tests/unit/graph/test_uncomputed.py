"""Values of functions that have not run: refused until they are computed or written."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.python_function import PythonFunction
from nn_core.errors import GraphError
from nn_core.settings import set_nnabla_program

NOT_COMPUTED = r"an array of shape \(2, 3\) must be computed before it is read, got the output of a function that has"


def leaf():
    return nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3), need_grad=True)


class Doubled(PythonFunction):
    def min_outputs(self):
        return 1

    def setup_impl(self, inputs, outputs):
        outputs[0].reset_shape(inputs[0].shape, True)

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d * 2

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        inputs[0].g = outputs[0].g * 2


@pytest.mark.parametrize("function", [F.exp, lambda x: F.split(F.stack(x, x, axis=0), axis=0)[1], Doubled()])
def test_results_are_not_read_before_they_are_computed(function):
    y = function(leaf())
    named = r"Variable\.d: a variable of shape \(2, 3\) must be computed before this is read, got the output of <\w+\(.*which"
    with pytest.raises(GraphError, match=named):
        _ = y.d
    with pytest.raises(GraphError, match=NOT_COMPUTED):
        np.asarray(y.data)
    assert not y.data.clear_called
    y.forward()
    assert y.d.shape == (2, 3)


def test_a_view_of_a_leaf_has_its_values_at_once():
    np.testing.assert_array_equal(F.reshape(leaf(), (6,)).d, np.arange(6))


@pytest.mark.parametrize("write", ["d", "data.data", "fill", "zero", "data"])
def test_writing_makes_the_values_readable(write):
    y = F.exp(leaf())
    if write == "d":
        y.d = 2
    elif write == "data.data":
        y.data.data = np.full((2, 3), 2.0)
    elif write == "data":
        y.data = nn.NdArray.from_numpy_array(np.full((2, 3), 2.0))
    else:
        getattr(y.data, write)(*[2.0][: write == "fill"])
    np.testing.assert_array_equal(y.d, np.full((2, 3), 0.0 if write == "zero" else 2.0))


def test_a_gradient_that_was_assigned_is_read():
    y = F.exp(leaf())
    y.g = 3
    np.testing.assert_array_equal(y.g, np.full((2, 3), 3))


def test_an_unlinked_variable_is_computed_with_the_graph():
    y = F.exp(leaf())
    z = F.log(y.get_unlinked_variable())
    with pytest.raises(GraphError, match=r"forward: an input of log must be computed .* unlinked from a function"):
        z.forward()
    y.forward()
    z.forward()
    np.testing.assert_allclose(z.d, np.arange(6).reshape(2, 3), rtol=1e-5)


def test_reset_shape_does_not_make_values():
    y = F.exp(leaf())
    y.reset_shape((3, 2))
    with pytest.raises(GraphError, match="must be computed before this is read"):
        _ = y.d


def test_dynamic_graphs_have_their_values():
    with nn.auto_forward():
        np.testing.assert_allclose(F.exp(leaf()).d, np.exp(leaf().d), rtol=1e-6)


UNCOMPUTED_ENDS = {
    "sum": F.sum,
    "mean": F.mean,
    "mul_scalar": lambda y: y * 0.5,
    "add_scalar": lambda y: y + 1,
    "mul2": lambda y: y * y,
    "slice": lambda y: y[1],
    "transpose": lambda y: F.transpose(y, (1, 0)),
    "affine": lambda y: F.affine(y, nn.Variable.from_numpy_array(np.ones((3, 2)))),
    "two functions": lambda y: F.sum(y * 3),
    "split": lambda y: F.split(y, axis=0)[0],
}


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("name", UNCOMPUTED_ENDS)
def test_backward_starts_from_what_has_not_run_if_no_gradient_reads_it(name, clear):
    x = leaf()
    y = F.sin(x) * 2
    y.forward(clear_no_need_grad=clear)
    end = UNCOMPUTED_ENDS[name](y)
    x.grad.zero()
    end.backward(clear_buffer=clear)
    found = x.g.copy()
    y.forward()
    end = UNCOMPUTED_ENDS[name](y)
    x.grad.zero()
    end.forward()
    end.backward()
    np.testing.assert_array_equal(found, x.g)
    assert found.any()


def test_backward_needs_no_forward_where_gradients_read_leaves_only():
    x = leaf()
    x.grad.zero()
    F.sum(x * 2).backward()
    np.testing.assert_array_equal(x.g, np.full((2, 3), 2))


@pytest.mark.parametrize("function", [F.relu, F.exp, F.sigmoid, F.max, F.softmax, F.dropout, Doubled()])
def test_backward_refuses_a_gradient_that_reads_what_has_not_run(function):
    y = F.sin(leaf())
    y.forward()
    end = function(y)
    with pytest.raises(GraphError, match=r"backward: what a gradient reads must be computed first, got the output of <\w+\("):
        end.backward()
    end.forward()
    end.backward()


def test_backward_refuses_a_gradient_that_reads_what_the_function_rewrites():
    x, weight, fixed = nn.Variable.from_numpy_array(np.ones((4, 2)), need_grad=True), leaf(), nn.Variable((2, 3))
    y = F.inq_affine(x, weight, fixed, num_bits=4, inq_iterations=(1,), selection_algorithm="random", seed=1)
    with pytest.raises(GraphError, match=r"must be computed first, got the output of <INQAffine\("):
        y.backward()


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("one", [False, True])
def test_a_sink_over_computed_variables_needs_no_forward(one, clear):
    x = leaf()
    y, z = F.sin(x), F.exp(x)
    nn.forward_all([y, z], clear_no_need_grad=clear)
    y.grad.fill(2)
    z.grad.fill(3)
    x.grad.zero()
    F.sink(y, z, one_input_grad=one).backward(clear_buffer=clear)
    start_y, start_z = (1, 1) if one else (2, 3)
    np.testing.assert_allclose(x.g, start_y * np.cos(x.d) + start_z * np.exp(x.d), rtol=1e-5)
    np.testing.assert_allclose(y.d, np.sin(x.d), rtol=1e-5)


def test_a_sink_adds_to_the_gradient_of_a_leaf():
    for one in (False, True):
        x = leaf()
        y = x * 2
        y.forward()
        y.grad.fill(3)
        x.grad.fill(7)
        F.sink(y, x, one_input_grad=one).backward()
        np.testing.assert_array_equal(x.g, np.full((2, 3), 7 + 1 + 2 if one else 7 + 6))


def test_backward_starts_from_what_has_not_run_after_forward_too():
    x = leaf()
    y = F.sin(x)
    y.forward()
    end = F.sum(y * 2)
    for clear in (False, True, True):
        x.grad.zero()
        end.backward(clear_buffer=clear)
        np.testing.assert_allclose(x.g, 2 * np.cos(x.d), rtol=1e-5)
        end.forward(clear_no_need_grad=clear)


def test_functions_in_programs_of_nnabla_read_zeros_of_what_was_unlinked_before_it_has_run(caplog):
    x = leaf()
    y = x + (F.exp(x) - x).get_unlinked_variable(need_grad=False)
    with pytest.raises(GraphError, match="forward: an input of add2 must be computed before it is read"):
        y.forward()
    set_nnabla_program(True)
    try:
        for _ in range(2):
            y.forward()
            np.testing.assert_array_equal(y.d, x.d)
    finally:
        set_nnabla_program(False)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["forward"]


def test_programs_of_nnabla_read_zeros_of_what_has_not_run(caplog):
    set_nnabla_program(True)
    try:
        y = F.exp(leaf())
        for _ in range(2):
            assert not y.d.any()
            assert y.g.shape == (2, 3)
        with pytest.raises(ValueError, match="read-only"):
            y.d[0] = 1
        assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["Variable.d", "Variable.g"]
        assert "got the output of <Exp()>, which has not run; it is read as zeros" in caplog.text
        y.forward()
        np.testing.assert_allclose(y.d, np.exp(leaf().d), rtol=1e-5)
    finally:
        set_nnabla_program(False)
