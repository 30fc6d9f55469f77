"""Indexing and assignment on Variables and NdArrays, against NumPy."""

import numpy as np
import pytest

import nn_core as nn
from nn_core.engine.graph.apply import operator
from nn_core.errors import ArgumentError, ShapeError

VALUES = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
KEYS = {
    "integer": 1,
    "negative": -1,
    "slice": slice(1, None),
    "step": slice(None, None, -2),
    "backwards": (slice(None), slice(3, 0, -1)),
    "integers": (1, -2, 3),
    "mixed": (1, slice(0, 3), -1),
    "newaxis": (None, 1, ..., None),
    "ellipsis": (..., 2),
    "empty": (slice(2, 2),),
    "everything": ...,
    "list": [2, 0],
    "arrays": (np.array([0, 2]), np.array([1, 3])),
    "broadcast arrays": (np.array([[0], [2]]), slice(None), np.array([1, 3])),
    "array and slice": (slice(None), np.array([0, 0, 3])),
    "mask": VALUES[:, :, 0] > 20,
    "full mask": VALUES % 3 == 0,
    "boolean list": [True, False, True],
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_picking_as_numpy(key):
    x = nn.Variable.from_numpy_array(VALUES, need_grad=True)
    y = x[key]
    y.forward()
    assert y.shape == VALUES[key].shape
    assert np.array_equal(y.d, VALUES[key])
    grad = np.random.randn(*y.shape)
    y.backward(grad)
    truth = np.zeros(VALUES.shape)
    np.add.at(truth, key, grad)
    assert np.allclose(x.g, truth, atol=1e-6)
    assert np.array_equal(nn.NdArray.from_numpy_array(VALUES)[key].data, VALUES[key])


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_assigning_as_numpy(key):
    x = nn.Variable.from_numpy_array(VALUES, need_grad=True)
    h = x * 2
    value = np.random.default_rng(0).standard_normal(VALUES[key].shape, np.float32)
    v = nn.Variable.from_numpy_array(value, need_grad=True)
    h[key] = v
    truth = VALUES * 2
    truth[key] = value
    h.forward()
    assert np.array_equal(h.d, truth)
    grad = np.random.randn(*VALUES.shape).astype(np.float32)
    h.backward(grad)
    expected = 2 * grad
    expected[key] = 0
    assert np.allclose(x.g, expected)
    if len({*np.arange(60).reshape(VALUES.shape)[key].ravel().tolist()}) == value.size:
        assert np.allclose(v.g, grad[key])
    array = nn.NdArray.from_numpy_array(VALUES)
    array[key] = nn.NdArray.from_numpy_array(value)
    plain = VALUES.copy()
    plain[key] = value
    assert np.array_equal(array.data, plain)


@pytest.mark.parametrize("value", [7, np.float32([1, 2, 3, 4, 5])])
def test_assigned_values_are_broadcast(value):
    x = nn.Variable.from_numpy_array(VALUES)
    h = x + 0
    h[1, 1:] = value
    h.forward()
    truth = VALUES.copy()
    truth[1, 1:] = value
    assert np.array_equal(h.d, truth)


def test_functions_that_used_the_variable_keep_its_old_values():
    x = nn.Variable.from_numpy_array(VALUES)
    h = x * 2
    before = h + 1
    h[0] = 0
    after = h + 1
    nn.forward_all([before, after])
    assert np.array_equal(before.d, 2 * VALUES + 1)
    assert after.d[0].max() == 1 and np.array_equal(after.d[1:], 2 * VALUES[1:] + 1)


def test_assignment_to_a_leaf():
    x = nn.Variable.from_numpy_array(np.float32([1, 2, 3]))
    x[1] = 9
    x.forward()
    assert x.d.tolist() == [1, 9, 3]


def test_masks_and_indices_of_the_graph():
    x = nn.Variable.from_numpy_array(np.float32([3, -1, 4, -2]))
    y = x[operator("greater_scalar")(x, val=0)]
    y.forward()
    assert y.d.tolist() == [3, 4]
    picked = x[nn.Variable.from_numpy_array(np.array([2, 0]))]
    picked.forward()
    assert picked.d.tolist() == [4, 3]
    h = x * 1
    h[operator("less_scalar")(x, val=0)] = 0
    h.forward()
    assert h.d.tolist() == [3, 0, 4, 0]


def test_what_lies_outside_is_refused():
    x = nn.Variable.from_numpy_array(VALUES)
    with pytest.raises(IndexError, match="index 3 is out of bounds for axis 0 with size 3"):
        x[3]
    with pytest.raises(IndexError, match="at most 3 entries"):
        x[0, 0, 0, 0]
    with pytest.raises(IndexError):
        x[[5]]
    with pytest.raises(IndexError):
        x[1.5]


def test_values_of_a_wrong_shape_are_refused():
    h = nn.Variable.from_numpy_array(VALUES) + 0
    with pytest.raises(ShapeError, match=r"must be broadcast to the shape \(4, 5\)"):
        h[0] = np.zeros(3)


def test_an_index_of_the_graph_stands_alone():
    x = nn.Variable.from_numpy_array(VALUES)
    with pytest.raises(ArgumentError, match="slice first"):
        x[nn.Variable.from_numpy_array(np.array([1])), 1:]


def test_a_variable_may_be_its_own_index_and_its_own_values():
    x = nn.Variable.from_numpy_array(np.array([0.0, 2.0, 0.0], np.float32), need_grad=True)
    leaf = x.get_unlinked_variable()
    leaf.grad.zero()
    x[x] = 5.0
    x[:] = x
    x.forward()
    x.backward()
    np.testing.assert_array_equal(x.d, [5, 2, 5])
    np.testing.assert_array_equal(leaf.g, [0, 1, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64, bool])
@pytest.mark.parametrize("kind", [nn.Variable, nn.NdArray])
@pytest.mark.parametrize("values", ["number", "array"])
def test_a_key_means_the_same_where_it_reads_and_where_it_assigns(kind, dtype, values):
    numbers, places = np.float32([[1, 2], [3, 4], [5, 6]]), np.array([1, 0, 1], dtype)
    key, x = kind.from_numpy_array(places), kind.from_numpy_array(numbers)
    expected = numbers.copy()
    plain = places if dtype is bool else places.astype(np.int64)
    picked = x[key]
    assigned = np.float32([[7, 8], [9, 10], [7, 8]])[: len(numbers[plain])]
    expected[plain] = 7 if values == "number" else assigned
    x[key] = 7 if values == "number" else kind.from_numpy_array(assigned)
    if kind is nn.Variable:
        nn.forward_all([picked, x])
    found = [v.d if kind is nn.Variable else v.data for v in (picked, x)]
    np.testing.assert_array_equal(found[0], numbers[plain])
    np.testing.assert_array_equal(found[1], expected)


def test_several_indices_of_the_graph_name_places_to_assign_to():
    x = nn.Variable.from_numpy_array(np.zeros((2, 3), np.float32), need_grad=True)
    h = x * 2
    h[nn.Variable.from_numpy_array(np.array([[0], [1]])), nn.Variable.from_numpy_array(np.array([2, 0]))] = 5
    x.grad.zero()
    h.forward()
    h.backward()
    np.testing.assert_array_equal(h.d, [[5, 0, 5], [5, 0, 5]])
    np.testing.assert_array_equal(x.g, [[0, 2, 0], [0, 2, 0]])


def test_an_index_that_is_no_whole_number_is_refused():
    a = nn.NdArray.from_numpy_array(np.zeros(3, np.float32))
    with pytest.raises(ArgumentError, match=r"setitem: an index must hold whole numbers, got an array with 0\.5"):
        a[nn.NdArray.from_numpy_array(np.float32([0, 0.5]))] = 1
