"""Tests of the operators of the topic attention."""

from functools import partial

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.testing.operators import check_forward, check_gradient, check_table, run

rng = np.random.default_rng(26)


def normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape)


def test_table() -> None:
    check_table("attention")


def truth(query, key, value, mask=None, *, is_causal=False, scale=None):
    """Attention query by query, each on the keys that it sees."""
    n_queries, n_keys = query.shape[-2], key.shape[-2]
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    mask = np.zeros((n_queries, n_keys)) if mask is None else mask
    mask = np.broadcast_to(mask, (*query.shape[:-1], n_keys))
    y = np.zeros((*query.shape[:-1], value.shape[-1]))
    for place in np.ndindex(*query.shape[:-1]):
        batch = place[:-1]
        scores = key[batch] @ query[place] * scale + mask[place]
        seen = np.isfinite(scores) & ((np.arange(n_keys) <= place[-1]) | (not is_causal))
        if seen.any():
            weights = np.exp(scores[seen] - np.log(np.exp(scores[seen]).sum()))
            y[place] = weights @ value[batch][seen]
    return y


HIDDEN = np.where(rng.random((2, 3, 5)) < 0.3, -np.inf, 0.2)
HIDDEN[0, 1] = -np.inf
CASES = [
    ((2, 3, 4), (2, 5, 4), (2, 5, 6), None, {}),
    ((2, 3, 4), (2, 5, 4), (2, 5, 6), (3, 5), {"scale": 0.7}),
    ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (2, 1, 1, 5), {}),
    ((2, 5, 4), (2, 5, 4), (2, 5, 4), None, {"is_causal": True}),
    ((4, 2), (6, 2), (6, 3), (4, 6), {"is_causal": True}),
]


@pytest.mark.parametrize(("query", "key", "value", "mask", "settings"), CASES)
def test_scaled_dot_product_attention(query, key, value, mask, settings) -> None:
    inputs = [normal(*query), normal(*key), normal(*value), None if mask is None else normal(*mask)]
    check_forward("ScaledDotProductAttention", inputs, partial(truth, **settings), **settings)
    check_gradient("ScaledDotProductAttention", inputs, **settings)


def test_a_query_that_sees_no_key_gives_zeros_and_takes_no_gradient() -> None:
    inputs = [normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4), HIDDEN]
    check_forward("ScaledDotProductAttention", inputs, truth)
    variables = [nn.Variable.from_numpy_array(array, need_grad=True) for array in inputs]
    y = F.scaled_dot_product_attention(*variables)
    y.forward()
    for variable in variables:
        variable.grad.zero()
    y.backward()
    assert (y.d[0, 1] == 0).all()
    assert (variables[0].g[0, 1] == 0).all()
    assert all(np.isfinite(variable.g).all() for variable in variables)


def test_keys_that_do_not_exist_give_zeros() -> None:
    y = F.scaled_dot_product_attention(nn.NdArray((2, 3, 4)), nn.NdArray((2, 0, 4)), nn.NdArray((2, 0, 5)))
    assert y.shape == (2, 3, 5)
    assert (y.data == 0).all()


def test_large_scores_do_not_overflow() -> None:
    inputs = [np.full((1, 2, 4), 1e4), np.full((1, 3, 4), 1e4), normal(1, 3, 2)]
    y = F.scaled_dot_product_attention(*[nn.NdArray.from_numpy_array(array) for array in inputs])
    assert np.allclose(y.data, inputs[2].mean(1, keepdims=True), rtol=1e-5)


def test_second_derivatives() -> None:
    query, key, value = (nn.Variable.from_numpy_array(normal(3, 2), need_grad=True) for _ in range(3))
    y = F.sum(F.scaled_dot_product_attention(query, key, value, is_causal=True) ** 2)
    (first,) = nn.grad(y, query)
    penalty = F.sum(first**2)
    penalty.forward()
    query.grad.zero()
    penalty.backward()
    given, step = query.g.copy(), 1e-3
    for place in np.ndindex(*query.shape):
        sides = []
        for sign in (1, -1):
            query.d[place] += sign * step
            penalty.forward()
            sides.append(float(penalty.d))
            query.d[place] -= sign * step
        assert given[place] == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=2e-2, abs=1e-3)


