"""Broadcasting of shapes, and its transpose."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nn_core.errors import ShapeError
from nn_core.operators.rules.broadcasting import broadcast_shapes, unbroadcast
from nn_core.testing.operators import ArrayFunctions

SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4).map(tuple)


@given(st.lists(SHAPES, max_size=3))
def test_shapes_broadcast_as_in_numpy(shapes: list[tuple[int, ...]]) -> None:
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match=r"input shapes must be equal or 1 on each axis, .*, got"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 4), (1, 4), (1, 3, 1), (1, 1, 1, 1), (4,), (1,), ()])
def test_a_gradient_is_summed_over_what_was_stretched(shape: tuple[int, ...]) -> None:
    dy = np.random.default_rng(0).normal(size=broadcast_shapes(shape, (2, 3, 4)))
    dx = unbroadcast(ArrayFunctions(), dy, shape)
    assert dx.shape == shape
    x = np.random.default_rng(1).normal(size=shape)
    np.testing.assert_allclose(np.sum(dx * x), np.sum(dy * np.broadcast_to(x, dy.shape)))


def test_an_operand_that_was_not_stretched_gets_the_gradient_itself() -> None:
    dy = np.ones((2, 3))
    assert unbroadcast(ArrayFunctions(), dy, (2, 3)) is dy


def test_stretching_to_length_zero_gives_a_gradient_of_zeros() -> None:
    np.testing.assert_array_equal(unbroadcast(ArrayFunctions(), np.ones((2, 0)), (2, 1)), np.zeros((2, 1)))
