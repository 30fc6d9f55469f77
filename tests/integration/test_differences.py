"""The statements of docs/differences.md about nn_core; single operators are tested by topic in tests/unit/operators."""

import io
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, BackendNotFoundError, FileFormatError, GraphError, NNCoreError, ShapeError
from nn_core.ext_utils import get_extension_context
from nn_core.utils.data_iterator import data_iterator_simple

NAN = float("nan")


def forward_and_gradient(function, *values):
    """The result of `function`, and the gradient of its sum with respect to each of `values`."""
    inputs = [nn.Variable.from_numpy_array(np.array(value, np.float32), need_grad=True) for value in values]
    for variable in inputs:
        variable.grad.zero()
    y = function(*inputs)
    y.forward()
    y.backward()
    return y.d.tolist(), *(variable.g.tolist() for variable in inputs)


# -- contexts and extensions -------------------------------------------------------------------------------------------


def test_the_current_context_cannot_be_assigned_to():
    with pytest.raises(ArgumentError, match=r"hint: set_default_context\(ctx.replace\(device_id='1'\)\)"):
        nn.get_current_context().device_id = "1"
    ctx = nn.Context(["reference"])
    ctx.device_id = "1"
    assert ctx == nn.Context(["reference"], device_id="1")


def test_the_cpu_context_names_device_0():
    assert get_extension_context("cpu").device_id == "0"


def test_the_default_context_ends_in_the_reference():
    assert nn.Context().backend[-1] == "reference:float"


def test_a_context_scope_belongs_to_its_thread():
    found = []
    with nn.context_scope(nn.Context(["reference:double"])):
        thread = threading.Thread(target=lambda: found.append(nn.get_current_context().dtype))
        thread.start()
        thread.join()
    assert found == ["float32"]


def test_unknown_keywords_of_a_context_are_refused():
    with pytest.raises(ArgumentError, match="'reference' takes device_id, type_config, got 'colour'"):
        get_extension_context("reference", colour=1)


def test_a_missing_extension_is_named_beside_those_that_are_installed():
    with pytest.raises(BackendNotFoundError, match=r"must be among those installed \(.*reference.*\), got 'tpu'"):
        get_extension_context("tpu")


# -- variables and graphs ----------------------------------------------------------------------------------------------


def test_new_values_are_zero():
    assert not nn.Variable((3,)).d.any()
    assert not nn.NdArray((3,)).data.any()


def test_reading_a_cleared_value_is_an_error():
    h = F.sin(nn.Variable((2, 2)))
    F.tanh(F.cos(h)).forward(clear_buffer=True)
    with pytest.raises(GraphError, match="must not be read after its memory was reused"):
        _ = h.d


def test_reading_what_was_never_computed_is_an_error():
    x = nn.Variable.from_numpy_array(np.ones((2, 2), np.float32), need_grad=True)
    y = F.exp(x)
    for read in (lambda: y.d, lambda: y.data.data, lambda: y.data.get_data("r"), lambda: y.g):
        with pytest.raises(GraphError, match=r"has not run\n  hint: call forward\(\)"):
            read()
    with pytest.raises(GraphError, match=r"backward: what a gradient reads must .*\n  hint: call forward\(\)"):
        y.backward()
    with pytest.raises(GraphError, match="add2: a Variable beside an NdArray must be computed before the call"):
        F.add2(y, nn.NdArray((2, 2)))
    y.forward()
    np.testing.assert_allclose(F.add2(y, nn.NdArray((2, 2))).data, np.exp(x.d), rtol=1e-6)


def test_comparisons_are_no_truth_values():
    x, n = nn.Variable((2, 2)), nn.NdArray((2, 2))
    assert x
    assert F.exp(x)
    assert n
    assert nn.NdArray(())
    for auto in (False, True):
        with nn.auto_forward(auto):
            for y in (F.greater(x, x), F.equal_scalar(x, 1), F.logical_not(x), F.isnan(x)):
                with pytest.raises(ArgumentError, match=r"bool: a comparison of arrays .* of shape \(2, 2\)\n  hint: use y.d"):
                    bool(y)


