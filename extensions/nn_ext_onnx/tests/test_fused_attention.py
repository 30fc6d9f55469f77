"""Attention of onnxruntime and what is around it, beside onnxruntime."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from extensions.nn_ext_onnx.tests.quantized import expected, make, model_of
from extensions.nn_ext_onnx.tests.test_fused import drawn
from nn_core.ext import ArgumentError
from nn_ext_onnx.backend import prepare

B, S, N, D = 2, 3, 4, 16
H = N * D
QKV = {"query": drawn(B, S, H), "key": drawn(B, 5, H), "value": drawn(B, 5, H) + 1}
PAST = drawn(2, B, N, 2, D)
PADDING = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
RAW = {"x": drawn(B, S, 8), "w": drawn(8, 3 * H), "b": drawn(3 * H)}
CACHES = {"cos": np.cos(drawn(16, D // 2)), "sin": np.sin(drawn(16, D // 2))}
GROUPED = {"query": drawn(B, S, H), "key": drawn(B, S, 2 * D), "value": drawn(B, S, 2 * D) + 1}
LENGTHS = {"lengths": np.full(B, S - 1, np.int32), "total": np.array(S, np.int32)}
EMBEDDED = {
    "ids": np.array([[1, 2, 0], [4, 3, 3]], np.int32),
    "segments": np.array([[0, 0, 1], [1, 1, 0]], np.int32),
    **{name: drawn(n, 8) for name, n in (("words", 5), ("places", 7), ("kinds", 2))},
    "gamma": drawn(8),
    "beta": drawn(8) / 2,
}
#: Operator, attributes, inputs by name or None, number of outputs.
CASES = {
    "attention": ("Attention", {"num_heads": N}, RAW, 1),
    "attention_causal": ("Attention", {"num_heads": N, "unidirectional": 1, "scale": 0.3}, RAW, 1),
    "attention_lengths": ("Attention", {"num_heads": N}, {**RAW, "mask": np.array([3, 2], np.int32)}, 1),
    "attention_mask": ("Attention", {"num_heads": N}, {**RAW, "mask": PADDING[:, :3]}, 1),
    "attention_mask_3": ("Attention", {"num_heads": N}, {**RAW, "mask": np.tril(np.ones((B, S, S), np.int32))}, 1),
    "attention_past": ("Attention", {"num_heads": N, "unidirectional": 1}, {**RAW, "mask": PADDING, "past": PAST}, 2),
    "attention_bias": ("Attention", {"num_heads": N}, {**RAW, "m": None, "p": None, "added": drawn(B, N, S, S)}, 1),
    "attention_sizes": (
        "Attention", {"num_heads": 2, "qkv_hidden_sizes": [8, 8, 12]}, {**RAW, "w": drawn(8, 28), "b": drawn(28)}, 1,
    ),
    "multi_head": ("MultiHeadAttention", {"num_heads": N}, QKV, 1),
    "multi_head_bias": ("MultiHeadAttention", {"num_heads": N}, {**QKV, "bias": drawn(3 * H), "mask": PADDING}, 1),
    "multi_head_added": ("MultiHeadAttention", {"num_heads": N}, {**QKV, "b": None, "m": None, "added": drawn(1, N, S, 5)}, 1),
    "multi_head_by_head": (
        "MultiHeadAttention", {"num_heads": N}, {**QKV, "key": drawn(B, N, 5, D), "value": drawn(B, N, 5, D)}, 1,
    ),
    "multi_head_past": (
        "MultiHeadAttention",
        {"num_heads": N},
        {**QKV, "b": None, "m": None, "added": None, "past_key": PAST[0], "past_value": PAST[1]},
        3,
    ),
    "grouped": ("GroupQueryAttention", {"num_heads": N, "kv_num_heads": 2}, {**GROUPED, "k": None, "v": None, **LENGTHS}, 3),
    "grouped_window": (
        "GroupQueryAttention", {"num_heads": N, "kv_num_heads": 2, "local_window_size": 2},
        {**GROUPED, "k": None, "v": None, **LENGTHS}, 3,
    ),
    "grouped_rotary": (
        "GroupQueryAttention",
        {"num_heads": N, "kv_num_heads": 2, "do_rotary": 1},
        {**GROUPED, "k": None, "v": None, **LENGTHS, **CACHES},
        3,
    ),
    "rotary": ("RotaryEmbedding", {}, {"x": drawn(B, S, H), "start": np.array([2], np.int64), **CACHES}, 1),
    "rotary_places": (
        "RotaryEmbedding", {"interleaved": 1},
        {"x": drawn(B, N, S, D), "places": np.array([[0, 1, 2], [5, 6, 9]], np.int64), **CACHES}, 1,
    ),
    "embedding": ("EmbedLayerNormalization", {"epsilon": 1e-3}, EMBEDDED, 2),
    "embedding_mask": ("EmbedLayerNormalization", {}, {**EMBEDDED, "mask": PADDING[:, :3]}, 2),
    "embedding_without_segments": ("EmbedLayerNormalization", {}, {**EMBEDDED, "segments": None, "kinds": None}, 2),
}  # fmt: skip


def model(case):
    kind, attributes, arrays, n_outputs = CASES[case]
    given = {name: np.asarray(array) for name, array in arrays.items() if array is not None}
    names = [name if name in given else "" for name in arrays]
    types = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "int64": TensorProto.INT64}
    inputs = {name: (types[array.dtype.name], array.shape) for name, array in given.items()}
    outputs = [f"y{n}" for n in range(n_outputs)]
    made = model_of([make(kind, names, outputs, domain="com.microsoft", **attributes)], inputs, {}, {})
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    return made, given


@pytest.mark.parametrize("case", sorted(CASES))
def test_attention_is_that_of_onnxruntime(case):
    made, feed = model(case)
    found, wanted = prepare(made).run(feed), expected(made, feed)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=5e-6)


def test_shorter_samples_are_those_of_onnxruntime_but_for_their_padding(monkeypatch):
    monkeypatch.setitem(CASES["grouped"][2], "lengths", np.array([2, 1], np.int32))
    made, feed = model("grouped")
    (found, *_), (wanted, *_) = prepare(made).run(feed), expected(made, feed)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=5e-6)
    np.testing.assert_allclose(found[1, :2], wanted[1, :2], rtol=1e-5, atol=5e-6)


#: Length of the past, new tokens, tokens of each sample, length of the longest, other attributes.
PASTS = {
    "equal": (2, 1, [3, 3], 3, {}),
    "shorter": (4, 1, [5, 3], 5, {}),
    "one_is_empty": (4, 1, [5, 1], 5, {}),
    "buffer": (8, 1, [5, 3], 5, {}),
    "buffer_of_equal": (8, 1, [4, 4], 4, {}),
    "window": (6, 1, [7, 4], 7, {"local_window_size": 3}),
    "rotary": (4, 1, [5, 3], 5, {"do_rotary": 1}),
    "several_tokens": (4, 3, [7], 7, {"do_rotary": 1}),  # onnxruntime takes these for one sample only
}


@pytest.mark.parametrize("case", sorted(PASTS))
def test_pasts_of_different_lengths(case, monkeypatch):
    n_past, n_new, lengths, total, attributes = PASTS[case]
    batch = len(lengths)
    arrays = {
        "query": drawn(batch, n_new, H),
        "key": drawn(batch, n_new, 2 * D),
        "value": drawn(batch, n_new, 2 * D) + 1,
        "k": drawn(batch, 2, n_past, D),
        "v": drawn(batch, 2, n_past, D) - 1,
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array(total, np.int32),
        **(CACHES if "do_rotary" in attributes else {}),
    }
    monkeypatch.setitem(CASES, "case", ("GroupQueryAttention", {"num_heads": N, "kv_num_heads": 2, **attributes}, arrays, 3))
    made, feed = model("case")
    (found, *states), (wanted, *theirs) = prepare(made).run(feed), expected(made, feed)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-6)
    for one, other in zip(states, theirs, strict=True):
        assert one.shape == other.shape
        for sample, length in enumerate(lengths):
            np.testing.assert_allclose(one[sample, :, :length], other[sample, :, :length], rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize(("lengths", "total"), [([0, 3], 5), ([9, 5], 5), ([5, 5], 5)])
def test_lengths_that_pasts_cannot_have_are_refused(lengths, total, monkeypatch):
    given = {"k": drawn(B, 2, 4, D), "v": drawn(B, 2, 4, D), "lengths": np.array(lengths, np.int32), "total": np.int32(total)}
    monkeypatch.setitem(CASES, "case", (*CASES["grouped"][:2], {**GROUPED, **given}, 3))
    made, feed = model("case")
    with pytest.raises(ArgumentError, match=r"GroupQueryAttention .*: seqlens_k .* for 3 keys after a past of 4"):
        prepare(made).run(feed)