@pytest.mark.parametrize(("query", "key", "value", "mask", "settings"), CASES)
def test_dropout_of_the_weights(query, key, value, mask, settings) -> None:
    inputs = [normal(*query), normal(*key), normal(*value), None if mask is None else normal(*mask)]
    factors = dropped((*query[:-1], key[-2]), 0.4)

    def with_factors(query, key, value, mask=None, **given):
        """The weights are what attention makes of a unit matrix."""
        units = np.broadcast_to(np.eye(key.shape[-2]), (*key.shape[:-1], key.shape[-2]))
        return (truth(query, key, units, mask, **given) * factors) @ value

    y, drawn, _ = run("DropoutAttention", *inputs, p=0.4, **settings)
    np.testing.assert_allclose(y, with_factors(*inputs, **settings), rtol=1e-10, atol=1e-12)
    assert drawn.tolist() == [7, 0]
    check_gradient("DropoutAttention", inputs, p=0.4, **settings)


def dropped(shape, p):
    """The result of dropout on ones."""
    return run("Dropout", np.ones(shape), p=p)[0]


def test_the_factors_of_the_weights_can_be_had() -> None:
    q, k, v = (nn.Variable.from_numpy_array(normal(2, 3, 4)) for _ in range(3))
    y, drawn = F.dropout_attention(q, k, v, p=0.5)
    factors = F.dropout_mask(drawn, (2, 3, 3), p=0.5)
    weights = F.softmax(F.batch_matmul(q, k, transpose_b=True) * 0.5)
    expected = F.batch_matmul(weights * factors, v)
    for _ in range(2):
        nn.forward_all([y, expected])
        np.testing.assert_allclose(y.d, expected.d, rtol=1e-5, atol=1e-6)
    assert set(np.unique(factors.d)) == {0, 2}
    before = factors.d.copy()
    y.forward()
    factors.forward()
    assert (factors.d != before).any()


