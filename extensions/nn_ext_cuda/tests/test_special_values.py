"""NaN in kernels of this backend, as docs/special_values.md promises; `tools.lanes.specials` looks for more."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F


def leaf(values):
    return nn.Variable.from_numpy_array(np.array(values, np.float32), need_grad=True)


def gradient(y, x, dy):
    """Return the gradient of x for one of y."""
    x.grad.zero()
    y.forward()
    y.backward(np.array(dy, np.float32))
    return x.g


def test_the_slope_of_elu_is_nan_where_its_input_is(cuda):
    x = leaf([np.nan, -1, 1])
    for function in (F.elu, F.selu):
        assert np.isnan(gradient(function(x), x, [1, 1, 1])).tolist() == [True, False, False]


@pytest.mark.slow  # it compiles several kernels
def test_fixed_weights_get_no_gradient_though_the_input_is_nan(cuda):
    x, weight, indicator = leaf([[np.nan, 1]]), leaf([[0.5, 1], [0.5, 1]]), leaf([[1, 0], [1, 0]])
    y = F.inq_affine(x, weight, indicator, base_axis=1, num_bits=4, inq_iterations=())
    dw = gradient(y, weight, [[1, 1]])
    assert (dw[:, 0] == 0).all()
    assert np.isnan(dw[:, 1]).tolist() == [True, False]


def test_the_factor_of_a_matrix_with_nan_is_nan(cuda):
    y = F.batch_cholesky(leaf([[[4, np.nan], [np.nan, 4]], [[4, 0], [0, 4]]]))
    y.forward()
    assert np.isnan(y.d[0, 1, 1])
    assert y.d[1].tolist() == [[2, 0], [0, 2]]
