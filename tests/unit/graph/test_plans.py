"""The choice of a plan: several forward passes of one graph own different memory, and a backward pass follows the last."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.engine.graph.apply import operator
from nn_core.engine.graph.forward import forward_plan
from nn_core.errors import ArgumentError, GraphError, ShapeError


def _loss():
    x = nn.Variable.from_numpy_array(np.array([[0.5, -1.0], [2.0, 0.25]], np.float32))
    w = nn.Variable.from_numpy_array(np.array([[1.0, 0.5], [-0.5, 1.0]], np.float32), need_grad=True)
    h = F.tanh(F.affine(x, w))
    return x, w, h, F.sum(h * h)


def _gradient(x, w):
    h = np.tanh(x @ w)
    return x.T @ (2 * h * (1 - h * h))


_PASSES = {
    "keep": lambda h, loss: loss.forward(),
    "lean": lambda h, loss: loss.forward(clear_no_need_grad=True),
    "several": lambda h, loss: nn.forward_all([loss, h]),
    "hook": lambda h, loss: loss.forward(clear_no_need_grad=True, function_pre_hook=lambda f: None),
    "clear, then keep": lambda h, loss: (loss.forward(clear_buffer=True), loss.forward()),
    "part": lambda h, loss: (loss.forward(), h.forward()),
}


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("second", _PASSES)
@pytest.mark.parametrize("first", _PASSES)
def test_backward_follows_the_last_forward_pass_whatever_came_before(first, second, clear):
    x, w, h, loss = _loss()
    rng = np.random.default_rng(3)
    for name in (first, second, first, second, second, first):
        x.d = rng.standard_normal((2, 2)).astype(np.float32)
        w.grad.zero()
        _PASSES[name](h, loss)
        loss.backward(clear_buffer=clear)
        np.testing.assert_allclose(w.g, _gradient(x.d, w.d), rtol=1e-4, atol=1e-5)


def test_backward_plans_are_kept_for_each_kind_of_forward_pass():
    _, w, h, loss = _loss()
    for _ in range(3):
        for run in _PASSES.values():
            run(h, loss)
            w.grad.zero()
            loss.backward(clear_buffer=True)
    known = [plan for plans in loss.plans.values() for plan in plans]
    for run in (_PASSES["keep"], _PASSES["lean"], _PASSES["keep"]):
        run(h, loss)
        w.grad.zero()
        loss.backward(clear_buffer=True)
    assert {id(plan) for plans in loss.plans.values() for plan in plans} == {id(plan) for plan in known}


def test_batches_of_changing_dtypes():
    x, w, _, loss = _loss()
    rng = np.random.default_rng(4)
    for dtype in (np.float64, np.float32, np.float16, np.float64, np.int64, np.float32):
        x.d = (rng.standard_normal((2, 2)) * 2).astype(dtype)
        w.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        np.testing.assert_allclose(w.g, _gradient(x.d.astype(np.float64), w.d), rtol=1e-3, atol=1e-4)


def test_a_weight_and_a_gradient_assigned_in_another_dtype():
    x, w, _, loss = _loss()
    for data_type, grad_type in ((np.float64, np.float32), (np.float32, np.float64), (np.float32, np.float32)):
        w.d = w.d.astype(data_type)
        w.g = np.ones((2, 2), grad_type)
        loss.forward()
        loss.backward()
        np.testing.assert_allclose(w.g, 1 + _gradient(x.d, w.d), rtol=1e-4)


def test_an_optimization_switched_between_passes():
    x, w, _, loss = _loss()
    for names in ((), ("fuse",), ("share_memory", "fuse"), ()):
        with nn.settings.without(*names):
            x.d = x.d + 0.5
            w.grad.zero()
            loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
        np.testing.assert_allclose(w.g, _gradient(x.d, w.d), rtol=1e-4, atol=1e-5)


def test_a_value_that_the_user_has_written_is_what_backward_reads():
    _, _, h, loss = _loss()
    loss.forward()
    loss.backward()
    for value in (0.5, np.full((2, 2), 0.25), np.full((2, 2), 0.25, np.float32)):
        loss.forward()
        h.d = value
        h.grad.zero()
        loss.backward()
        np.testing.assert_allclose(h.g, 2 * h.d, rtol=1e-6)


def test_the_gradient_array_of_a_later_assignment_is_written():
    _, w, _, loss = _loss()
    loss.forward()
    loss.backward()
    old, new = w.grad, nn.NdArray((2, 2))
    before = old.data.copy()
    new.zero()
    w.grad = new
    loss.backward()
    np.testing.assert_array_equal(new.data, before)
    np.testing.assert_array_equal(old.data, before)


def test_a_start_assigned_as_another_array_is_read():
    _, w, _, loss = _loss()
    loss.forward()
    loss.g = 1.0
    loss.backward(None)
    before = w.g.copy()
    loss.grad = nn.NdArray.from_numpy_array(np.float32(3.0))
    w.grad.zero()
    loss.backward(None)
    np.testing.assert_allclose(w.g, 3 * before, rtol=1e-6)


def test_leaves_that_share_a_gradient_add_up():
    a, b = (nn.Variable.from_numpy_array(np.array([n], np.float32), need_grad=True) for n in (3.0, 5.0))
    b.grad = a.grad
    for _ in range(2):
        a.grad.zero()
        y = a * b
        y.forward()
        y.backward()
        assert a.g.item() == b.g.item() == 8.0


def test_a_second_backward_after_the_values_were_given_up_is_refused():
    *_, loss = _loss()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    with pytest.raises(GraphError, match="memory was reused"):
        loss.backward(clear_buffer=True)


@pytest.mark.parametrize("n_linear", [1, 2, 3])
def test_a_kept_gradient_outlives_the_next_forward_pass(n_linear):
    x = nn.Variable.from_numpy_array(np.arange(6, dtype=np.float32), need_grad=True)
    y = h = F.sin(x)
    h.persistent = True
    for function in (F.identity, F.sin):
        y = function(y)
        for _ in range(n_linear):
            y = F.mul_scalar(y, 1.1)
    loss = F.sum(y)
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    before = h.g.copy()
    x.d = x.d + 1
    loss.forward(clear_no_need_grad=True)
    np.testing.assert_array_equal(h.g, before)


def test_a_refused_backward_leaves_the_gradients_alone():
    _, w, _, loss = _loss()
    w.grad.zero()
    loss.forward(clear_buffer=True)
    with pytest.raises(GraphError):
        loss.backward()
    np.testing.assert_array_equal(w.g, 0)


def test_results_of_comparisons_are_inputs_as_others_are():
    x = nn.Variable.from_numpy_array(np.array([1.0, 3.0], np.float32), need_grad=True)
    y = F.sum(F.where(F.greater_scalar(x, 2), x * x, F.logical_not(F.less_scalar(x, 2)) * 5))
    nn.forward_all([y, F.logical_not(F.less_scalar(x, 2))])
    x.grad.zero()
    y.forward()
    y.backward()
    assert (float(y.d), x.g.tolist()) == (9.0, [0.0, 6.0])


@pytest.mark.parametrize("start", ["shared with a leaf", "shared with the start"])
def test_a_gradient_array_of_two_roles_is_refused(start):
    _, w, h, loss = _loss()
    loss.forward()
    if start == "shared with a leaf":
        h.grad = w.grad
        with pytest.raises(GraphError, match="must be an array of its own"):
            loss.backward()
    else:
        y = F.mul_scalar(h, 2.0)
        y.grad = h.grad
        y.forward()
        with pytest.raises(GraphError, match="must be an array of its own"):
            y.backward(None)


def test_results_and_persistent_values_outlast_every_backward():
    _, _, h, loss = _loss()
    loss.forward(clear_no_need_grad=True)
    before = h.data.get_data("r").copy()
    h.backward(clear_buffer=True)
    np.testing.assert_array_equal(h.d, before)
    _, _, h, loss = _loss()
    loss.forward(clear_no_need_grad=True)
    h.persistent = True
    loss.backward(clear_buffer=True)
    np.testing.assert_array_equal(h.d, before)


def test_values_that_were_given_up_are_refused_by_every_reader():
    _, _, h, loss = _loss()
    loss.forward(clear_no_need_grad=True)
    loss.backward(clear_buffer=True)
    for read in (lambda: h.d, lambda: h.data.get_data("r"), lambda: h.data + 1, lambda: h.data.copy_from(h.data)):
        with pytest.raises(GraphError, match="memory was reused"):
            read()
    with pytest.raises(GraphError, match="memory was reused"):
        F.sin(h.get_unlinked_variable()).forward()


def test_gradients_of_intermediate_variables_are_refused_after_a_clearing_backward():
    for auto in (False, True):
        with nn.auto_forward(auto):
            _, _, h, loss = _loss()
            if not auto:
                loss.forward(clear_no_need_grad=True)
            loss.backward(clear_buffer=True)
        for read in (lambda h=h: h.g, lambda h=h: h.d):
            with pytest.raises(GraphError, match="memory was reused"):
                read()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("auto", [False, True])
def test_leaves_of_whole_numbers_have_floating_gradients(dtype, auto):
    with nn.auto_forward(auto):
        x = nn.Variable.from_numpy_array(np.array([1, 0, 1], dtype), need_grad=True)
        y = F.sum(F.tanh(x[1:]))
        y.forward()
        y.backward()
    np.testing.assert_allclose(x.g, [0, 1, 1 - np.tanh(1) ** 2], rtol=1e-6)
    x.d = 0.5
    np.testing.assert_array_equal(x.d, 0.5)


def test_a_fraction_that_fills_whole_numbers_is_kept():
    x = nn.NdArray.from_numpy_array(np.arange(3))
    x.fill(2.0)
    assert x.dtype == np.int64
    x.fill(0.5)
    np.testing.assert_array_equal(x.data, 0.5)


@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("backend", ["cpu:float", "reference:float"])
def test_an_image_that_is_cut_from_its_graph_gets_a_gradient(backend, auto):
    if backend.startswith("cpu"):
        pytest.importorskip("nn_ext_cpu")
    rng = np.random.default_rng(1)
    with nn.context_scope(nn.Context([backend, "reference:float"])), nn.auto_forward(auto):
        x, w, v = (
            nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32), need_grad=True)
            for shape in ((2, 4, 5, 5), (4, 4, 3, 3), (4, 4, 1, 1))
        )
        h = F.convolution(x, w)
        y = F.sum(F.convolution(h, v))
        y.forward(clear_no_need_grad=True)
        y.backward()
        before = h.g.copy()
        h.parent = None
        h.need_grad = True
        h.grad.zero()
        y.forward(clear_no_need_grad=True)
        y.backward()
    np.testing.assert_allclose(h.g, before, rtol=1e-5)


@pytest.mark.parametrize("backend", ["cpu:float", "reference:float"])
@pytest.mark.parametrize("kind", ["static", "dynamic", "imperative"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e20, 4.0])
def test_labels_that_name_no_class_are_refused(backend, kind, bad):
    if backend.startswith("cpu"):
        pytest.importorskip("nn_ext_cpu")
    made = nn.NdArray if kind == "imperative" else nn.Variable
    x = made.from_numpy_array(np.ones((3, 4), np.float32))
    labels = made.from_numpy_array(np.array([[0], [2], [bad]], np.float32))
    for function in (F.softmax_cross_entropy, F.categorical_cross_entropy, lambda x, t: F.embed(t, x)):
        context = nn.context_scope(nn.Context([backend, "reference:float"]))
        with context, nn.auto_forward(kind == "dynamic"), pytest.raises(ArgumentError):
            function(x, labels).forward()


INDEXED = {
    "softmax_cross_entropy": lambda i, f: F.softmax_cross_entropy(f(3, 4), i),
    "categorical_cross_entropy": lambda i, f: F.categorical_cross_entropy(F.softmax(f(3, 4)), i),
    "embed": lambda i, f: F.embed(i, f(5, 2)),
    "gather": lambda i, f: F.gather(f(5, 3), F.reshape(i, (3,), inplace=False)),
    "gather_nd": lambda i, f: F.gather_nd(f(5, 3), F.reshape(i, (1, 3), inplace=False)),
    "scatter_nd": lambda i, f: F.scatter_nd(f(3, 3), F.reshape(i, (1, 3), inplace=False), (5, 3)),
    "scatter_add": lambda i, f: F.scatter_add(f(5, 1), i, f(3, 1), axis=0),
}


@pytest.mark.parametrize("dtype", ["int64", "float32"])
@pytest.mark.parametrize("auto", [False, True])
@pytest.mark.parametrize("name", INDEXED)
def test_gradients_of_indices_are_zeros(name, auto, dtype, rng):
    def values(*shape):
        return nn.Variable.from_numpy_array(rng.standard_normal(shape).astype(np.float32), need_grad=True)

    with nn.auto_forward(auto):
        indices = nn.Variable.from_numpy_array(np.array([[0], [2], [1]], dtype), need_grad=True)
        y = F.sum(INDEXED[name](indices, values))
        if not auto:
            y.forward()
        y.backward()
    assert indices.g.dtype == np.float32
    np.testing.assert_array_equal(indices.g, 0)


def test_frozen_statistics_are_read_again_when_values_are_recomputed(rng):
    x = nn.Variable.from_numpy_array(rng.standard_normal((4, 3)).astype(np.float32), need_grad=True)
    parameters = [nn.Variable.from_numpy_array(a) for a in np.abs(rng.standard_normal((4, 1, 3))).astype(np.float32) + 0.5]
    gradients = []
    for again in (False, True):
        with nn.recompute(again):
            h = F.batch_normalization(x, *parameters, axes=[1], batch_stat=False)
            loss = F.sum(F.sin(F.sin(h)))
        x.grad.zero()
        loss.forward(clear_no_need_grad=True)
        loss.backward(clear_buffer=True)
        gradients.append(x.g.copy())
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-5)


def test_circles_are_refused():
    x, _, h, loss = _loss()
    with pytest.raises(GraphError, match=r"relu: an output must not be.*circle"):
        F.relu(h, outputs=[h])
    with pytest.raises(GraphError, match="circle"):
        F.sin(h, outputs=[x])
    with pytest.raises(GraphError, match="circle"):
        F.sin(h, outputs=[x.data])
    y = F.sin(h)
    with pytest.raises(GraphError, match="parent: an output must not be"):
        h.parent = y.parent
    loss.forward()


def test_a_start_of_another_shape_is_refused():
    _, _, h, _ = _loss()
    h.forward()
    for start in (nn.NdArray((1,)), nn.NdArray((2, 1)), np.ones(2)):
        with pytest.raises(ShapeError, match=r"backward: grad must have the variable's shape \(2, 2\), got"):
            h.backward(start)


def test_a_seed_gives_the_same_numbers_in_every_kind_of_graph_however_often_it_is_compiled():
    x = nn.Variable.from_numpy_array(np.ones(64, np.float32))
    y = F.dropout(x, 0.5, seed=3)
    y.forward()
    first = y.d.copy()
    with nn.auto_forward():
        np.testing.assert_array_equal(F.dropout(x, 0.5, seed=3).d, first)
    np.testing.assert_array_equal(F.dropout(x.data, 0.5, seed=3).data, first)
    z = F.dropout(x, 0.5, seed=3)
    z.forward()
    y.forward()
    z.forward(clear_buffer=True)  # another plan
    np.testing.assert_array_equal(z.d, y.d)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("lean", [False, True])
def test_an_unlinked_variable_is_read_as_it_was_before_the_pass_that_computes_its_source(dtype, lean):
    x = nn.Variable((3,), need_grad=True)
    h = F.tile(x, (2,))
    u = h.get_unlinked_variable(need_grad=False)
    y = F.exp(-u) * 10 - h
    x.d = np.ones(3, dtype)
    h.forward()
    before = 1.0
    for value in (1.0, 2.0, 3.0, 4.0):  # as NNabla 1.39 does: both variables have one array
        x.d = np.full(3, value, dtype)
        y.forward(clear_no_need_grad=lean)
        np.testing.assert_allclose(y.d, np.full(6, 10 * np.exp(-before) - value), rtol=1e-6)
        np.testing.assert_allclose(u.d, np.full(6, value))
        before = value
    u.d = 0.5
    y.forward(clear_no_need_grad=lean)
    np.testing.assert_allclose(y.d, np.full(6, 10 * np.exp(-0.5) - 4), rtol=1e-6)
    h.data.zero()
    y.forward(clear_buffer=True)
    np.testing.assert_allclose(y.d, np.full(6, 10 - 4), rtol=1e-6)
    u.d = 0.25
    for before in (0.25, 4.0):
        y.forward(clear_buffer=True)
        np.testing.assert_allclose(y.d, np.full(6, 10 * np.exp(-before) - 4), rtol=1e-6)


def test_an_unlinked_variable_beside_its_source_in_a_view_of_other_memory():
    x = nn.Variable((3,), need_grad=True)
    h = F.reshape(F.tile(x, (4,)), (3, 4))
    h.persistent = True
    u = h.get_unlinked_variable(need_grad=False)
    y = F.prod(F.split(-u, axis=1)[0], axis=0) - h
    x.d = np.array([0.1, 0.2, 0.3])
    h.forward()
    for clear in (False, True, False):
        y.forward(clear_no_need_grad=clear)
        np.testing.assert_allclose(y.d, -0.1 * 0.2 * 0.3 - np.tile(x.d, 4).reshape(3, 4), rtol=1e-5)
    x.grad.zero()
    y.backward()
    np.testing.assert_allclose(x.g, np.full(3, -4.0))


def test_an_unlinked_variable_whose_source_was_never_computed_is_refused_beside_it():
    h = F.exp(nn.Variable((2,), need_grad=True))
    y = -h.get_unlinked_variable(need_grad=False) + h
    with pytest.raises(GraphError, match="must be computed before it is read"):
        y.forward()


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("api", ["mean_subtraction", "spectral_norm"])
def test_functions_that_read_what_they_rewrite_are_not_computed_again(api, lean, rng):
    values, state = rng.normal(size=(4, 2, 3)).astype(np.float32), rng.normal(size=4).astype(np.float32)

    def gradient(recompute):
        x = nn.Variable.from_numpy_array(values, need_grad=True)
        if api == "spectral_norm":
            updated = [nn.Variable.from_numpy_array(state)]
        else:
            updated = [nn.Variable.from_numpy_array(np.ones((2, 3), np.float32)), nn.Variable.from_numpy_array(np.array([2]))]
        with nn.recompute(recompute):
            y = F.sin(operator(api)(F.reshape(F.tanh(x), (4, 2, 3)), *updated))
        loss = F.sum(y**2 * y)
        loss.forward(clear_no_need_grad=lean)
        for variable in updated:
            variable.d.copy()
        x.grad.zero()
        loss.backward(clear_buffer=lean)
        return x.g

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flags", [{}, {"clear_no_need_grad": True}])
def test_values_are_not_recomputed_from_statistics_that_were_rewritten_since(flags):
    """Two normalizations share their statistics; the one in training mode rewrites them after the other has read them."""

    def gradient(recompute):
        rng = np.random.default_rng(4)
        x = nn.Variable.from_numpy_array(rng.standard_normal((4, 2)).astype(np.float32), need_grad=True)
        w = nn.Variable.from_numpy_array(rng.standard_normal((2, 3)).astype(np.float32), need_grad=True)
        b, g, m = (nn.Variable.from_numpy_array(np.full((1, 2), v, np.float32)) for v in (0.3, 1.2, 0.1))
        v = nn.Variable.from_numpy_array(np.ones((1, 2), np.float32))
        with nn.recompute(recompute):
            frozen = F.batch_normalization(x, b, g, m, v, axes=(1,), batch_stat=False)
            trained = F.batch_normalization(2 * x, b, g, m, v, axes=(1,), batch_stat=True, decay_rate=0.5)
            hidden = F.tanh(frozen + trained)
        loss = F.sum(F.affine(hidden, w) ** 2)
        w.grad.zero()
        loss.forward(**flags)
        loss.backward()
        return w.g.copy()

    np.testing.assert_allclose(gradient(True), gradient(False), rtol=1e-5)


def test_what_a_pass_has_written_before_it_failed_counts_as_written():
    class Fails(nn.PythonFunction):
        name, fails = "Fails", False

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].data = inputs[0].data
            if self.fails:
                raise RuntimeError("out of order")

    target, source = nn.Variable((2,)), nn.Variable((2,))
    fails = Fails()
    y = fails(F.assign(target, source))
    for value in (1, 2):
        source.d = value
        y.forward()
    fails.fails, count = True, target.data.modification_count
    source.d = 3
    with pytest.raises(RuntimeError, match="out of order"):
        y.forward()
    assert target.data.modification_count > count
    np.testing.assert_array_equal(target.d, 3)


@pytest.mark.parametrize(
    ("policy", "ends"),
    [("all", [(), (), ()]), ("for backward", [(), (0,), ()]), ("outputs", [(), (0,), (0,)])],
)
def test_an_entry_knows_which_values_nobody_reads_after_it(policy, ends):
    x, w = (nn.Variable.from_numpy_array(np.ones((2, 2)), need_grad=True) for _ in range(2))
    with nn.context_scope(nn.Context(["reference:float"])):
        y = F.tanh(F.sigmoid(F.affine(x, w)))
    assert [entry.ends for entry in forward_plan((y,), policy).entries] == ends


@pytest.mark.parametrize("write", ["number", "fill", "zero"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_number_reaches_readers_of_all_dtypes(write: str, backend: str) -> None:
    """The first function reads the leaf in float32, the second one as it is: both see what is filled in."""
    with nn.context_scope(nn.Context([backend])):
        x = nn.Variable((1, 4))
        x.d = np.arange(4.0).reshape(1, 4)
        y = F.maximum2(x * 1.0, F.identity(x))
        z = x * 1 + F.reshape(x, (1, 4), inplace=False) * 100
    nn.forward_all([y, z])
    if write == "zero":
        x.data.zero()
    elif write == "fill":
        x.data.fill(-9.5)
    else:
        x.d = -9.5
    nn.forward_all([y, z])
    number = 0.0 if write == "zero" else -9.5
    assert y.d.tolist() == [[number] * 4]
    assert z.d.tolist() == [[101 * number] * 4]
    assert x.dtype == np.float64
