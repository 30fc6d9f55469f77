"""Gradients of max-pooling beside the reference: windows that tile, overlap and leave gaps, and lanes that fill no vector."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

import nn_core.functions as F

#: ``assert_alike(function, *arrays, tolerance=...)`` of conftest.py.
Compare: TypeAlias = Callable[..., None]

#: Shape, kernel, stride, pad.
WINDOWS: list[tuple[Any, Any, Any, Any]] = [
    ((2, 3, 8, 6), (2, 2), (2, 2), (0, 0)),
    ((2, 3, 9, 7), (2, 2), (2, 2), (0, 0)),
    ((2, 70, 9, 7), (3, 3), (2, 2), (1, 1)),
    ((1, 5, 9, 11), (2, 1), (3, 4), (0, 0)),
    ((2, 5, 11), (3,), (1,), (1,)),
    ((2, 4, 5, 6, 7), (2, 2, 2), (2, 2, 2), (0, 0, 0)),
    ((1, 4, 5, 6, 7), (3, 2, 3), (1, 2, 2), (1, 0, 1)),
    ((1, 4, 6, 6, 7), (1, 2, 3), (2, 2, 2), (0, 1, 1)),
]


@pytest.mark.parametrize("channel_last", [False, True])
@pytest.mark.parametrize(("shape", "kernel", "stride", "pad"), WINDOWS)
def test_gradients_of_the_largest(
    isa: str, assert_alike: Compare, shape: Any, kernel: Any, stride: Any, pad: Any, channel_last: bool
) -> None:
    x = np.random.default_rng(0).integers(-4, 4, shape).astype(np.float32)  # with elements that are equally large
    if channel_last:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    assert_alike(lambda v: F.max_pooling(v, kernel, stride, True, pad, channel_last), x)
