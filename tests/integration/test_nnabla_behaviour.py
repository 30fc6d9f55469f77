"""Behaviour of NNabla 1.39 that programs rely on, and that no other test of ours states; seen on NNabla as a black box."""

import importlib

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import backward_functions, function_bases
from nn_core.errors import ArgumentError, GraphError, ShapeError
from nn_core.normalization_functions import _force_list
from nn_core.utils.data_iterator import data_iterator_simple
from nn_core.utils.data_source_implements import SimpleDataSource
from nn_core.utils.inspection.profile import TimeProfiler
from nn_core.utils.learning_rate_scheduler import PolynomialScheduler


def leaf(*shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return nn.Variable.from_numpy_array(values, need_grad=True)


@pytest.mark.parametrize("start_and_length", [(-1, 1), (0, 5), (3, 2)])
def test_parts_lie_within_the_array(start_and_length):
    with pytest.raises(ArgumentError, match="narrow: start and length must lie within axis 0") as error:
        nn.NdArray((4, 3)).narrow(0, *start_and_length)
    assert isinstance(error.value, RuntimeError)


def test_zeros_of_a_part_are_seen_in_the_whole():
    whole = nn.NdArray.from_numpy_array(np.ones((4, 3), np.float32))
    part = whole.narrow(0, 1, 2)
    assert (whole.zeroing, part.zeroing) == (False, False)
    part.zero()
    assert not whole.zeroing
    np.testing.assert_array_equal(whole.data[:, 0], [1, 0, 0, 1])
    whole.zero()
    assert (whole.zeroing, part.zeroing) == (True, True)
    part.fill(3)
    assert (whole.zeroing, part.zeroing) == (False, False)
    np.testing.assert_array_equal(whole.data[:, 0], [0, 3, 3, 0])


def test_a_part_of_zeros_is_zeroing():
    whole = nn.NdArray((4, 3))
    whole.zero()
    assert whole.narrow(0, 0, 2).zeroing


@pytest.mark.parametrize("shape", [(6,), (3, 2), (4,)])
def test_values_of_a_wrong_shape_are_refused(shape):
    for holder, name in ((nn.NdArray((2, 3)), "data"), (leaf(2, 3), "d"), (leaf(2, 3), "g")):
        with pytest.raises(ShapeError, match=r"assigned values must have the array's shape, got .* for \(2, 3\)"):
            setattr(holder, name, np.zeros(shape))


def test_an_index_has_the_arguments_of_the_same_slice():
    x, end = leaf(4, 5, 6), 2**31 - 1
    sliced = F.slice(x, (1, 0, 0), (3, end, end), (1, 1, 1))
    assert x[1:3].parent.arguments == sliced.parent.arguments == {"start": [1, 0, 0], "stop": [3, end, end], "step": [1, 1, 1]}


def test_a_sum_in_the_memory_of_an_operand():
    a, b = leaf(2), leaf(2)
    with pytest.raises(GraphError, match="add2: an output must not be what the function or its inputs are computed from"):
        F.add2(a, b, inplace=True, outputs=[a.data])
    total, other = nn.NdArray.from_numpy_array([1.0, 2.0]), nn.NdArray.from_numpy_array([3.0, 4.0])
    F.add2(total, other, outputs=[total])
    assert total.data.tolist() == [4, 6]


@pytest.mark.parametrize("clear", [False, True])
def test_the_halves_of_a_graph_are_differentiated_one_after_the_other(clear):
    x = leaf(2, 3)
    h = F.sin(x * 2)
    y = F.sum(F.exp(h.get_unlinked_variable(need_grad=True)) * 3)
    h.forward(clear_no_need_grad=clear)
    y.forward(clear_no_need_grad=clear)
    y.backward(clear_buffer=True)
    h.backward(None, clear_buffer=True)
    np.testing.assert_allclose(x.g, 6 * np.exp(np.sin(2 * x.d)) * np.cos(2 * x.d), rtol=1e-5)


def test_what_a_cleared_pass_says_that_it_has_cleared():
    x = leaf(2, 3)
    h = F.sin(x)
    y = F.sum(h)
    y.forward()
    y.backward(clear_buffer=True)
    assert (h.data.clear_called, h.grad.clear_called) == (True, True)
    assert (y.data.clear_called, y.grad.clear_called, x.grad.clear_called) == (False, False, False)


def test_graphs_over_parts_that_are_computed_as_they_are_built():
    x = nn.NdArray.from_numpy_array(np.ones((4, 3), np.float32))
    with nn.auto_forward():
        v = nn.Variable((2, 3))
        v.data = x.narrow(0, 0, 2)
        y = F.exp(v)
    assert (y.name, v.name, y.parent.name) == ("", "", "Exp")
    np.testing.assert_allclose(y.d, np.full((2, 3), np.e), rtol=1e-6)


# -- functions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dynamic", [False, True])
def test_noise_of_adversarial_training_keeps_the_gradient_in_its_buffer(dynamic):
    x, buffer, weight = leaf(2, 3), nn.Variable((2, 3), need_grad=True), leaf(2, 3)
    with nn.auto_forward(dynamic):
        for _ in range(2):  # the second pass starts from what the first has left, which is power iteration
            y = F.vat_noise(x, buffer, eps=2.0)
            total = F.sum(y * weight)
            if not dynamic:
                total.forward()
            total.backward(clear_buffer=True)
            np.testing.assert_array_equal(buffer.d, 2 * weight.d)
            x.d = buffer.d
            buffer.d = 0


@pytest.mark.parametrize("need_grad", [True, False])
def test_the_buffer_of_noise_gets_no_gradient(need_grad):
    x, buffer = leaf(2, 3), nn.Variable((2, 3), need_grad=need_grad)
    x.g, buffer.g = 5, 7
    h = x * 1
    y = F.vat_noise(h, buffer, eps=2.0)
    total = F.sum(y) + F.sum(h)  # h gets the gradient of the sum alone
    total.forward()
    total.backward(0.5)
    assert (buffer.d == 1).all() and (buffer.g == 7).all() and (x.g == 5.5).all()
    y.g = 3
    y.parent.backward([h, buffer], [y], accum=[False, False])
    assert (buffer.d == 6).all() and (buffer.g == (0 if need_grad else 7)).all() and (h.g == 0).all()


def test_the_operator_of_patch_correlation_has_its_channels_last():
    a, b = (np.random.RandomState(i).randn(2, 4, 6, 3).astype(np.float32) for i in range(2))
    last = function_bases.patch_correlation(*map(nn.Variable.from_numpy_array, (a, b)), shift=(1, 1))
    first = F.patch_correlation(*[nn.Variable.from_numpy_array(x.transpose(0, 3, 1, 2)) for x in (a, b)], shift=(1, 1))
    nn.forward_all([last, first])
    assert last.shape == (2, 4, 6, 3, 3)
    np.testing.assert_allclose(last.d, first.d.transpose(0, 3, 4, 1, 2), rtol=1e-5)


def test_one_hot_takes_an_entry_for_each_axis():
    indices = np.random.RandomState(0).randint(0, 8, (100, 2))
    y = F.one_hot(nn.Variable.from_numpy_array(indices), (10, 8))
    y.forward()
    np.testing.assert_array_equal(np.argwhere(y.d)[:, 1:], indices)
    with pytest.raises(ShapeError, match="the last axis of x must have an entry for each axis of shape") as error:
        F.one_hot(nn.Variable((100, 1)), (10, 8))
    assert isinstance(error.value, RuntimeError)


#: Sums of the values, and of the absolute gradients of x and the weight, as NNabla 1.39 has computed them.
FUSED = {
    "relu": ({}, 99.351, 258.179, 236.391),
    "identity": ({"nonlinearity": "identity"}, -93.309, 533.244, 448.837),
    "reflect": ({"pad": (1, 1), "pad_mode": "reflect"}, 339.663, 597.352, 603.565),
    "constant": ({"pad": (1, 1), "pad_mode": "constant", "constant_value": 2.0}, 604.389, 508.345, 1641.517),
    "leaky_relu": ({"nonlinearity": "leaky_relu", "nonlinearity_args": [0.2]}, 60.819, 280.419, 242.501),
    "sigmoid": ({"nonlinearity": "sigmoid"}, 27.127, 43.524, 43.338),
    "tanh": ({"nonlinearity": "tanh"}, -19.667, 98.189, 95.276),
    "elu": ({"nonlinearity": "elu", "nonlinearity_args": [0.5]}, 79.127, 264.194, 237.274),
}


@pytest.mark.parametrize("name", FUSED)
def test_fused_convolution_computes_what_nnabla_does(name):
    settings, *expected = FUSED[name]
    rng = np.random.RandomState(3)
    x, weight = (nn.Variable.from_numpy_array(rng.randn(*shape), need_grad=True) for shape in ((2, 3, 5, 5), (4, 3, 3, 3)))
    y = F.fused_convolution(x, weight, **settings)
    y.forward()
    y.backward()
    np.testing.assert_allclose([y.d.sum(), np.abs(x.g).sum(), np.abs(weight.g).sum()], expected, rtol=1e-4)


def test_what_fused_convolution_refuses():
    x, weight = leaf(2, 3, 5, 5), leaf(4, 3, 3, 3)
    with pytest.raises(ArgumentError, match=r"nonlinearity must be one of 'identity', .*got ''"):
        F.fused_convolution(x, weight, nonlinearity="")
    with pytest.raises(ArgumentError, match="pad must have one value for each of the 2 spatial axes"):
        F.fused_convolution(x, weight, pad=(1, 1, 1, 2))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5])
