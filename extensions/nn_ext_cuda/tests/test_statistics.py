"""Sums, losses and statistics while 16 bits are computed in, on an emulated device."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF


@pytest.fixture(params=["half", "bfloat16"])
def short(cuda, request):
    """The CUDA backend in a dtype of 16 bits."""
    from nn_ext_cuda import plugin

    with nn.context_scope(nn.Context([f"cuda:{request.param}"], plugin.ARRAY_CLASSES[0])):
        yield request.param


def computed(build, *arrays):
    """The value of a function and the gradients of its inputs, by this backend and by the reference in double precision."""
    found = []
    for context in (nn.get_current_context(), nn.Context(["reference:double"])):
        with nn.context_scope(context):
            inputs = [nn.Variable.from_numpy_array(array, need_grad=array.dtype.kind == "f") for array in arrays]
            y = build(*inputs)
            y.forward()
            for variable in inputs:
                variable.grad.zero()
            y.backward()
            found.append([y.d.copy(), *(variable.g.copy() for variable in inputs if variable.need_grad)])
    return found


def test_sums_beyond_the_range_of_half_precision_are_finite(short):
    (own, gradient), (expected, _) = computed(F.sum, np.full((100, 20), 1000, "float32"))
    assert own.dtype == np.float32
    assert own == expected == 2e6
    assert (gradient == 1).all()


@pytest.mark.parametrize("n_classes", [3, 40])
def test_losses_are_more_precise_than_16_bits(short, n_classes):
    scores = (np.random.default_rng(0).integers(-8, 8, (64, n_classes)) / 4).astype("float32")  # exact in 16 bits
    labels = np.arange(64).reshape(64, 1) % n_classes
    own, expected = computed(F.softmax_cross_entropy, scores, labels)
    np.testing.assert_allclose(own[0], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own[1], expected[1], rtol=0, atol=4e-3)


def test_running_statistics_follow_small_changes(short):
    """In 16 bits a step of a thousandth of their value would be lost."""
    rng = np.random.default_rng(0)
    x = nn.Variable((16, 3, 4, 4))
    y = PF.batch_normalization(x, decay_rate=0.999)
    mean = nn.get_parameters(grad_only=False)["bn/mean"]
    mean.d = 100
    expected = np.full((1, 3, 1, 1), 100.0)
    for _ in range(20):
        x.d = 90 + rng.integers(-8, 8, x.shape) / 4
        y.forward()
        expected = 0.999 * expected + 0.001 * x.d.astype("float64").mean((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(mean.d, expected, rtol=1e-5)


def test_gradients_of_normalizations_use_the_statistics_that_were_kept(short):
    x = np.random.default_rng(0).normal(3, 2, (8, 4, 5, 5)).astype("float32")
    for function in (F.batch_normalization, F.layer_normalization, F.instance_normalization):
        statistics = [np.zeros((1, 4, 1, 1), "float32")] * 2 if function is F.batch_normalization else []

        def build(x, *parameters, function=function, statistics=statistics):
            given = [*parameters, *map(nn.Variable.from_numpy_array, statistics)]
            return F.sum(F.sin(function(x, *given) if given else function(x, None, None)))

        parameters = [np.ones((1, 4, 1, 1), "float32")] * 2 if statistics else []
        own, expected = computed(build, x, *parameters)
        np.testing.assert_allclose(own[1], expected[1], rtol=0, atol=0.03)


@pytest.mark.parametrize("space", [(), (1,), (3, 5)])
@pytest.mark.parametrize("relu", [False, True])
def test_batch_normalization_is_exactly_beta_where_x_is_the_mean(cuda, space, relu):
    """A sign or a comparison after it shows every rounding."""
    from nn_ext_cuda import plugin

    rng = np.random.default_rng(0)
    ones = (1,) * len(space)
    beta, gamma, mean = (rng.standard_normal((1, 33, *ones)).astype(np.float32) for _ in range(3))
    variance = rng.uniform(0.01, 3, mean.shape).astype(np.float32)
    x = np.ascontiguousarray(np.broadcast_to(mean, (4, 33, *space)))
    with nn.context_scope(nn.Context(["cuda:float"], plugin.ARRAY_CLASSES[0])):
        given = [nn.Variable.from_numpy_array(array) for array in (x, beta, gamma, mean, variance)]
        normalize = F.fused_batch_normalization if relu else F.batch_normalization
        y = normalize(*given, batch_stat=False)
        y.forward()
        expected = np.maximum(beta, 0) if relu else beta
        np.testing.assert_array_equal(y.d, np.broadcast_to(expected, y.shape))


@pytest.mark.parametrize("n", [1, 7, 100, 513])
@pytest.mark.parametrize(
    "normalize",
    [
        lambda x: F.batch_normalization(F.transpose(x, (1, 0)), None, None, None, None),
        lambda x: F.layer_normalization(x, None, None),
        lambda x: F.instance_normalization(F.reshape(x, (2, 3, -1)), None, None),
        lambda x: F.group_normalization(F.reshape(x, (1, 6, -1)), None, None, 6),
    ],
    ids=["batch", "layer", "instance", "group"],
)
def test_equal_numbers_become_zeros(cuda, normalize, n):
    from nn_ext_cuda import plugin

    x = np.repeat(np.random.default_rng(1).standard_normal((6, 1)), n, axis=1).astype(np.float32)
    with nn.context_scope(nn.Context(["cuda:float"], plugin.ARRAY_CLASSES[0])):
        y = normalize(nn.Variable.from_numpy_array(x))
        y.forward()
        assert not y.d.any()