@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
def test_an_array_of_one_element_is_a_number(kind):
    one, several = kind.from_numpy_array(np.array([[2.5]])), kind((2, 2))
    assert (float(one), int(one)) == (2.5, 2)
    with pytest.raises(ShapeError, match=r"float: an array must have one element to become a number, got shape \(2, 2\)"):
        float(several)
    with pytest.raises(ShapeError, match="int: an array must have one element"):
        int(several)
    with pytest.raises(GraphError, match="must be computed before it is read"):
        float(F.sum(nn.Variable((2, 2))))


def test_backward_needs_what_inference_cleared():
    y = F.sin(F.tanh(nn.Variable((2, 2), need_grad=True) * 2))
    y.forward(clear_buffer=True)
    with pytest.raises(GraphError, match="clear_no_need_grad=True"):
        y.backward()


def test_a_numpy_array_is_refused_with_a_hint():
    with pytest.raises(ArgumentError, match="hint: wrap it with"):
        F.relu(np.ones(3))


def test_arrays_with_different_numbers_of_axes_are_broadcast():
    assert F.add2(nn.Variable((2, 3)), nn.Variable((3,))).shape == (2, 3)


@pytest.mark.parametrize("error", [ArgumentError, GraphError, BackendNotFoundError])
def test_exceptions_have_one_root(error):
    assert issubclass(error, NNCoreError)


# -- functions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [F.relu, lambda x: F.maximum_scalar(x, 0), lambda x: F.minimum_scalar(x, 0), lambda x: F.max(x, axis=0)],
    ids=["relu", "maximum_scalar", "minimum_scalar", "max"],
)
def test_nan_stays_nan(function):
    y = function(nn.NdArray.from_numpy_array(np.array([1, NAN], np.float32)))
    assert np.isnan(y.data).any()


def test_indices_are_int64():
    x = nn.NdArray.from_numpy_array(np.array([[1.0, 2.0]]))
    assert F.max(x, axis=1, only_index=True).data.dtype == np.int64
    assert F.sort(x, only_index=True).data.dtype == np.int64
    assert F.shape(x).data.dtype == np.int64
    randint = F.randint(0, 10, shape=(2,))
    randint.forward()
    assert randint.d.dtype == np.int64


def test_gradients_of_products_are_exact_at_zeros():
    assert forward_and_gradient(lambda x: F.prod(x, axis=0), [0, 2, 3]) == (0.0, [6, 0, 0])
    assert forward_and_gradient(lambda x: F.cumprod(x, axis=0), [2, 0, 3]) == ([2, 0, 0], [1, 8, 0])


def test_the_gradient_of_a_norm_at_zero_is_zero():
    assert forward_and_gradient(F.norm, [0, 0])[1] == [0, 0]


def test_sigmoid_cross_entropy_takes_probabilities():
    t = nn.NdArray.from_numpy_array(np.array([0.25], np.float32))
    x = nn.NdArray.from_numpy_array(np.array([0.3], np.float32))
    p = 1 / (1 + np.exp(-0.3))
    expected = -(0.25 * np.log(p) + 0.75 * np.log(1 - p))
    np.testing.assert_allclose(F.sigmoid_cross_entropy(x, t).data, [expected], rtol=1e-5)


def test_gradients_of_cross_entropies_are_bounded():
    _, gradient, _ = forward_and_gradient(F.binary_cross_entropy, [0, 1], [1, 0])
    assert 1e6 < np.abs(gradient).max() < 1e9


def test_gradients_of_powers_of_zero_are_zero():
    assert forward_and_gradient(F.pow2, [0, 0], [0, 2])[1:] == ([0, 0], [0, 0])


def test_the_remainder_has_gradients():
    assert forward_and_gradient(F.mod2, [5, 7], [3, 3]) == ([2, 1], [1, 1], [-1, -2])


