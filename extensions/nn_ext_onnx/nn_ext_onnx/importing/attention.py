"""Attention of onnxruntime, and what transformers have around it: optimized models have them."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

import nn_core as nn
import nn_core.functions as F
from nn_ext_onnx.importing.arithmetic import expanded
from nn_ext_onnx.importing.fused import statistics
from nn_ext_onnx.importing.registry import Made, Node, operator
from nn_ext_onnx.importing.values import UnsupportedError

_DOMAINS: Final = ("com.microsoft",)
#: The number that scores of hidden keys get added, where a model says nothing.
_MASKED: Final = -10000.0


def _constant(values: object) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.asarray(values, dtype=np.float32))


def _refuse_given(node: Node, *places: int) -> None:
    """Refuse inputs that are not read."""
    for place in places:
        if node.optional(place) is not None:
            raise UnsupportedError(f"input {place}")


def _heads(x: nn.Variable, n_heads: int) -> nn.Variable:
    """Return (B, N, S, D) of (B, S, N * D)."""
    batch, steps, features = x.shape
    if features % n_heads:
        raise UnsupportedError(f"{features} features for {n_heads} heads")
    return F.transpose(F.reshape(x, (batch, steps, n_heads, features // n_heads)), (0, 2, 1, 3))


def _joined(x: nn.Variable) -> nn.Variable:
    """Return (B, S, N * D) of (B, N, S, D)."""
    batch, n_heads, steps, features = x.shape
    return F.reshape(F.transpose(x, (0, 2, 1, 3)), (batch, steps, n_heads * features))


def _later(n_queries: int, n_keys: int, masked: float, window: int = -1, before: Sequence[int] = ()) -> nn.Variable:
    """Return what is added to the scores of keys that come after a query, or before the last `window` ones that it sees.

    Args:
        n_queries: how many queries there are.
        n_keys: how many keys.
        masked: the number that is added.
        window: how many keys a query sees; -1: all.
        before: the number of keys before the first query, for each sample; by default the last query is at the last key.
    """
    firsts = np.array(before or [n_keys - n_queries]).reshape(-1, 1, 1)
    distances = firsts + np.arange(n_queries)[:, None] - np.arange(n_keys)
    is_seen = (distances >= 0) & ((distances < window) | (window <= 0))
    return _constant(np.where(is_seen, 0.0, masked)[:, None])


def _of_padding(node: Node, place: int, n_keys: int, masked: float) -> nn.Variable | None:
    """Return what is added to the scores for a mask of keys: 0 where they are hidden, or numbers of keys from the start on."""
    mask = node.optional_variable(place)
    if mask is None:
        return None
    batch = mask.shape[0]
    if mask.ndim == 1 and node.shape[0] == batch:
        seen = F.greater(F.reshape(mask, (batch, 1)), _constant(np.arange(n_keys)[None]))
    elif mask.ndim in (2, 3) and mask.shape[-1] == n_keys:
        seen = F.greater_scalar(mask, 0.0)
    else:
        raise UnsupportedError(f"a mask of shape {mask.shape}")
    shape = (batch, 1, 1, n_keys) if mask.ndim < 3 else (batch, 1, *mask.shape[1:])
    return F.reshape((1.0 - seen) * masked, shape)


def _added(*masks: nn.Variable | None) -> nn.Variable | None:
    given = [mask for mask in masks if mask is not None]
    total = given[0] if given else None
    for mask in given[1:]:
        assert total is not None
        total = total + mask
    return total


def _attended(node: Node, q: nn.Variable, k: nn.Variable, v: nn.Variable, mask: nn.Variable | None) -> nn.Variable:
    """Return (B, S, N * D) of queries, keys and values (B, N, ., D)."""
    scale = node.attr("scale", 0.0) or 1 / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = expanded(mask, (*q.shape[:3], k.shape[2]))
    return _joined(F.scaled_dot_product_attention(q, k, v, mask, scale=scale))


def _continued(past: nn.Variable | None, present: nn.Variable) -> nn.Variable:
    """Return keys or values after those of earlier calls."""
    return present if past is None else F.concatenate(past, present, axis=2)


@operator("Attention", domains=_DOMAINS)
def _attention(node: Node) -> Made:
    """Attend with the projections of queries, keys and values in one weight."""
    _refuse_given(node, 6)
    if node.attr("do_rotary", 0):
        raise UnsupportedError("do_rotary")
    n_heads, masked = node.attr("num_heads"), node.attr("mask_filter_value", _MASKED)
    projected = F.affine(node.x, node.variable(1), node.optional_variable(2), base_axis=2)
    sizes = node.attr("qkv_hidden_sizes") or [projected.shape[-1] // 3] * 3
    ends = np.cumsum(sizes)
    q, k, v = (_heads(projected[:, :, int(end) - size : int(end)], n_heads) for end, size in zip(ends, sizes, strict=True))
    past = node.optional_variable(4)
    if past is not None:
        k, v = (_continued(F.reshape(past[n : n + 1], past.shape[1:]), one) for n, one in enumerate((k, v)))
    n_queries, n_keys = q.shape[2], k.shape[2]
    later = _later(n_queries, n_keys, masked) if node.attr("unidirectional", 0) else None
    mask = _added(_of_padding(node, 3, n_keys, masked), later, node.optional_variable(5))
    y = _attended(node, q, k, v, mask)
    return [y, F.stack(k, v, axis=0)] if len(node.proto.output) > 1 else y


@operator("MultiHeadAttention", domains=_DOMAINS)
def _multi_head_attention(node: Node) -> Made:
    """Attend with projected queries, keys and values, (B, S, N * D), or keys and values by head."""
    _refuse_given(node, 8, 9)
    if any(node.optional(place) is None for place in range(3)) or node.ndim != 3 or len(node.proto.output) > 3:
        raise UnsupportedError("packed queries, keys and values, or scores as a result")
    masked = node.attr("mask_filter_value", _MASKED)
    parts = [node.variable(place) for place in range(3)]
    biases = _biases(node, [part.shape[-1] for part in parts])
    q, k, v = (_by_head(part, bias, node.attr("num_heads")) for part, bias in zip(parts, biases, strict=True))
    k, v = _continued(node.optional_variable(6), k), _continued(node.optional_variable(7), v)
    later = _later(q.shape[2], k.shape[2], masked) if node.attr("unidirectional", 0) else None
    mask = _added(_of_padding(node, 4, k.shape[2], masked), later, node.optional_variable(5))
    return [_attended(node, q, k, v, mask), k, v][: len(node.proto.output)]


def _by_head(x: nn.Variable, bias: nn.Variable | None, n_heads: int) -> nn.Variable:
    return x if x.ndim == 4 else _heads(x if bias is None else x + bias, n_heads)


def _biases(node: Node, sizes: list[int]) -> list[nn.Variable | None]:
    bias = node.optional_variable(3)
    if bias is None:
        return [None] * 3
    if sum(sizes) != bias.shape[0]:
        raise UnsupportedError(f"a bias of {bias.shape[0]} for {sizes} features")
    return [bias[int(end) - size : int(end)] for end, size in zip(np.cumsum(sizes), sizes, strict=True)]


@operator("GroupQueryAttention", domains=_DOMAINS)
def _group_query_attention(node: Node) -> Made:
    """Attend with heads that share keys and values; every query sees the keys up to its own, or the last ones of these.

    Samples may be shorter than the others, or have shorter pasts: no query of theirs sees the padding after them.
    """
    _refuse_given(node, *range(9, 16))
    for name, plain in (("softcap", 0.0), ("smooth_softmax", 0), ("qk_output", 0)):
        if node.attr(name, plain) != plain:
            raise UnsupportedError(name)
    n_heads, n_shared = node.attr("num_heads"), node.attr("kv_num_heads")
    counts = (n_heads, n_shared, n_shared)
    q, k, v = (_heads(part, count) for part, count in zip(_grouped(node, counts), counts, strict=True))
    past_key, past_value = (_unless_empty(node.optional_variable(place)) for place in (3, 4))
    before = _before(node, past_key, q.shape[2])
    if node.attr("do_rotary", 0):
        angles = _rows(node, 7, np.array(before)[:, None] + np.arange(q.shape[2]))
        q, k = (_turned(one, *angles, node.attr("rotary_interleaved", 0)) for one in (q, k))
    n_keys = k.shape[2] if past_key is None else max(int(node.number(6)), past_key.shape[2])
    k, v = _placed(past_key, k, before, n_keys), _placed(past_value, v, before, n_keys)
    keys, values = (_repeated(one, n_heads // n_shared) for one in (k, v))
    seen = _later(q.shape[2], n_keys, -np.inf, node.attr("local_window_size", -1), before)
    return [_attended(node, q, keys, values, seen), k, v][: len(node.proto.output)]


def _before(node: Node, past: nn.Variable | None, n_new: int) -> list[int]:
    """Return the number of keys that are there before the new ones: for each sample, or one for all."""
    if past is None:
        return [0]
    found = [last + 1 - n_new for last in node.ints(5)]
    if min(found) < 0 or max(found) > past.shape[2] or max(found) + n_new > max(int(node.number(6)), past.shape[2]):
        raise UnsupportedError(f"seqlens_k {node.ints(5)} for {n_new} keys after a past of {past.shape[2]}")
    return found[:1] if len(set(found)) == 1 else found


def _placed(past: nn.Variable | None, new: nn.Variable, before: Sequence[int], n_keys: int) -> nn.Variable:
    """Return keys or values with the new ones after those that each sample has; what is behind them is not read."""
    if past is None:
        return new
    parts = [_continued_to(past, new, before[0], n_keys)] if len(before) == 1 else []
    for sample, count in enumerate(before if len(before) > 1 else ()):
        parts.append(_continued_to(past[sample : sample + 1], new[sample : sample + 1], count, n_keys))
    return parts[0] if len(parts) == 1 else F.concatenate(*parts, axis=0)


def _continued_to(past: nn.Variable, new: nn.Variable, count: int, n_keys: int) -> nn.Variable:
    """Return the first `count` of the past, the new ones, and zeros up to `n_keys`."""
    both = F.concatenate(past[:, :, :count], new, axis=2) if count else new
    more = n_keys - both.shape[2]
    return F.pad(both, (0, more, 0, 0)) if more else both


def _grouped(node: Node, counts: Sequence[int]) -> list[nn.Variable]:
    """Return queries, keys and values, which may be parts of one input."""
    if node.optional(1) is not None and node.optional(2) is not None:
        return [node.variable(place) for place in range(3)]
    ends = np.cumsum(counts) * (node.shape[2] // sum(counts))
    return [node.x[:, :, int(start) : int(end)] for start, end in zip([0, *ends], ends, strict=False)]


def _unless_empty(past: nn.Variable | None) -> nn.Variable | None:
    return past if past is None or past.shape[2] else None


def _repeated(x: nn.Variable, times: int) -> nn.Variable:
    """Return each head so many times, one after the other."""
    batch, n_heads, steps, features = x.shape
    copies = F.broadcast(F.reshape(x, (batch, n_heads, 1, steps, features)), (batch, n_heads, times, steps, features))
    return F.reshape(copies, (batch, n_heads * times, steps, features))


def _rows(node: Node, place: int, places: np.ndarray) -> tuple[nn.Variable, nn.Variable]:
    """Return cosines and sines of places, which are (S,) or (B, S), as (B, 1, S, D / 2), from two tables."""
    index = nn.Variable.from_numpy_array(np.atleast_2d(places))
    cosines, sines = (F.gather(node.variable(place + k), index, axis=0) for k in range(2))
    return tuple(F.reshape(one, (one.shape[0], 1, *one.shape[1:])) for one in (cosines, sines))  # type: ignore[return-value]


def _turned(x: nn.Variable, cosines: nn.Variable, sines: nn.Variable, is_interleaved: int) -> nn.Variable:
    """Return (B, N, S, D) with pairs of features turned by angles; features beyond those of the tables stay."""
    half = cosines.shape[-1]
    turned, rest = x[:, :, :, : 2 * half], x[:, :, :, 2 * half :]
    if is_interleaved:
        first, second = turned[:, :, :, ::2], turned[:, :, :, 1::2]
    else:
        first, second = turned[:, :, :, :half], turned[:, :, :, half:]
    pairs = [first * cosines - second * sines, first * sines + second * cosines]
    y = F.reshape(F.stack(*pairs, axis=4), turned.shape) if is_interleaved else F.concatenate(*pairs, axis=3)
    return F.concatenate(y, rest, axis=3) if x.shape[3] > 2 * half else y


@operator("RotaryEmbedding", domains=_DOMAINS)
def _rotary_embedding(node: Node) -> nn.Variable:
    """Turn pairs of features by angles that grow with the place."""
    if node.attr("is_packed_batching", 0) or node.attr("scale", 1.0) != 1.0:
        raise UnsupportedError("is_packed_batching and scale")
    size = 2 * node[2].shape[1]
    n_heads = node.attr("num_heads", 0) or node.shape[-1] // size
    x = node.x if node.ndim == 4 else _heads(node.x, n_heads)
    steps, given = x.shape[2], node[1]
    if given.size == 1 and given.ndim < 2:
        start = int(node.number(1))
        cosines, sines = _rows(node, 2, np.arange(start, start + steps))
    else:
        cosines, sines = (F.gather(node.variable(2 + k), given.variable, axis=0) for k in range(2))
        cosines, sines = (F.reshape(one, (one.shape[0], 1, *one.shape[1:])) for one in (cosines, sines))
    y = _turned(x, cosines, sines, node.attr("interleaved", 0))
    return y if node.ndim == 4 else _joined(y)


@operator("EmbedLayerNormalization", domains=_DOMAINS)
def _embed_layer_normalization(node: Node) -> Made:
    """Normalize the sum of the embeddings of words, places and segments; also the numbers of words that are not masked."""
    node.gives(np.dtype("float32"), np.dtype("int32"), np.dtype("float32"))
    batch, steps = node.shape
    words = F.gather(node.variable(2), node.x, axis=0)
    given = node.optional_variable(8)
    index = nn.Variable.from_numpy_array(np.arange(steps)[None]) if given is None else given
    total = words + F.gather(node.variable(3), index, axis=0)
    if node.optional(4) is not None:
        total = total + F.gather(node.variable(4), node.variable(1), axis=0)
    rest, _, inverse = statistics(node, total, is_centred=True)
    y = rest * inverse * node.variable(5) + node.variable(6)
    mask = node.optional_variable(7)
    counts = F.constant(0, (batch,)) if mask is None else F.sum(mask, axis=1)
    return [y, counts, total][: len(node.proto.output)]
