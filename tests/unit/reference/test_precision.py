"""The precision in which reference kernels compute."""

import numpy as np
import pytest

from nn_core.operators.reference.precision import widen


@pytest.mark.parametrize(("dtype", "wide"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64")])
def test_only_half_precision_is_widened(dtype: str, wide: str) -> None:
    x = np.array([1.5, -2.0], dtype)
    assert widen(np, x).dtype == wide
    np.testing.assert_array_equal(widen(np, x), x)
    assert (widen(np, x) is x) == (dtype == wide)