def test_labels_and_indices_out_of_range_are_refused():
    scores, label = nn.NdArray((1, 3)), nn.NdArray.from_numpy_array(np.array([[7]]))
    with pytest.raises(ArgumentError, match="softmax_cross_entropy: target must"):
        F.softmax_cross_entropy(scores, label)
    with pytest.raises(ArgumentError, match="embed: x0 must"):
        F.embed(label, nn.NdArray((2, 3)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_and_indices_are_whole_numbers(dtype):
    values = np.array([[0], [1.5]], dtype)
    with pytest.raises(ArgumentError, match=r"indices and labels are, must be whole numbers, got 1.5"):
        F.embed(nn.NdArray.from_numpy_array(values), nn.NdArray((2, 3)))
    label = nn.Variable.from_numpy_array(np.floor(values))
    loss = F.softmax_cross_entropy(nn.Variable.from_numpy_array(np.zeros((2, 3))), label)
    loss.forward()
    for wrong in (values, 0.5):  # an array, and a number that is filled in
        label.d = wrong
        with pytest.raises(ArgumentError, match=r"must be whole numbers, got (1|0).5"):
            loss.forward()
    assert label.data.cast(np.int64).tolist() == [[0], [0]]  # a conversion that the program asks for


def test_ranks_that_nnabla_refuses():
    assert F.average_pooling(nn.Variable((2, 3, 8)), (2,)).shape == (2, 3, 4)
    assert F.global_average_pooling(nn.Variable((2, 3, 8))).shape == (2, 3, 1)
    assert F.batch_matmul(nn.Variable((2, 3)), nn.Variable((3, 4))).shape == (2, 4)
    weight = nn.Variable((2, 2, 2, 2))
    assert F.depthwise_convolution(nn.Variable((1, 2, 4, 4, 4)), weight).shape == (1, 2, 3, 3, 3)


def test_batch_normalization_takes_in_a_single_element():
    x = nn.Variable.from_numpy_array(np.array([[1.0]], np.float32))
    PF.batch_normalization(x).forward()
    running = {name: parameter.d.item() for name, parameter in nn.get_parameters(grad_only=False).items()}
    assert running == pytest.approx({"bn/beta": 0, "bn/gamma": 1, "bn/mean": 0.1, "bn/var": 0.9})


# -- parameters and files ----------------------------------------------------------------------------------------------


def test_a_damaged_file_changes_nothing(tmp_path):
    path = tmp_path / "parameters.h5"
    PF.affine(nn.Variable((2, 3)), 4)
    nn.save_parameters(str(path))
    before = {name: parameter.d.copy() for name, parameter in nn.get_parameters().items()}
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(FileFormatError):
        nn.load_parameters(str(path))
    for name, parameter in nn.get_parameters().items():
        np.testing.assert_array_equal(parameter.d, before[name])


@pytest.mark.parametrize("extension", [".h5", ".npz", ".safetensors"])
def test_formats_of_parameters(extension):
    if extension == ".safetensors":
        pytest.importorskip("safetensors")
    file = io.BytesIO()
    nn.save_parameters(file, {"w": nn.Variable((2, 3), need_grad=True)}, extension=extension)
    nn.load_parameters(io.BytesIO(file.getvalue()), extension=extension)
    assert nn.get_parameters()["w"].shape == (2, 3)


def test_a_parameter_scope_belongs_to_its_thread():
    names = []

    def work():
        PF.affine(nn.Variable((2, 3)), 4, name="inner")
        names.extend(nn.get_parameters())

    with nn.parameter_scope("outer"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert names == ["inner/affine/W", "inner/affine/b"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: F.fixed_point_quantize(x, n=2000),
        lambda x: F.pow2_quantize(x, n=2000),
        lambda x: F.pow2_quantize(x, m=5000),
        lambda x: F.pad(x, (1,)),
        lambda x: F.broadcast(x, (2**40, 2**20, 2, 3)),
        lambda x: F.tile(x, 10**30),
        lambda x: F.add_scalar(x, 10**400),
    ],
)
def test_arguments_beyond_all_measure_are_refused(call):
    with pytest.raises((ArgumentError, ShapeError), match=r"must (be|have) (at most|an? (integer|number|even))"):
        call(nn.Variable((2, 3)))


# -- what programs written for NNabla may meet -------------------------------------------------------------------------


def test_dynamic_functions_inside_no_grad_stay_in_the_graph_without_gradients():
    x = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    with nn.no_grad(), nn.auto_forward():
        h = F.exp(x)
    assert not h.need_grad and h.parent.name == "Exp"


def test_what_an_assignment_overwrites_has_no_gradient():
    def overwrite(x):
        y = x * 3
        y[0] = 5
        return y

    assert forward_and_gradient(overwrite, [1, 2]) == ([5, 6], [0, 3])


def test_hooks_see_python_functions_by_their_names():
    class Double(nn.PythonFunction):
        name = "Double"

        def min_outputs(self):
            return 1

        def setup_impl(self, inputs, outputs):
            outputs[0].reset_shape(inputs[0].shape, True)

        def forward_impl(self, inputs, outputs):
            outputs[0].d = 2 * inputs[0].d

    names = []
    Double()(nn.Variable((2,))).forward(function_pre_hook=lambda f: names.append(f.name))
    assert names == ["Double"]


def test_a_new_data_iterator_is_at_its_start():
    with data_iterator_simple(lambda i: (np.float32([i]),), 10, 5) as iterator:
        assert (iterator.epoch, iterator.position) == (0, 0)
        places = [(iterator.next(), iterator.epoch, iterator.position)[1:] for _ in range(3)]
        assert places == [(0, 5), (1, 0), (1, 5)]


# -- further rows ------------------------------------------------------------------------------------------------------


def test_a_function_shows_its_settings_and_str_gives_its_name():
    function = F.leaky_relu(nn.Variable((2,)), alpha=0.25).parent
    assert "alpha=0.25" in repr(function)
    assert str(function) == "LeakyReLU"
    assert function.info.args["alpha"] == 0.25


def test_the_gradients_of_functions_without_one_stop_quietly():
    x = nn.Variable.from_numpy_array(np.float32([-1, 2]), need_grad=True)
    mask = F.greater_scalar(x, 0)
    assert not mask.need_grad and mask.parent.need_grad
    y = mask * x
    x.grad.zero()
    y.forward()
    y.backward()
    assert x.g.tolist() == [0, 1]


def test_gradients_as_graphs_are_those_of_backward_for_functions_that_nnabla_registers_none_for():
    x = nn.Variable.from_numpy_array(np.float32([0.5, 1.5]), need_grad=True)
    (first,) = nn.grad([F.erf(x) if hasattr(F, "erf") else F.tanh(x)], [x])
    (second,) = nn.grad([first], [x])
    second.forward()
    assert np.isfinite(second.d).all()


def test_gradients_of_sort_go_to_the_elements_that_were_moved():
    _, gradient = forward_and_gradient(lambda x: F.sort(x) * nn.Variable.from_numpy_array(np.float32([1, 2, 3])), [3, 1, 2])
    assert gradient == [3, 1, 2]


def test_the_gradient_of_spectral_norm_in_tests_is_finite():
    w = nn.Variable.from_numpy_array(np.float32([[1, 2], [3, 4]]), need_grad=True)
    u = nn.Variable.from_numpy_array(np.float32([1, 1]))
    y = F.spectral_norm(w, u, test=True)
    w.grad.zero()
    y.forward()
    y.backward()
    assert np.isfinite(w.g).all() and w.g.any()


def test_statistics_need_a_gradient_as_their_inputs_do():
    for need_grad in (True, False):
        x = nn.Variable((4, 3), need_grad=need_grad)
        _, mean, variance = F.layer_normalization(x, None, None, output_stat=True)
        assert mean.need_grad == variance.need_grad == need_grad


def test_affine_grid_over_an_axis_of_length_1_is_zero():
    theta = nn.NdArray.from_numpy_array(np.float32([[[1, 0, 0], [0, 1, 0]]]))
    assert not np.isnan(F.affine_grid(theta, (1, 3), align_corners=True).data).any()


def test_quantization_has_gradients_of_scale_and_zero_point():
    _, dx, dscale, dzero = forward_and_gradient(F.dequantize_linear, [2, 4], [0.5], [1])
    assert (dx, dscale, dzero) == ([0.5, 0.5], [4], [-1])


def test_a_new_file_takes_the_place_when_it_is_complete(tmp_path):
    path = str(tmp_path / "parameters.h5")
    nn.save_parameters(path, {"w": nn.Variable.from_numpy_array(np.ones(2), need_grad=True)})
    with pytest.raises(ArgumentError):
        nn.save_parameters(path, {"w": nn.Variable.from_numpy_array(np.zeros(2), need_grad=True), "v": object()})
    nn.load_parameters(path)
    assert nn.get_parameters(grad_only=False)["w"].d.tolist() == [1, 1]


def test_one_gradient_array_for_an_intermediate_variable_and_another_is_refused():
    x = nn.Variable.from_numpy_array(np.ones(2, np.float32), need_grad=True)
    h = F.exp(x)
    y = F.sum(h * x)
    h.grad = x.grad
    y.forward()
    with pytest.raises(GraphError, match="grad"):
        y.backward()


def test_parameters_that_were_not_connected_are_passed_over_and_float_assignments_stay():
    x = nn.Variable.from_numpy_array(np.array([1, 2, 3]))
    x.d = 0.5
    assert x.d.dtype == np.float32 and x.d.tolist() == [0.5] * 3


def test_backward_without_forward_in_a_new_shape_is_refused():
    x = nn.Variable.from_numpy_array(np.ones((2, 3), np.float32), need_grad=True)
    y = F.sum(F.exp(x))
    y.forward()
    x.reset_shape((4, 3), True)
    with pytest.raises(GraphError, match="backward: the inputs of exp must have the shapes of the forward pass"):
        y.backward()


def test_what_gradients_depend_on_is_what_their_rules_read():
    x = nn.Variable((2,), need_grad=True)
    tanh, sine = F.tanh(x).parent, F.sin(x).parent
    assert (tanh.grad_depends_input_data(0, 0), tanh.grad_depends_output_data(0, 0)) == (False, True)
    assert (sine.grad_depends_input_data(0, 0), sine.grad_depends_output_data(0, 0)) == (True, False)


def test_recomputed_random_numbers_are_the_same():
    x = nn.Variable.from_numpy_array(np.ones(50, np.float32), need_grad=True)
    with nn.recompute():
        h = F.dropout(x, 0.5)
    y = F.sum(h**2)
    y.forward()
    x.grad.zero()
    y.backward()
    assert float(y) * 2 == pytest.approx(x.g.sum())  # the slope of h**2 is 2 h, and h is 0 or 2


def test_only_views_work_in_place():
    x = nn.Variable((2, 3))
    assert F.reshape(x, (3, 2)).parent.inplace_data(0) == 1
    assert F.relu(x, inplace=True).parent.inplace_data(0) == 0


def test_frozen_statistics_have_gradients():
    x, beta, gamma, mean, variance = [
        nn.Variable.from_numpy_array(np.full(shape, 2, np.float32), need_grad=True) for shape in ((4, 3), *[(1, 3)] * 4)
    ]
    y = F.batch_normalization(x, beta, gamma, mean, variance, batch_stat=False)
    for variable in (mean, variance):
        variable.grad.zero()
    y.forward()
    y.backward()
    np.testing.assert_allclose(mean.g, -4 * 2 / np.sqrt(2), rtol=1e-4)
    np.testing.assert_allclose(variance.g, 0, atol=1e-6)


def test_gradients_of_what_is_placed_and_repeated():
    _, _, gradient = forward_and_gradient(F.broadcast_to, np.zeros((2, 3)), np.ones((3,)))
    assert gradient == [2, 2, 2]
    places = nn.Variable.from_numpy_array(np.array([[1, 0]]))
    _, gradient = forward_and_gradient(lambda x: F.scatter_nd(x, places, shape=(3,)) * 2, [5, 6])
    assert gradient == [2, 2]


def test_packed_sequences_are_padded_with_the_value():
    packed = nn.NdArray.from_numpy_array(np.float32([[1], [2], [3]]))
    sizes = nn.NdArray.from_numpy_array(np.array([2, 1]))
    padded, _ = F.pad_packed_sequence(packed, sizes, batch_first=True, padding_value=-1.0)
    assert padded.data[:, :, 0].tolist() == [[1, 3], [2, -1]]
    with pytest.raises((ArgumentError, ShapeError), match="total_length"):
        F.pad_packed_sequence(packed, sizes, total_length=1)


def test_backward_leaves_the_state_of_spectral_norm_as_forward_has_left_it():
    w = nn.Variable.from_numpy_array(np.arange(6.0).reshape(2, 3), need_grad=True)
    u = nn.Variable.from_numpy_array([0.3, 0.7])
    y = F.sum(F.spectral_norm(w, u) + F.spectral_norm(w, u) * 2)
    y.forward()
    left = u.d.copy()
    y.backward()
    np.testing.assert_array_equal(u.d, left)
