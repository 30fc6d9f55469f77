"""Initializers: distributions, generators, dtype, and NNabla's numbers for its seeds."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.initializer import (
    BaseInitializer,
    ConstantInitializer,
    NormalInitializer,
    OrthogonalInitializer,
    RangeInitializer,
    UniformInitializer,
    UniformIntInitializer,
    WeightNormalizationScaleInitializer,
    calc_normal_std_glorot,
    calc_normal_std_he_backward,
    calc_normal_std_he_forward,
    calc_uniform_lim_glorot,
)

RANDOM = [NormalInitializer, UniformInitializer, UniformIntInitializer, OrthogonalInitializer]


@pytest.mark.parametrize("initializer", RANDOM)
def test_seed_repeats_values(initializer):
    nn.seed(3)
    first = initializer()((4, 5))
    nn.seed(3)
    assert np.array_equal(first, initializer()((4, 5)))


@pytest.mark.parametrize("initializer", RANDOM)
@pytest.mark.parametrize("generator", [np.random.RandomState, np.random.default_rng])
def test_generator_of_the_caller(initializer, generator):
    first = initializer(rng=generator(1))((4, 5))
    np.random.seed(0)
    nn.seed(0)
    assert np.array_equal(first, initializer(rng=generator(1))((4, 5)))


def test_numbers_of_nnabla():
    nn.seed(3)
    np.testing.assert_allclose(NormalInitializer(0.5)((2, 3))[0], [0.8943142, 0.21825492, 0.04824873], rtol=1e-6)
    np.testing.assert_allclose(UniformInitializer((-1, 2))((2, 3))[0], [-0.8455984, 0.32242954, -0.91037136], rtol=1e-6)
    assert UniformInitializer()((2, 3)).shape == (2, 3)
    assert UniformIntInitializer((0, 10))((2, 5)).tolist() == [[8, 7, 8, 1, 0], [5, 4, 1, 5, 4]]
    values = OrthogonalInitializer(2.0)((3, 2))
    np.testing.assert_allclose(np.abs(values[0]), [0.5142829, 1.0049675], rtol=1e-5)


def test_distributions():
    normal, uniform = NormalInitializer(0.5)((200, 200)), UniformInitializer((1, 3))((200, 200))
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 0.5) < 0.01
    assert uniform.min() >= 1
    assert uniform.max() <= 3
    assert abs(uniform.mean() - 2) < 0.02
    integers = UniformIntInitializer((2, 5))((1000,))
    assert set(integers.tolist()) == {2, 3, 4}


def test_dtypes():
    for initializer in (NormalInitializer(), UniformInitializer(), ConstantInitializer(2), OrthogonalInitializer()):
        assert initializer((2, 3)).dtype == np.float32
    assert UniformIntInitializer()((2,)).dtype == np.int64


def test_constant_and_range():
    assert ConstantInitializer(2.5)((2, 2)).tolist() == [[2.5, 2.5], [2.5, 2.5]]
    assert RangeInitializer(1, 2)((2, 3)).tolist() == [[1, 3, 5], [1, 3, 5]]
    assert RangeInitializer(1, 2)((2, 3)).dtype == np.int64
    assert RangeInitializer(0.0, 0.5)((3,)).tolist() == [0.0, 0.5, 1.0]
    assert RangeInitializer(4)(()).tolist() == 4


@pytest.mark.parametrize("shape", [(3, 2), (2, 3), (2, 3, 4), (4,), (30, 2, 3)])
def test_orthogonal(shape):
    matrix = OrthogonalInitializer(2.0)(shape).reshape(shape[0], -1)
    product = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_orthogonal_needs_an_axis():
    with pytest.raises(ShapeError, match=r"OrthogonalInitializer: shape must have at least one axis, got \(\)"):
        OrthogonalInitializer()(())


@pytest.mark.parametrize("wrap", [nn.Variable.from_numpy_array, nn.NdArray.from_numpy_array])
def test_weight_normalization_scale(rng, wrap):
    w = rng.standard_normal((3, 4, 2))
    scale = WeightNormalizationScaleInitializer(wrap(w), dim=1)((4,))
    np.testing.assert_allclose(scale, np.sqrt((w**2).sum((0, 2))), rtol=1e-6)
    with pytest.raises(ArgumentError, match=r"dim must be an axis of \(3, 4, 2\), got 3"):
        WeightNormalizationScaleInitializer(wrap(w), dim=3)((4,))


def test_standard_deviations_and_limits():
    assert calc_normal_std_he_forward(3, 5, (2, 3)) == pytest.approx(np.sqrt(2 / (3 * 6)))
    assert calc_normal_std_he_backward(3, 5, (2, 3)) == pytest.approx(np.sqrt(2 / (5 * 6)))
    assert calc_normal_std_glorot(3, 5, (2, 3)) == pytest.approx(np.sqrt(2 / (8 * 6)))
    assert calc_uniform_lim_glorot(3, 5, (2, 3)) == pytest.approx((-np.sqrt(6 / 48), np.sqrt(6 / 48)))
    assert calc_uniform_lim_glorot(3, 5) == pytest.approx((-np.sqrt(6 / 8), np.sqrt(6 / 8)))


def test_reprs():
    given = [NormalInitializer(2.0), UniformInitializer((1, 2)), UniformIntInitializer(), ConstantInitializer(3)]
    given += [RangeInitializer(), OrthogonalInitializer(), WeightNormalizationScaleInitializer(nn.Variable((2,)))]
    assert [repr(initializer) for initializer in given] == [
        "NormalInitializer(2.0)",
        "UniformInitializer((1, 2))",
        "UniformIntInitializer((0, 10))",
        "ConstantInitializer(3)",
        "RangeInitializer(0, 1)",
        "OrthogonalInitializer(1.0)",
        "WeightNormalizationScaleInitializer(dim=0, eps=1e-12)",
    ]


def test_errors():
    with pytest.raises(NotImplementedError, match="BaseInitializer: an initializer must define __call__"):
        BaseInitializer()((2,))
    with pytest.raises(ArgumentError, match=r"UniformInitializer: lim must hold two numbers, lower and upper end, got \(1,\)"):
        UniformInitializer((1,))
