"""Values of functions that have not run: refused until they are computed or written."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import GraphError
from nn_core.graph.python_function import PythonFunction

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


@pytest.mark.parametrize("function", [F.exp, lambda x: F.split(F.stack(x, x, axis=0), axis=0)[1], Doubled()])
def test_results_are_not_read_before_they_are_computed(function):
    y = function(leaf())
    with pytest.raises(GraphError, match=NOT_COMPUTED):
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
    with pytest.raises(GraphError, match=NOT_COMPUTED):
        z.forward()
    y.forward()
    z.forward()
    np.testing.assert_allclose(z.d, np.arange(6).reshape(2, 3), rtol=1e-5)


def test_reset_shape_does_not_make_values():
    y = F.exp(leaf())
    y.reset_shape((3, 2))
    with pytest.raises(GraphError, match="must be computed before it is read"):
        _ = y.d


def test_dynamic_graphs_have_their_values():
    with nn.auto_forward():
        np.testing.assert_allclose(F.exp(leaf()).d, np.exp(leaf().d), rtol=1e-6)


def test_backward_needs_forward():
    x = leaf()
    y = F.sum(x * 2)
    with pytest.raises(GraphError, match=r"backward: the variable must be computed first, got the output of <Sum\("):
        y.backward()
    y.forward()
    y.backward()
    np.testing.assert_array_equal(x.g, np.full((2, 3), 2))
