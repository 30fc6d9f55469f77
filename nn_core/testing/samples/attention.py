"""Samples of attention."""

from typing import Any

import numpy as np

from nn_core.errors import ArgumentError, ShapeError
from nn_core.testing.drawing import normal, values
from nn_core.testing.samples.registry import error, sample

_NAME = "ScaledDotProductAttention"


def _hiding(n_queries: int, n_keys: int) -> Any:
    """Return a mask that hides every third key, and from the second query all of them."""
    mask = np.where(np.arange(n_keys) % 3 == 2, -np.inf, 0.5) * np.ones((n_queries, 1))
    mask[1] = -np.inf
    return values(mask)


sample(_NAME, "plain", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6))
sample(_NAME, "one_head", normal(3, 4), normal(5, 4), normal(5, 6))
sample(_NAME, "heads", normal(2, 3, 7, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8))
sample(_NAME, "causal", normal(2, 6, 4), normal(2, 6, 4), normal(2, 6, 4), is_causal=True)
sample(_NAME, "causal_more_keys", normal(2, 3, 4), normal(2, 7, 4), normal(2, 7, 4), is_causal=True)
sample(_NAME, "causal_more_queries", normal(2, 7, 4), normal(2, 3, 4), normal(2, 3, 4), is_causal=True)
sample(_NAME, "scale", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4), scale=0.3)
sample(_NAME, "mask", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4), normal(2, 3, 5))
sample(_NAME, "shared_mask", normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 5), normal(4, 6))
sample(_NAME, "mask_of_batch", normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 5), normal(2, 1, 1, 6))
sample(_NAME, "mask_causal", normal(2, 4, 5), normal(2, 4, 5), normal(2, 4, 5), normal(4, 4), is_causal=True)
sample(_NAME, "hidden", normal(2, 3, 4), normal(2, 7, 4), normal(2, 7, 4), _hiding(3, 7), smooth=False)
sample(_NAME, "one_key", normal(2, 3, 4), normal(2, 1, 4), normal(2, 1, 4))
sample(_NAME, "one_feature", normal(2, 3, 1), normal(2, 5, 1), normal(2, 5, 2))
sample(_NAME, "blocks", normal(2, 150, 16), normal(2, 300, 16), normal(2, 300, 24), smooth=False)
sample(_NAME, "causal_blocks", normal(1, 300, 16), normal(1, 300, 16), normal(1, 300, 16), is_causal=True, smooth=False)
sample(_NAME, "mask_blocks", normal(2, 70, 9), normal(2, 290, 9), normal(2, 290, 9), _hiding(70, 290), smooth=False)
sample(_NAME, "bias_of_keys", normal(2, 150, 5), normal(2, 140, 5), normal(2, 140, 6), normal(140), smooth=False)
sample(_NAME, "bias_of_queries", normal(2, 70, 5), normal(2, 140, 5), normal(2, 140, 6), normal(2, 70, 1), smooth=False)
# The gradient of this mask is zero, because weights do not depend on it: a sum over all weights, in which the roundings of
# 16-bit results of the forward pass do not cancel.
sample(
    _NAME,
    "bias_of_heads",
    normal(2, 3, 70, 5),
    normal(2, 3, 70, 5),
    normal(2, 3, 70, 6),
    normal(3, 1, 1),
    is_causal=True,
    smooth=False,
    loose=4,
)
sample(
    _NAME,
    "mask_of_every_other_axis",
    normal(2, 1, 2, 2, 2, 2, 2, 3, 4),
    normal(2, 1, 2, 2, 2, 2, 2, 5, 4),
    normal(2, 1, 2, 2, 2, 2, 2, 5, 4),
    normal(2, 1, 1, 2, 1, 2, 1, 3, 5),
    smooth=False,
)
sample(_NAME, "wide", normal(2, 9, 900), normal(2, 10, 900), normal(2, 10, 800), normal(9, 10), smooth=False)
sample(_NAME, "no_queries", normal(2, 0, 4), normal(2, 5, 4), normal(2, 5, 4))
sample(_NAME, "no_heads", normal(0, 3, 4), normal(0, 5, 4), normal(0, 5, 4))

error(_NAME, "axes", ShapeError, "q must have at least 2 axes, got 1", normal(3), normal(2, 3), normal(2, 3))
error(_NAME, "batch", ShapeError, "must have the same leading axes", normal(2, 3, 4), normal(3, 5, 4), normal(3, 5, 4))
error(_NAME, "features", ShapeError, "same number of features, got 4 and 3", normal(3, 4), normal(5, 3), normal(5, 4))
error(_NAME, "lengths", ShapeError, "same length, got 5 and 6", normal(3, 4), normal(5, 4), normal(6, 4))
error(_NAME, "mask", ShapeError, "mask must broadcast", normal(3, 4), normal(5, 4), normal(5, 4), normal(2, 5))