def test_dropout_refuses_what_is_no_share(p):
    with pytest.raises(RuntimeError, match=r"dropout: p must be in \[0, 1\)"):
        F.dropout(leaf(2, 3), p)


def test_nothing_is_neither_split_nor_joined():
    with pytest.raises(RuntimeError, match="split: x must have a length of at least 1 along axis 0"):
        F.split(nn.Variable((0, 3)), axis=0)
    for function in (F.concatenate, F.stack, F.add_n, F.mul_n, F.sink):
        with pytest.raises(ArgumentError, match="at least 1 input must be given, got 0"):
            function()


def test_samples_between_two_numbers_are_a_whole_number():
    with pytest.raises(ArgumentError, match=r"linspace: num must be an integer, got 2.5\n  hint: //"):
        F.linspace(0, 1, 2.5)
    with pytest.raises(ValueError, match="linspace: num must be at least 0, got -1"):
        F.linspace(0, 1, -1)
    assert F.linspace(0, 1, 3.0).shape == (3,)


def test_indicators_of_incremental_quantization_count_passes():
    x, weight, fixed = leaf(3, 4), leaf(4, 2), nn.Variable.from_numpy_array(np.tile([1.0, 0.0], (4, 1)))
    y = F.inq_affine(x, weight, fixed, num_bits=4, inq_iterations=(2, 4))
    seen = []
    for _ in range(5):
        y.forward()
        seen.append((int((fixed.d == 1).sum()), int(fixed.d.min())))
    assert [count for count, _ in seen] == [4, 4, 6, 6, 8]
    assert [least for _, least in seen] == [-1, -2, -3, -4, 1]


