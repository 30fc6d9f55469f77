"""Inputs that a PythonFunction writes to, such as statistics in a parameter, keep what was written."""

import numpy as np
import pytest

import nn_core as nn


def put_number(values, number):
    values.d = number


def put_float64(values, number):
    values.d = np.full(values.shape, number)


def put_float32(values, number):
    values.d = np.full(values.shape, number, np.float32)


def put_elements(values, number):
    values.d[...] = number


def fill(values, number):
    values.data.fill(number)


class Noting(nn.PythonFunction):
    """Passes x on, and writes its largest value to the second input."""

    def __init__(self, put):
        super().__init__()
        self.put = put

    def forward_impl(self, inputs, outputs):
        outputs[0].d = inputs[0].d
        self.put(inputs[1], inputs[0].d.max())

    def backward_impl(self, inputs, outputs, propagate_down, accum):
        pass


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("put", [put_number, put_float64, put_float32, put_elements, fill])
def test_what_is_written_to_an_input_stays(put, dtype, dynamic):
    x, largest = nn.Variable((2, 2)), nn.Variable.from_numpy_array(np.zeros((1, 1), dtype))
    x.d = [[1, 2], [3, 4]]
    with nn.auto_forward(dynamic):
        y = Noting(put)(x, largest)
        if not dynamic:
            y.forward()
    assert (largest.d.item(), largest.data.dtype) == (4.0, dtype)
    x.d = 5
    y.forward()
    assert largest.d.item() == 5.0
    np.testing.assert_array_equal(y.d, 5)
