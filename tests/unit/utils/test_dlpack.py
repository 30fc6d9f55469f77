"""Capsules of DLPack share memory."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.utils.dlpack import from_dlpack, to_dlpack


def test_producer_and_consumer_share_memory():
    array = nn.NdArray.from_numpy_array(np.arange(6, dtype=np.float32).reshape(2, 3))
    taken = from_dlpack(to_dlpack(array))
    taken.data[0, 0] = 7
    assert array.data[0, 0] == 7


def test_objects_of_other_libraries_are_taken():
    values = np.arange(3.0)
    assert np.shares_memory(from_dlpack(values).data, values)


def test_a_variable_gives_its_data_in_another_dtype():
    capsule = to_dlpack(nn.Variable.from_numpy_array([1.7, 2.2]), dtype=np.int32)
    assert from_dlpack(capsule).data.tolist() == [1, 2]


def test_an_array_takes_a_copy():
    target = nn.NdArray((3,))
    assert from_dlpack(np.arange(3.0), arr=target) is target
    assert target.data.tolist() == [0, 1, 2]


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="must be an NdArray or a Variable, got list"):
        to_dlpack([1.0])
    with pytest.raises(ShapeError, match="must have the shape \\(3,\\), got \\(2,\\)"):
        from_dlpack(np.arange(3.0), arr=nn.NdArray((2,)))
