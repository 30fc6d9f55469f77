"""Layers with quantized weights on the emulated device, beside the reference: what they give, rewrite and pass back."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F

WIDE = [0.0, -0.0, 0.75, -0.74, 1.5, -3.0, 1e-3, 1e-20, 2.0**-7, 0.1, -0.04, 6.0]


def values(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def shapes_of(name):
    """Of x, the weight and the bias."""
    return [(5, 4), (4, 3), (3,)] if name.endswith("affine") else [(2, 3, 5, 5), (4, 3, 2, 2), (4,)]


def computed(context, name, weight, written, **args):
    """The result, what is rewritten, and the gradients, after two passes of a graph."""
    shape, _, bias = shapes_of(name)
    with nn.context_scope(context):
        given = values(*shape), weight, values(*bias)
        x, w, b = (nn.Variable.from_numpy_array(array.copy(), need_grad=True) for array in given)
        others = [nn.Variable.from_numpy_array(array.copy()) for array in written]
        y = getattr(F, name)(x, w, *others, b, **args)
        for _ in range(4):
            y.forward()
        for leaf in (x, w, b):
            leaf.grad.zero()
        y.backward(values(*y.shape, seed=3))
        return [array.copy() for array in (y.d, w.d, *[other.d for other in others], x.g, w.g, b.g)]


def compare(name, weight, written, dtype, **args):
    """Compute on both backends, and compare."""
    context = nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)
    found = computed(context, name, weight, written, **args)
    expected = computed(nn.Context(["reference:float"]), name, weight, written, **args)
    tolerance = 1e-5 if dtype == "float" else 1e-2
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1))
    return found


@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("name", ["binary_connect_affine", "binary_connect_convolution"])
def test_signs_are_computed_with_and_written(cuda, name, dtype):
    _, shape, _ = shapes_of(name)
    weight = values(*shape)
    weight.flat[1], weight.flat[2] = 0, -0.0
    found = compare(name, weight, [values(*shape)], dtype, quantize_zero_to=0.5)
    assert set(np.unique(found[2])) == {-1, 0.5, 1}
    np.testing.assert_allclose(found[1], weight, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("name", ["binary_weight_affine", "binary_weight_convolution"])
def test_signs_are_scaled_by_the_mean_magnitude_of_each_output(cuda, name, dtype):
    _, shape, bias = shapes_of(name)
    weight = values(*shape)
    found = compare(name, weight, [values(*shape), np.zeros(bias, "float32")], dtype)
    axes = 0 if name.endswith("affine") else (1, 2, 3)
    np.testing.assert_allclose(found[3], np.abs(weight).mean(axis=axes), rtol=2e-3)


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("num_bits", [2, 4, 64])
@pytest.mark.parametrize("name", ["inq_affine", "inq_convolution"])
def test_fixed_weights_become_powers_of_two_in_place_and_get_no_gradient(cuda, monkeypatch, name, num_bits, dtype, kind):
    from nn_ext_cuda.kernels.quantized_layers import FixedLayer

    made = []
    forward = FixedLayer.forward
    monkeypatch.setattr(FixedLayer, "forward", lambda layer, call: made.append(call) or forward(layer, call))
    _, shape, _ = shapes_of(name)
    weight = np.resize(np.array(WIDE, "float32"), shape)
    indicator = np.resize(np.array([1, 1, 1, 0, 1, -3, 1, 1], kind), shape)
    found = compare(name, weight, [indicator], dtype, num_bits=num_bits)
    fixed = indicator > 0
    levels = found[1][fixed & (found[1] != 0)]
    mantissas, _ = np.frexp(np.abs(levels))
    assert set(mantissas) == {0.5} or num_bits == 2
    assert not found[4][fixed].any()
    assert found[4][~fixed].all()
    np.testing.assert_array_equal(found[2], fixed)
    assert made and made[0].inputs[2].dtype == kind


def test_weights_that_are_not_finite_stay_so(cuda):
    weight = np.array([[np.inf, 1.0], [2.0, -3.0]], "float32")
    results = []
    for context in (nn.get_current_context(), nn.Context(["reference:float"])):
        with nn.context_scope(context), np.errstate(all="ignore"):
            w, ones = nn.Variable.from_numpy_array(weight), nn.Variable.from_numpy_array(np.ones((2, 2), "float32"))
            y = F.inq_affine(nn.Variable.from_numpy_array(np.ones((3, 2), "float32")), w, ones)
            y.forward()
            results.append([y.d.copy(), w.d.copy()])
            w.d = [[np.nan, 1.0], [2.0, 3.0]]
            y.forward()
            results[-1].append(w.d.copy())
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["float32", "int64"])
@pytest.mark.parametrize("dtype", ["float", "half"])
@pytest.mark.parametrize("selection", ["largest_abs", "random"])
@pytest.mark.parametrize("name", ["inq_affine", "inq_convolution"])
def test_half_of_the_weights_are_fixed_at_a_time_and_all_in_the_end(cuda, name, selection, dtype, kind):
    """Pass by pass, the same weights as on the reference."""
    shape, weights, _ = shapes_of(name)
    context = nn.Context([f"cuda:{dtype}"], nn.get_current_context().array_class)
    found = []
    for where in (context, nn.Context(["reference:float"])):
        with nn.context_scope(where):
            x, w = nn.Variable.from_numpy_array(values(*shape)), nn.Variable.from_numpy_array(values(*weights, seed=2))
            indicator = nn.Variable.from_numpy_array(np.zeros(weights, kind))
            indicator.d.flat[3] = 1
            y = getattr(F, name)(x, w, indicator, inq_iterations=(1, 2, 5), selection_algorithm=selection, seed=7)
            found.append([])
            for _ in range(7):
                y.forward()
                found[-1].append((indicator.d.copy(), w.d.copy(), y.d.copy()))
    assert not nn.fallback_report()
    n_fixed = [int((indicator > 0).sum()) for indicator, _, _ in found[0]]
    n = int(np.prod(weights))
    one = 1 + (n - 1) // 2
    assert n_fixed == [1, one, one + (n - one) // 2, one + (n - one) // 2, one + (n - one) // 2, n, n]
    assert found[0][0][0].min() == -1
    for ours, theirs in zip(*found, strict=True):
        for array, expected in zip(ours, theirs, strict=True):
            tolerance = 1e-5 if dtype == "float" else 1e-2
            np.testing.assert_allclose(array, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1))


def test_of_equal_magnitudes_the_first_are_fixed_and_nan_is_not(cuda):
    weight = np.array([[1.0, -1.0, 1.0, np.nan, 0.5, -1.0, 1.0, 0.25]], "float32")
    w, indicator = nn.Variable.from_numpy_array(weight), nn.Variable.from_numpy_array(np.zeros((1, 8), "float32"))
    F.inq_affine(nn.Variable.from_numpy_array(np.ones((1, 1), "float32")), w, indicator, inq_iterations=(0, 9)).forward()
    assert indicator.d.tolist() == [[1, 1, 1, -1, -1, 1, -1, -1]]


def test_magnitudes_of_double_precision_are_left_to_the_reference(cuda):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    arrays = [values(5, 4).astype("float64"), values(4, 3).astype("float64"), np.zeros((4, 3)), None]
    assert KERNELS["INQAffine"].refuse(call_of("INQAffine", arrays, "float64")) is None
    refusal = KERNELS["INQAffine"].refuse(call_of("INQAffine", arrays, "float64", inq_iterations=(2,)))
    assert "takes no inq_iterations in float64" in refusal.reason


@pytest.mark.parametrize("name", ["binary_connect_affine", "binary_weight_convolution", "inq_convolution"])
def test_they_are_recorded_in_graphs(cuda, name):
    import emulated

    shape, weight, bias = shapes_of(name)
    others = [weight] if "weight" not in name else [weight, bias]
    inputs = [nn.Variable.from_numpy_array(values(*each)) for each in (shape, weight, *others)]
    y = getattr(F, name)(*inputs, **({"inq_iterations": (1, 2)} if name.startswith("inq") else {}))
    emulated.check_recorded(y)


@pytest.mark.parametrize("name", ["BinaryWeightAffine", "BinaryWeightConvolution"])
def test_weights_without_elements_are_left_to_the_reference(cuda, name):
    from emulated import call_of

    from nn_ext_cuda.kernels import KERNELS

    affine = name.endswith("Affine")
    shapes = [(5, 0), (0, 3), (0, 3), (3,)] if affine else [(2, 0, 5, 5), (4, 0, 2, 2), (4, 0, 2, 2), (4,)]
    arrays = [*[np.zeros(shape, "float32") for shape in shapes], None]
    assert "at least one element" in KERNELS[name].refuse(call_of(name, arrays)).reason