_WITH = "DropoutAttention"
sample(_WITH, "plain", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6))
sample(_WITH, "one_head", normal(3, 4), normal(5, 4), normal(5, 6), p=0.3, scale=0.7)
sample(_WITH, "causal", normal(2, 3, 7, 8), normal(2, 3, 7, 8), normal(2, 3, 7, 8), p=0.2, is_causal=True, seed=5)
sample(_WITH, "mask", normal(2, 3, 4, 5), normal(2, 3, 6, 5), normal(2, 3, 6, 5), normal(2, 1, 1, 6), p=0.4)
sample(_WITH, "hidden", normal(2, 3, 4), normal(2, 7, 4), normal(2, 7, 4), _hiding(3, 7), smooth=False)
sample(_WITH, "nothing", normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 6), p=0.0)
sample(_WITH, "blocks", normal(2, 150, 16), normal(2, 301, 16), normal(2, 301, 24), p=0.1, smooth=False)
sample(_WITH, "mask_blocks", normal(2, 70, 9), normal(2, 290, 9), normal(2, 290, 9), normal(290), p=0.3, smooth=False)
sample(_WITH, "no_queries", normal(2, 0, 4), normal(2, 5, 4), normal(2, 5, 4))
error(_WITH, "p", ArgumentError, r"p must be in \[0, 1\)", normal(3, 4), normal(5, 4), normal(5, 4), p=1.0)
error(_WITH, "lengths", ShapeError, "same length, got 5 and 6", normal(3, 4), normal(5, 4), normal(6, 4))

_CACHED = "CachedAttention"


def _cached(
    label: str, n: int, heads: int, new: int, room: int, features: int, n_values: int, lengths: list[int], **args: Any
) -> None:
    tokens, cache = (n, heads, new), (n, heads, room)
    arrays = [(*tokens, features), (*tokens, features), (*tokens, n_values), (*cache, features), (*cache, n_values)]
    sample(_CACHED, label, *(normal(*shape) for shape in arrays), values(lengths), smooth=False, **args)


_cached("one_token", 2, 3, 1, 9, 4, 5, [3, 8])
_cached("first_token", 1, 2, 1, 1, 4, 4, [0])
_cached("prompt", 2, 2, 5, 8, 4, 4, [0, 0])
_cached("further_tokens", 3, 2, 3, 10, 4, 6, [7, 0, 2], scale=0.3)
_cached("blocks", 2, 2, 70, 400, 16, 24, [300, 130])
_cached("long_cache", 2, 1, 1, 700, 9, 17, [650, 5])
_cached("wide", 1, 2, 2, 6, 300, 200, [3])
_cached("no_tokens", 2, 3, 0, 5, 4, 4, [5, 0])
_cached("no_sequences", 0, 3, 1, 5, 4, 4, [])

_ONE, _ROOM = (2, 3, 1, 4), (2, 3, 5, 4)
error(
    _CACHED,
    "axes",
    ShapeError,
    "must have 4 axes",
    normal(3, 4),
    *[normal(*_ONE)] * 2,
    *[normal(*_ROOM)] * 2,
    values([0, 0]),
)
error(
    _CACHED,
    "keys",
    ShapeError,
    "k must have the shape",
    normal(*_ONE),
    normal(2, 3, 2, 4),
    normal(*_ONE),
    *[normal(*_ROOM)] * 2,
    values([0, 0]),
)
error(
    _CACHED,
    "cache",
    ShapeError,
    "v_cache must have the shape",
    *[normal(*_ONE)] * 3,
    normal(*_ROOM),
    normal(2, 3, 5, 5),
    values([0, 0]),
)
error(
    _CACHED,
    "rooms",
    ShapeError,
    "v_cache must have the shape",
    *[normal(*_ONE)] * 3,
    normal(*_ROOM),
    normal(2, 3, 6, 4),
    values([0, 0]),
)
error(
    _CACHED, "sequences", ShapeError, "lengths must have the shape", *[normal(*_ONE)] * 3, *[normal(*_ROOM)] * 2, values([0])
)
error(
    _CACHED, "full", ArgumentError, r"lengths must be in \[0, 4\]", *[normal(*_ONE)] * 3, *[normal(*_ROOM)] * 2, values([0, 5])
)