def test_attention_to_what_is_in_caches() -> None:
    q, k, v = normal(2, 3, 9, 4), normal(2, 3, 9, 4), normal(2, 3, 9, 5)
    expected = truth(q, k, v, is_causal=True)
    k_cache, v_cache = np.full((2, 3, 12, 4), np.nan), np.full((2, 3, 12, 5), np.nan)
    lengths = np.array([0, 0])
    for begin, end in ((0, 4), (4, 5), (5, 9)):
        new = [array[:, :, begin:end] for array in (q, k, v)]
        y, k_cache, v_cache = run("CachedAttention", *new, k_cache, v_cache, lengths)
        np.testing.assert_allclose(y, expected[:, :, begin:end], rtol=1e-10, atol=1e-12)
        lengths = lengths + end - begin
    np.testing.assert_array_equal(k_cache[:, :, :9], k)
    assert np.isnan(k_cache[:, :, 9:]).all() and np.isnan(v_cache[:, :, 9:]).all()
    y, _, _ = run("CachedAttention", q[:, :, 2:3], k[:, :, 2:3], v[:, :, 2:3], k_cache, v_cache, np.array([2, 0]))
    np.testing.assert_allclose(y[0], expected[0, :, 2:3], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(y[1, :, 0], v[1, :, 2], rtol=1e-10, atol=1e-12)  # the only key that it sees


def test_caches_of_a_graph_are_written_in_place() -> None:
    q, k, v = (nn.Variable.from_numpy_array(normal(1, 2, 1, 4).astype(np.float32)) for _ in range(3))
    k_cache, v_cache, lengths = nn.Variable((1, 2, 3, 4)), nn.Variable((1, 2, 3, 4)), nn.Variable((1,))
    y = F.cached_attention(q, k, v, k_cache, v_cache, lengths)
    k_cache.d, v_cache.d = 0, 0
    memory = k_cache.d
    for length in range(3):
        lengths.d = length
        y.forward(clear_buffer=True)
        assert np.array_equal(k_cache.d[0, :, length], k.d[0, :, 0])
        assert not k_cache.d[0, :, length + 1 :].any()
    assert np.shares_memory(k_cache.d, memory)
    lengths.d = 3
    with pytest.raises(nn.errors.ArgumentError, match=r"lengths must be in \[0, 2\], got values from 3 to 3"):
        y.forward()


@pytest.mark.parametrize("context", ["cpu", "reference"])
def test_a_boolean_mask_says_which_keys_a_query_sees(context):
    rng = np.random.default_rng(5)
    sees = np.tri(4, dtype=bool)
    sees[2] = False
    with nn.context_scope(nn.Context([context])):
        operands = [nn.Variable.from_numpy_array(rng.normal(size=(2, 4, 3)), need_grad=True) for _ in range(3)]
        mask = nn.Variable.from_numpy_array(sees)
        y = F.scaled_dot_product_attention(*operands, mask)
        expected = F.scaled_dot_product_attention(*operands, nn.Variable.from_numpy_array(np.where(sees, 0, -np.inf)))
        found = [F.scaled_dot_product_attention(*[x.data for x in operands], mask.data)]
        for result in (y, expected):
            for x in operands:
                x.grad.zero()
            result.forward()
            result.backward()
            found.append([x.g.copy() for x in operands])
        assert np.array_equal(y.d, expected.d) and np.array_equal(found[0].data, y.d) and not y.d[:, 2].any()
        assert all(map(np.array_equal, *found[1:]))
        mask.d = np.tri(4, dtype=bool).T
        y.forward()
        assert np.allclose(y.d[:, 3], operands[2].d[:, 3])


@pytest.mark.parametrize("context", ["cpu", "reference"])
@pytest.mark.parametrize("attend", [F.scaled_dot_product_attention, lambda *given: F.dropout_attention(*given, p=0.0)[0]])
def test_a_mask_that_becomes_boolean_after_the_call_is_refused(context, attend):
    sees = np.tri(4, dtype=bool)
    q = nn.Variable.from_numpy_array(np.random.default_rng(5).normal(size=(2, 4, 3)))
    with nn.context_scope(nn.Context([context])):
        mask = nn.Variable((4, 4))
        y = attend(q, q, q, mask)
        mask.d = np.where(sees, 0, -np.inf)
        y.forward()
        expected = y.d.copy()
        mask.d = sees
        with pytest.raises(
            nn.errors.GraphError, match=r"attention: a mask .* must hold numbers, got booleans of shape \(4, 4\)"
        ):
            y.forward()
        mask.d = np.where(sees, 0, -np.inf)
        y.forward()
        assert np.array_equal(y.d, expected)
        of_function = attend(q, q, q, F.broadcast(nn.Variable.from_numpy_array(sees), (2, 4, 4)))
        with pytest.raises(nn.errors.GraphError, match=r"got booleans of shape \(2, 4, 4\)"):
            of_function.forward()
        with nn.auto_forward():
            at_once = attend(q, q, q, F.broadcast(nn.Variable.from_numpy_array(sees), (2, 4, 4)))
        assert np.allclose(at_once.d, expected, atol=1e-6)
        assert np.allclose(attend(q.data, q.data, q.data, nn.NdArray.from_numpy_array(sees)).data, expected, atol=1e-6)


def of_several_heads(q, k, v, mask):
    weights = [nn.Variable.from_numpy_array(np.eye(3)) for _ in range(4)]
    return F.multi_head_attention(*[F.transpose(x, (1, 0, 2)) for x in (q, k, v)], 1, *weights, additive_mask=mask)[0]


@pytest.mark.parametrize("context", ["cpu", "reference"])
@pytest.mark.parametrize(
    "attend",
    [F.scaled_dot_product_attention, lambda *given: F.dropout_attention(*given, p=0.0)[0], of_several_heads],
    ids=["scaled_dot_product_attention", "dropout_attention", "multi_head_attention"],
)
def test_a_boolean_mask_that_gets_numbers_is_refused(context, attend):
    """Zeros that mean "add nothing" would hide every key."""
    sees = np.tri(4, dtype=bool)
    q = nn.Variable.from_numpy_array(np.random.default_rng(5).normal(size=(2, 4, 3)))
    with nn.context_scope(nn.Context([context])):
        mask = nn.Variable.from_numpy_array(sees)
        y = attend(q, q, q, mask)
        y.forward()
        expected = y.d.copy()
        mask.d = np.zeros((4, 4))
        with pytest.raises(nn.errors.GraphError, match=r"attention: a mask that was boolean .* must stay so, got float64"):
            y.forward()
        mask.d = sees
        y.forward()
        assert np.array_equal(y.d, expected)


@pytest.mark.parametrize("further", [{}, {"key_padding_mask": (2, 4)}, {"attn_bias_k": (6,), "attn_bias_v": (6,)}])
def test_boolean_masks_of_several_heads(further):
    rng = np.random.default_rng(5)
    x, *weights = [nn.Variable.from_numpy_array(rng.normal(size=shape)) for shape in [(4, 2, 6)] + [(6, 6)] * 4]
    given = {name: nn.Variable.from_numpy_array(np.full(shape, 0.0)) for name, shape in further.items()}
    sees = np.tri(4, dtype=bool)
    masks = [nn.Variable.from_numpy_array(mask) for mask in (sees, np.where(sees, 0, -np.inf))]
    results = [F.multi_head_attention(x, x, x, 2, *weights, additive_mask=mask, **given)[0] for mask in masks]
    nn.forward_all(results)
    assert np.array_equal(results[0].d, results[1].d)
    masks[1].d = sees
    with pytest.raises(nn.errors.GraphError, match=r"^multi_head_attention: a mask .* got booleans of shape"):
        results[1].forward()
