"""Normalizations and attention as users call them: None for parameters, statistics, several processes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
from nn_core.errors import ArgumentError

RNG = np.random.default_rng(2)
X = RNG.standard_normal((4, 6, 2, 3)).astype(np.float32)
EPS = 1e-5


@pytest.fixture(autouse=True)
def dynamic() -> Iterator[None]:
    with nn.auto_forward():
        yield


def var(values: Any) -> nn.Variable:
    return nn.Variable.from_numpy_array(np.asarray(values, np.float32), need_grad=True)


def standardized(x: np.ndarray, axes: tuple[int, ...]) -> list[np.ndarray]:
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return [(x - mean) / np.sqrt(variance + EPS), mean, variance]


def close(results: Sequence[nn.Variable], expected: Sequence[np.ndarray]) -> None:
    assert len(results) == len(expected)
    for result, array in zip(results, expected, strict=True):
        assert result.shape == array.shape
        np.testing.assert_allclose(result.d, array, 1e-4, 1e-5)


def test_statistics_are_returned_on_request() -> None:
    x = var(X)
    close(F.batch_normalization(x, None, None, None, None, output_stat=True), standardized(X, (0, 2, 3)))
    close(F.tensor_normalization(x, 2, output_stat=True), standardized(X, (0, 1, 3)))
    close(F.layer_normalization(x, None, None, output_stat=True), standardized(X, (1, 2, 3)))
    close(F.instance_normalization(x, None, None, batch_axis=[0, 2], output_stat=True), standardized(X, (3,)))
    close(F.weight_standardization(x, 1, output_stat=True), standardized(X, (0, 2, 3)))
    y, mean, variance = F.group_normalization(x, None, None, 3, output_stat=True)
    expected = standardized(X.reshape(4, 3, 2, 2, 3), (2, 3, 4))
    close([y, mean, variance], [expected[0].reshape(X.shape), *expected[1:]])


def test_group_statistics_follow_the_channel_axis() -> None:
    y, mean, _ = F.group_normalization(var(X), None, None, 3, channel_axis=-1, batch_axis=-2, output_stat=True)
    expected = standardized(X, (0, 1))
    close([y, mean], [expected[0], expected[1][..., None]])


def test_fused_batch_normalization_adds_and_clips() -> None:
    parameters = [var(np.full((1, 6, 1, 1), value)) for value in (0.5, 2, 0, 1)]
    y, mean, variance = F.fused_batch_normalization(var(X), *parameters, z=var(X), output_stat=True)
    expected = standardized(X, (0, 2, 3))
    close([y, mean, variance], [np.maximum(2 * expected[0] + 0.5 + X, 0), *expected[1:]])


@pytest.mark.parametrize("mode", ["static", "dynamic", "imperative"])
def test_spectral_norm_gives_u_as_it_was(mode: str) -> None:
    w, u = [nn.Variable.from_numpy_array(values.astype(np.float32)) for values in (X.reshape(4, 36), np.ones(4))]
    with nn.auto_forward(mode == "dynamic"):
        inputs = (w.data, u.data) if mode == "imperative" else (w, u)
        y, before = F.spectral_norm(*inputs, itr=50, output_u=True)
    if mode == "static":
        nn.forward_all([y, before], clear_no_need_grad=True)
    y, before = (y.data, before.data) if mode == "imperative" else (y.d, before.d)
    assert np.linalg.svd(y, compute_uv=False)[0] == pytest.approx(1, rel=1e-3)
    assert before.tolist() == [1, 1, 1, 1] and u.d.tolist() != [1, 1, 1, 1]


def test_mean_subtraction_keeps_a_running_mean() -> None:
    mean, count = var(np.zeros(3)), var([0])
    y = F.mean_subtraction(var([[1, 2, 3], [3, 2, 1]]), mean, count)
    assert y.d.tolist() == [[-1, 0, 1], [1, 0, -1]] and mean.d.tolist() == [2, 2, 2] and count.d.tolist() == [1]


class Twins:
    """A communicator of two processes that hold the same arrays."""

    size = 2

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def all_reduce(self, data: Any, division: bool = False, inplace: bool = False, group: str = "world") -> None:
        self.calls.append((len(data), division, inplace, group))
        for array in data:
            array.data *= 2


def test_statistics_cross_processes() -> None:
    names = ("beta", "gamma", "mean", "variance")
    alone = {name: var(RNG.random((1, 6, 1, 1))) for name in names}
    shared = {name: var(alone[name].d) for name in names}
    x, x_shared, comm = var(X), var(X), Twins()
    twice = var(np.concatenate([X, X]))
    y, *statistics = F.sync_batch_normalization(x_shared, *shared.values(), comm, "pair", output_stat=True)
    F.batch_normalization(twice, *alone.values())
    standard, *expected = standardized(X, (0, 2, 3))
    close([y, *statistics], [shared["gamma"].d * standard + shared["beta"].d, *expected])
    close([shared["mean"], shared["variance"]], [alone["mean"].d, alone["variance"].d])
    y.backward(X)
    x.grad.zero()
    F.batch_normalization(x, alone["beta"], alone["gamma"], None, None).backward(X)
    np.testing.assert_allclose(x_shared.g, x.g, 1e-3, 1e-5)
    assert set(comm.calls) == {(1, False, True, "pair")} and len(comm.calls) == 4


def test_one_process_needs_no_communicator() -> None:
    parameters = [var(np.full((1, 6, 1, 1), value)) for value in (0, 1, 0, 1)]
    close([F.sync_batch_normalization(var(X), *parameters, None)], standardized(X, (0, 2, 3))[:1])


def test_processes_share_statistics_of_variables_only() -> None:
    arrays = [nn.NdArray((4, 6)), *(nn.NdArray((1, 6)) for _ in range(4))]
    with pytest.raises(ArgumentError, match="sync_batch_normalization: inputs must be Variables for several processes"):
        F.sync_batch_normalization(*arrays, Twins())


def attention(q: Any, k: Any, v: Any, heads: int, weights: Sequence[Any], mask: Any) -> tuple[np.ndarray, np.ndarray]:
    """Attention head by head, batch entry by batch entry."""
    q, k, v = q @ weights[0], k @ weights[1], v @ weights[2]
    size = q.shape[-1] // heads
    mixed, shares = np.zeros(q.shape), []
    for batch in range(q.shape[1]):
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = q[:, batch, part] @ k[:, batch, part].T / np.sqrt(size) + mask[batch]
            share = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            mixed[:, batch, part] = share @ v[:, batch, part]
            shares.append(share)
    return mixed @ weights[3], np.stack(shares)


def test_attention_is_that_of_each_head() -> None:
    q, kv = RNG.standard_normal((3, 2, 8)), RNG.standard_normal((4, 2, 8))
    weights = RNG.standard_normal((4, 8, 8)) / 3
    added = RNG.standard_normal((3, 4))
    ignored = np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    mask = added + np.where(ignored, -np.inf, 0)[:, None]
    settings = {"additive_mask": var(added), "key_padding_mask": var(ignored)}
    results = F.multi_head_attention(var(q), var(kv), var(kv), 2, *map(var, weights), **settings)
    close(results, attention(q, kv, kv, 2, weights, mask))


def test_attention_takes_one_more_key() -> None:
    q, kv = RNG.standard_normal((3, 2, 8)), RNG.standard_normal((4, 2, 8))
    weights = np.stack([np.eye(8)] * 4)
    more = np.concatenate([kv, np.ones((1, 2, 8))])
    biases = {"attn_bias_k": var(np.ones(8)), "attn_bias_v": var(np.ones((1, 1, 8)))}
    masks = {"additive_mask": var(np.zeros((3, 4))), "key_padding_mask": var(np.zeros((2, 4)))}
    results = F.multi_head_attention(var(q), var(kv), var(kv), 4, *map(var, weights), **biases, **masks)
    close(results, attention(q, more, more, 4, weights, np.zeros((2, 3, 5))))


def test_attention_stays_finite_where_every_key_is_ignored() -> None:
    q = var(RNG.standard_normal((3, 1, 4)))
    weights = [var(np.eye(4))] * 4
    _, shares = F.multi_head_attention(q, q, q, 2, *weights, key_padding_mask=var(np.ones((1, 3))))
    np.testing.assert_allclose(shares.d, 1 / 3, 1e-6)


def test_attention_drops_weights() -> None:
    q = var(RNG.standard_normal((3, 1, 4)))
    _, shares = F.multi_head_attention(q, q, q, 2, *[var(np.eye(4))] * 4, dropout=0.5)
    assert (shares.d == 0).any()


def test_attention_refuses_what_does_not_fit() -> None:
    q, weights = var(np.zeros((3, 1, 4))), [var(np.eye(4))] * 4
    with pytest.raises(ArgumentError, match="multi_head_attention: num_heads must divide E and Ev, got 3 for 4 and 4"):
        F.multi_head_attention(q, q, q, 3, *weights)
    with pytest.raises(ArgumentError, match="attn_bias_k and attn_bias_v must be given together, got no attn_bias_v"):
        F.multi_head_attention(q, q, q, 2, *weights, attn_bias_k=var(np.zeros(4)))
