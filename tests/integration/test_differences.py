"""What docs/differences.md says of nn_core; single operators are tested by topic in tests/unit/operators."""

import io
import threading

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, BackendNotFoundError, FileFormatError, GraphError, NNCoreError
from nn_core.ext_utils import get_extension_context

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


def test_contexts_are_immutable():
    ctx = nn.Context(["reference"])
    with pytest.raises(ArgumentError, match=r"hint: ctx = ctx.replace\(device_id='1'\)"):
        ctx.device_id = "1"
    assert ctx.replace(device_id="1").device_id == "1"


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


def test_a_missing_extension_is_named_with_the_line_for_pip():
    with pytest.raises(BackendNotFoundError, match="pip install nn-ext-tpu"):
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


def test_a_negative_slope_of_leaky_relu_is_refused():
    with pytest.raises(ArgumentError, match=r"leaky_relu: alpha must be at least 0, got -0\.1"):
        F.leaky_relu(nn.Variable((2,)), alpha=-0.1)


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
