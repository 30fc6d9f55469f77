"""The tolerance table."""

import numpy as np

from nn_core.testing.tolerance import terms, tolerance


def test_terms_of_sums_and_products():
    assert terms([(3, 100)], (3,)) == 100
    assert terms([(7, 50), (50, 9)], (7, 9)) == 50
    assert terms([(2, 3)], (2, 3)) == 1
    assert terms([], (4,)) == 1
    assert terms([(0, 3)], (0,)) == 1


def test_the_tolerance_grows_with_the_number_of_terms_and_the_width_of_the_dtype():
    one = np.ones(1)
    assert tolerance("float32", 1, one) < tolerance("float32", 100, one) < tolerance("float32", 10_000, one)
    assert tolerance("float64", 1, one) < tolerance("float32", 1, one) < tolerance("float16", 1, one)


def test_the_absolute_tolerance_follows_the_largest_value_of_sums():
    _, absolute = tolerance("float32", 1, np.array([100.0, np.inf]))
    assert absolute == 100 * tolerance("float32", 1, np.ones(1))[1]
    assert tolerance("float32", 1, np.array([100.0]), pointwise=True) == tolerance("float32", 1, np.ones(1))
