"""Comparisons of arrays, and their messages."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.testing import assert_allclose
from nn_core.testing.assertions import assert_identical, comparisons, require


def test_close_arrays_pass():
    assert_allclose([1.0, 2.0], [1.0, 2.000001])
    assert_allclose(nn.NdArray.from_numpy_array(np.ones(3)), 1.0)
    assert_allclose(np.zeros((0, 3)), np.zeros((0, 3)))
    assert_allclose([np.nan, np.inf], [np.nan, np.inf])


def test_the_message_names_the_largest_difference():
    with pytest.raises(AssertionError, match=r"here: 2 of 3 elements differ by more than 1e-06 \+ 1e-05 .* most at \(2,\)"):
        assert_allclose([1.0, 2.1, 5.0], [1.0, 2.0, 3.0], err_msg="here")


def test_small_arrays_are_shown_if_asked_for():
    with pytest.raises(AssertionError, match=r"actual: \[1.0\]\ndesired: \[2.0\]"):
        assert_allclose([1.0], [2.0])
    with pytest.raises(AssertionError) as error:
        assert_allclose([1.0], [2.0], verbose=False)
    assert "actual" not in str(error.value)


def test_shapes_must_be_equal():
    with pytest.raises(AssertionError, match=r"shapes must be equal, got \(1, 2\) for \(2,\)"):
        assert_allclose([[1.0, 2.0]], [1.0, 2.0])


@pytest.mark.parametrize("actual", [[np.nan], [np.inf]])
def test_what_is_not_finite_must_agree(actual):
    with pytest.raises(AssertionError, match="1 of 1 elements differ"):
        assert_allclose(actual, [1.0])
    with pytest.raises(AssertionError, match="1 of 1 elements differ"):
        assert_allclose(actual, [np.nan], equal_nan=False)


def test_identical_is_bit_for_bit():
    assert_identical(np.array([1.0, np.nan]), np.array([1.0, np.nan]), "same")
    with pytest.raises(AssertionError, match=r"two: 1 of 2 elements differ, the first at \(1,\)"):
        assert_identical(np.array([1.0, 2.0]), np.array([1.0, 2.0 + 1e-15]), "two")
    with pytest.raises(AssertionError, match="dtype: float32"):
        assert_identical(np.ones(1, np.float32), np.ones(1), "dtype")


def test_comparisons_are_counted():
    before = comparisons()
    require(True, "never seen")
    assert_allclose(1.0, 1.0)
    assert comparisons() == before + 2


def test_require_has_a_message():
    with pytest.raises(AssertionError, match="it must be so"):
        require(False, "it must be so")