# -- layers, recomputation and tools -----------------------------------------------------------------------------------


def test_recomputed_parts_inside_of_kept_ones():
    x = nn.Variable.from_numpy_array(np.array([1.0, 2.0]), need_grad=True)
    with nn.recompute():
        h = F.sin(x)
        with nn.recompute(False):
            k = F.cos(h)
        m = F.exp(k)
        inside = nn.Variable((2,))
    assert (h.recompute, k.recompute, m.recompute, inside.recompute) == (True, False, True, True)
    y = F.tanh(m)
    y.forward(clear_no_need_grad=True)
    assert h.data.clear_called
    assert m.data.clear_called
    y.backward()
    exact = (1 - np.tanh(np.exp(np.cos(np.sin(x.d)))) ** 2) * np.exp(np.cos(np.sin(x.d))) * -np.sin(np.sin(x.d)) * np.cos(x.d)
    np.testing.assert_allclose(x.g, exact, rtol=1e-4)  # [-0.0613, 0.0573]; NNabla computes [-0.0443, 0.0420]
    assert h.data.clear_called


@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
def test_fused_batch_normalization_without_scale_and_shift(kind):
    values = np.random.RandomState(0).randn(2, 3, 4, 4)
    x = kind.from_numpy_array(values)
    with nn.parameter_scope("scope", {}):
        y = PF.fused_batch_normalization(x, None, no_scale=True, no_bias=True)
        assert sorted(nn.get_parameters(grad_only=False)) == ["bn/mean", "bn/var"]
    if isinstance(y, nn.Variable):
        y.forward()
    found = y.d if isinstance(y, nn.Variable) else y.data
    normal = (values - values.mean((0, 2, 3), keepdims=True)) / np.sqrt(values.var((0, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(found, np.maximum(normal, 0), rtol=1e-4, atol=1e-5)


def test_orders_of_a_source_that_is_read_without_an_iterator():
    source = SimpleDataSource(lambda i: (i,), 6, shuffle=True, rng=np.random.RandomState(0))
    orders = []
    for _ in range(3):
        orders.append([source.next()[0] for _ in range(6)])
        source.reset()
    assert [sorted(order) for order in orders] == [list(range(6))] * 3
    assert orders[0] != orders[1] != orders[2]


def test_a_polynomial_rate_stays_zero_after_its_end():
    schedule = PolynomialScheduler(1.0, 10, 2.0)
    assert [round(schedule.get_learning_rate(i), 5) for i in (0, 5, 9, 10, 12)] == [1.0, 0.25, 0.01, 0.0, 0.0]


def test_the_time_profiler_has_the_time_of_each_scope():
    profiler, y = TimeProfiler("cpu", "0"), F.sin(leaf(2))
    for _ in range(2):
        with profiler.scope("training"), profiler.scope("forward"):
            y.forward(function_pre_hook=profiler.pre_hook, function_post_hook=profiler.post_hook)
    times = profiler.calc_elapsed_time(["forward", "summary"])
    assert list(times["forward"]) == ["0:Sin"]
    assert times["summary"]["training"] >= times["summary"]["forward"] >= times["forward"]["0:Sin"]


def test_names_that_programs_import():
    assert [_force_list(1), _force_list([1]), _force_list((1, 2))] == [[1], [1], (1, 2)]


def test_modules_of_gradient_functions_are_refused_with_what_to_use():
    import nn_core.compat.nnabla  # noqa: F401  # the names of NNabla

    with pytest.raises(ModuleNotFoundError, match=r"got 'nnabla\.backward_function'\n  hint: .*nn_core\.grad"):
        importlib.import_module("nnabla.backward_function.convolution")


def test_gradient_functions_have_the_signature_of_nnabla():
    x, p = leaf(2, 3), 0.5
    y = F.dropout(x, p, seed=3)
    y.forward()
    dy = nn.Variable.from_numpy_array(np.ones((2, 3)))
    dx = backward_functions.dropout_backward([dy], [x], [x.shape], [y], [y.shape], p=p, seed=3)
    dx.forward()
    np.testing.assert_array_equal(dx.d[x.d > 0], (y.d / np.maximum(x.d, 1))[x.d > 0])
    da, db = backward_functions.mul2_backward([dy], [x, x], [x.shape, x.shape], [None], [x.shape])
    nn.forward_all([da, db])
    np.testing.assert_array_equal(da.d, x.d)
    for name in ("no_such_backward", "tanh"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(backward_functions, name)


@pytest.mark.parametrize(("accumulate", "expected"), [(False, 1), (True, 101)])
def test_gradients_that_are_chosen_are_added_or_overwritten(accumulate, expected):
    x, low, high = leaf(3, 2), leaf(3, 2), leaf(3, 2)
    low.d, high.d = -1, 1
    for make, inputs in ((lambda: F.clip_grad_by_value(x, low, high), [x, low, high]), (lambda: F.sort(x, axis=0), [x])):
        y = make()
        for shape in ((3, 2), (4, 3)):
            for each in inputs:
                each.reset_shape(shape, force=True)
                each.d = {id(low): -1, id(high): 1}.get(id(each), np.arange(np.prod(shape)).reshape(shape))
            y.forward()
            y.g, x.g = 1, 100
            y.parent.backward(inputs, [y], [accumulate] * len(inputs))
            np.testing.assert_array_equal(x.g, np.full(shape, expected))
        x.reset_shape((3, 2), force=True)


def test_the_normal_of_zeros_is_zero():
    x = nn.Variable.from_numpy_array([[0.0, 0.0], [3.0, 4.0]], need_grad=True)
    for eps, normal in ((1e-12, [0.6, 0.8]), (75.0, [0.3, 0.4])):
        y = F.norm_normalization(x, 2.0, axes=1, eps=eps)
        y.forward()
        y.backward()
        np.testing.assert_allclose(y.d, [[0, 0], normal], rtol=1e-6)
        assert np.isfinite(x.g).all()


def test_divergence_over_all_axes():
    p, q = (np.random.RandomState(i).rand(2, 3) + 0.1 for i in range(2))
    for base_axis, axes in ((0, (0, 1)), (1, 1)):
        y = F.kl_multinomial(nn.Variable.from_numpy_array(p), nn.Variable.from_numpy_array(q), base_axis)
        y.forward()
        np.testing.assert_allclose(y.d.ravel(), np.sum(p * np.log(p / q), axis=axes).ravel(), rtol=1e-4)
    y = F.kl_multinomial(nn.Variable.from_numpy_array([[0.5, 0.0]]), nn.Variable.from_numpy_array([[-0.5, 0.5]]))
    y.forward()
    assert np.isfinite(y.d).all()


def test_lengths_of_no_axis_are_none():
    for start, end in ((3, 3), (2, 1), (5, 9)):
        y = F.shape(nn.Variable((4, 5, 6)), start=start, end=end)
        y.forward()
        assert y.shape == y.d.shape == (0,)


def test_a_power_of_zero_has_no_slope():
    x = nn.Variable.from_numpy_array([0.5, 1.0, 2.0], need_grad=True)
    x.grad.zero()
    y = F.r_pow_scalar(x, 0.0)
    y.forward()
    y.backward()
    np.testing.assert_array_equal([y.d, x.g], np.zeros((2, 3)))


def test_a_power_of_exponent_zero_has_no_slope_at_zero():
    x = leaf(1, 3)
    x.d = [[0.0, 1.0, 2.0]]
    y = F.pow_scalar(x, 0.0)
    y.forward()
    y.backward()
    np.testing.assert_array_equal([y.d, x.g], [[[1, 1, 1]], [[0, 0, 0]]])


def test_gradients_are_clipped_to_the_maximum_last():
    x, low, high = leaf(1, 3), leaf(1, 3), leaf(1, 3)
    low.d, high.d = 1.0, 0.6
    y = F.clip_grad_by_value(x, low, high)
    y.forward()
    y.backward(nn.NdArray.from_numpy_array(np.array([[-2.0, 0.8, 5.0]])))
    np.testing.assert_allclose(x.g, 0.6)


def test_each_number_but_zero_in_a_mask_takes_one_row():
    y = F.bool_gather(leaf(3, 2), nn.Variable.from_numpy_array([1000.0, 0.0, -2.0]))
    y.forward()
    assert y.shape == (2, 2)


#: A function of x, and its second derivative at x.
SECOND = {
    "prelu": (
        lambda x: F.sum(F.prelu(x, nn.Variable.from_numpy_array([0.25])) ** 2),
        [[-1.0, 2.0, -3.0]],
        [[0.125, 2, 0.125]],
    ),
    "mul_n": (lambda x: F.sum(F.mul_n(x, x)), [[0.0, 0.0, 1.0]], [[2, 2, 2]]),
    "celu": (lambda x: F.sum(F.celu(x, alpha=0.7)), [[500.0, -200.0, 90.0]], [[0, 0, 0]]),
    "mish": (lambda x: F.sum(F.mish(x)), [[500.0, -200.0, 90.0]], [[0, 0, 0]]),
    "atan2": (
        lambda x: F.sum(F.atan2(nn.Variable.from_numpy_array([[1.0, 2.0], [3.0, 4.0]]), x)),
        [[1.0, 2.0]],
        [[0.56, 0.165]],  # 2 c x / (c^2 + x^2)^2, summed over both rows of c
    ),
    "sinc": (lambda x: F.sum(F.sinc(x)), [[0.0, 1e-4, -1e-4]], [[-1 / 3, -1 / 3, -1 / 3]]),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_gradients_are_exact(name):
    function, at, expected = SECOND[name]
    x = nn.Variable.from_numpy_array(np.array(at, np.float32), need_grad=True)
    (slope,) = nn.grad([function(x)], [x])
    (curvature,) = nn.grad([F.sum(slope)], [x])
    curvature.forward()
    np.testing.assert_allclose(curvature.d, expected, atol=1e-4)


@pytest.mark.parametrize("power", [1, 2])
def test_gradients_alone_leave_running_statistics(power):
    """A pass over a graph of nn.grad normalizes, and updates the statistics, only where gradients read the result."""
    x = nn.Variable.from_numpy_array(np.arange(12.0).reshape(4, 3), need_grad=True)
    mean, variance = nn.Variable.from_numpy_array(np.zeros((1, 3))), nn.Variable.from_numpy_array(np.ones((1, 3)))
    beta, gamma = nn.Variable.from_numpy_array(np.zeros((1, 3))), nn.Variable.from_numpy_array(np.ones((1, 3)))
    y = F.batch_normalization(x, beta, gamma, mean, variance, axes=(1,), decay_rate=0.5)
    (slope,) = nn.grad([F.sum(y**power * F.constant(2.0, y.shape))], [x])
    slope.forward()
    np.testing.assert_allclose(mean.d, [[0, 0, 0]] if power == 1 else [[2.25, 2.75, 3.25]])


def _steps(solver):
    w, found = nn.Variable.from_numpy_array([0.5], need_grad=True), []
    solver.set_parameters({"w": w})
    for gradient in (1.0, 0.3, -2.0):
        w.g = gradient
        solver.update()
        found.append(float(w.d[0]))
    return found


def test_the_bounds_of_a_rate_draw_closer_step_by_step():
    """The factor of the momentum is final_lr (1 + 1 / (gamma t)) at most: 0.3, 0.2, 0.1667."""
    expected = [0.47, 0.446, 0.46133]
    np.testing.assert_allclose(_steps(S.AMSBound(0.1, gamma=0.5)), expected, atol=1e-5)
    np.testing.assert_allclose(_steps(S.AdaBound(0.1, gamma=0.5)), expected, atol=1e-5)


def test_lamb_compares_norms_however_small_the_update_is():
    np.testing.assert_allclose(_steps(S.Lamb(0.1, eps=1.0, gamma_u=100.0))[:2], [0.45, 0.405], atol=1e-5)


def test_kinds_of_containers():
    x = leaf(2, 3)
    solver = S.Sgd()
    solver.set_parameters({"x": x})
    with data_iterator_simple(lambda i: (np.ones(2), i), 4, 2) as iterator:
        found = [nn.get_parameters(), solver.get_states(), solver.get_parameters(), x.data.strides, iterator.variables]
    assert [type(value) for value in found] == [dict, dict, dict, tuple, tuple]


def test_the_gradient_of_a_convolution_to_its_data_by_grad():
    x, w, dy = leaf(1, 2, 4, 4), leaf(3, 2, 3, 3), leaf(1, 3, 2, 2)
    dx, dw = nn.grad([F.convolution(x, w)], [x, w], grad_outputs=[dy])
    F.sink(dx, dw).forward()
    expected = F.deconvolution(dy, w)
    expected.forward()
    np.testing.assert_allclose(dx.d, expected.d, rtol=1e-5)
    np.testing.assert_allclose(dw.d[1, 0, 2, 1], np.sum(dy.d[0, 1] * x.d[0, 0, 2:, 1:3]), rtol=1e-5)
