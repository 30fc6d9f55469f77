"""Arrays over a library behave as NumPy's: views, writing, indexing, promotion. The library here never changes an array."""

from typing import Any

import array_api_strict
import numpy as np
import pytest

from nn_core.errors import ArgumentError, DTypeError
from nn_core.ext import AdaptedBackend

BACKEND = AdaptedBackend("strict", "StrictArray", array_api_strict)
X = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
KEYS: list[Any] = [
    ...,
    0,
    -1,
    slice(None, None, -1),
    (slice(None), slice(None, None, -2)),
    (slice(None), None, 1, slice(1, 9)),
    (..., slice(3, 0, -2)),
    (0, 1, 2),
    (slice(5, 2), 0),
    (None, ..., None),
]


def arrays_like(value: np.ndarray) -> Any:
    return BACKEND.from_numpy(value)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_keys_read_and_write_as_in_numpy(key: Any) -> None:
    theirs, ours = X.copy(), arrays_like(X)
    assert np.array_equal(ours[key].numpy(), theirs[key])
    assert ours[key].shape == np.shape(theirs[key])
    theirs[key] = 7
    ours[key] = 7
    theirs[key] += 1
    ours[key] += 1
    assert np.array_equal(ours.numpy(), theirs)


@pytest.mark.parametrize(
    "key",
    [
        (np.array([0, 1, -1]),),
        (np.array([[0], [1]]), np.array([0, 2])),
        (np.array([1, 0]), np.array([2, 0]), np.array([3, -1])),
        (np.arange(24).reshape(2, 3, 4) % 5 == 0,),
        (np.array([True, False]),),
        (slice(None), np.array([0, 2])),
        (0, slice(None), np.array([1, 1])),
    ],
    ids=str,
)
def test_index_arrays_and_masks_read_and_write_as_in_numpy(key: Any) -> None:
    theirs, ours = X.copy(), arrays_like(X)
    own = tuple(arrays_like(part) if isinstance(part, np.ndarray) else part for part in key)
    own = own[0] if len(own) == 1 else own
    assert np.array_equal(ours[own].numpy(), theirs[key])
    np.add.at(theirs, key, 2)
    BACKEND.namespace().add.at(ours, own, 2)
    assert np.array_equal(ours.numpy(), theirs)
    theirs[key] = -1
    ours[own] = -1
    assert np.array_equal(ours.numpy(), theirs)


def test_views_of_views_are_written_through() -> None:
    theirs, ours = X.copy(), arrays_like(X)
    for x in (theirs, ours):
        part = x[1].reshape(6, 2)[1:4]
        part[:, 0] = 9
        part *= 2
    assert np.array_equal(ours.numpy(), theirs)


def test_memory_of_bytes_is_used_for_one_dtype_after_the_other() -> None:
    memory = BACKEND.empty((24,), "uint8")
    floats, whole = memory[:24].view(np.float32).reshape(2, 3), memory[:16].view(np.int64)
    floats[...] = 1.5
    assert floats.tolist() == [[1.5] * 3] * 2
    whole[...] = 4
    assert whole.tolist() == [4, 4]
    assert floats.tolist() == [[0.0] * 3] * 2
    with pytest.raises(ArgumentError, match="uint8"):
        floats.view(np.int32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float32([1, 2]), 3),
        (np.int64([1, 2]), 0.5),
        (np.int64([5, 2]), 2),
        (np.bool_([True, False]), 1),
        (np.float32([1, 2]), np.float64([3, 4])),
        (np.int64([1, 2]), np.float32([3, 4])),
        (np.uint8([1, 2]), np.int64([3, 4])),
    ],
    ids=str,
)
def test_dtypes_are_those_of_numpy(a: Any, b: Any) -> None:
    ours = arrays_like(b) if isinstance(b, np.ndarray) else b
    for operate in (lambda x, y: x + y, lambda x, y: y * x, lambda x, y: x / y, lambda x, y: x >= y, lambda x, y: x**y):
        given, expected = operate(arrays_like(a), ours), operate(a, b)
        assert given.dtype == expected.dtype
        np.testing.assert_array_equal(given.numpy(), expected)
    assert (arrays_like(np.bool_([True])) & True).dtype == np.bool_
    assert (np.float32(2) * arrays_like(np.float32([1, 2]))).tolist() == [2.0, 4.0]


def test_conversions() -> None:
    x = arrays_like(np.float32([[1.5]]))
    assert (float(x[0, 0]), int(x[0, 0]), bool(x[0, 0]), len(x)) == (1.5, 1, True, 1)
    assert (x.T.shape, str(x.dtype)) == ((1, 1), "float32")
    assert [10, 20][arrays_like(np.int64([1]))[0]] == 20
    assert (-x).tolist() == [[-1.5]]
    assert (~arrays_like(np.bool_([True]))).tolist() == [False]
    assert "1.5" in repr(x)
    with pytest.raises(ValueError, match=r"broadcast to the shape \(1, 1\)"):
        x[...] = np.ones((2, 2))
    with pytest.raises(DTypeError, match="array_api_strict, got float16"):
        BACKEND.empty((2,), "float16")[...] = 1


def test_singular_matrices_are_value_errors() -> None:
    xp = BACKEND.namespace()
    assert xp.linalg.det(arrays_like(np.eye(2))).tolist() == 1.0
    with pytest.raises(ValueError, match="inv: "):
        xp.linalg.inv(arrays_like(np.zeros((2, 2))))
