"""Decoding with a cache: the same scores as the whole sequence gives, for any network and any lengths of prompts."""

import copy
import gc
import weakref

import numpy as np
import pytest

import nn_core as nn
import nn_core.functions as F
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.decoding import Cache, Decoder
from nn_core.models.sampling import Sampler
from nn_core.models.transformer import GPT, Block

N_TOKENS = 11


@pytest.fixture
def gpt():
    nn.seed(5)
    model = GPT(N_TOKENS, n_positions=24, n_layers=2, n_features=16, n_heads=4, dropout=0.5)
    model.training = False
    model(nn.Variable((1, 1)))
    for weight in model.get_parameters().values():
        weight.d += np.random.default_rng(weight.size).normal(0, 0.3, weight.shape)
    return model


def full(network, tokens):
    """Return the scores after each token, without a cache."""
    y = network(nn.Variable.from_numpy_array(np.asarray(tokens, np.int64)[None]))
    y.forward()
    return y.d[0]


def test_scores_are_those_of_the_whole_sequence_at_each_position(gpt):
    tokens = np.random.default_rng(0).integers(0, N_TOKENS, (3, 20))
    decoder = Decoder(gpt, n_sequences=3, capacity=20)
    expected = np.stack([full(gpt, row) for row in tokens])
    np.testing.assert_allclose(decoder.read(tokens[:, :7]), expected[:, 6], rtol=1e-4, atol=1e-5)
    for place in range(7, 20):
        np.testing.assert_allclose(decoder.step(tokens[:, place]), expected[:, place], rtol=1e-4, atol=1e-5)
    assert decoder.cache.lengths.tolist() == [20, 20, 20]


def test_prompts_of_different_lengths_are_as_if_each_were_alone(gpt):
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, N_TOKENS, length) for length in (17, 5, 9, 6)]
    decoder = Decoder(gpt, n_sequences=4, capacity=24)
    for _ in range(2):  # what an earlier call has left in the cache is not seen
        prompts = [sequence[:-4] for sequence in sequences]
        scores = [decoder.read(prompts)]
        scores += [decoder.step([sequence[place] for sequence in sequences]) for place in (-4, -3, -2, -1)]
        for row, sequence in enumerate(sequences):
            np.testing.assert_allclose(np.stack(scores)[:, row], full(gpt, sequence)[-5:], rtol=1e-4, atol=1e-5)
        sequences = [rng.integers(0, N_TOKENS, len(sequence)) for sequence in reversed(sequences)]


def test_greedy_tokens_are_those_of_whole_passes(gpt):
    prompts = [[1, 2, 3], [4], [5, 6, 7, 8, 9]]
    expected = []
    for prompt in prompts:
        tokens = list(prompt)
        for _ in range(8):
            tokens.append(int(full(gpt, tokens)[-1].argmax()))
        expected.append(tokens[len(prompt) :])
    assert [tokens.tolist() for tokens in gpt.generate(prompts, 8, temperature=0)] == expected
    assert gpt.generate(prompts[0], 8, temperature=0).tolist() == expected[0]
    assert gpt.generate(np.array([prompts[0]] * 2), 8, top_k=1)[1].tolist() == expected[0]


def test_a_stop_token_ends_its_sequence_and_no_other(gpt):
    free = gpt.generate([[1, 2, 3], [4]], 12, temperature=0)
    stop = int(free[0][2])
    stopped = gpt.generate([[1, 2, 3], [4]], 12, temperature=0, stop=stop)
    for with_stop, without in zip(stopped, free, strict=True):
        places = np.flatnonzero(without == stop)
        assert with_stop.tolist() == without[: places[0] + 1 if len(places) else None].tolist()
    assert len(gpt.generate([1, 2, 3], 12, temperature=0, stop=[stop, 99])) == len(stopped[0])


def test_the_seed_decides_what_is_drawn(gpt):
    def drawn(seed):
        nn.seed(seed)
        return gpt.generate([1, 2, 3], 15, temperature=2.0).tolist()

    assert drawn(1) == drawn(1) != drawn(2)


def test_the_memory_of_a_token_is_constant_and_graphs_are_used_again(gpt):
    calls = []

    def network(tokens, cache):
        calls.append(tokens.shape)
        return gpt(tokens, cache)

    decoder = Decoder(network, n_sequences=1, capacity=24)
    for _ in range(3):
        decoder.generate([[1, 2, 3]], 20)
    assert calls == [(1, 3), (1, 1)]
    assert [cache.shape for layer in decoder.cache._layers for cache in layer] == [(1, 4, 24, 4)] * 4


def test_generating_leaves_the_mode_of_training_and_has_no_dropout(gpt):
    gpt.training = True
    with nn.auto_forward():
        first = gpt.generate([1, 2, 3], 10, temperature=0)
    assert gpt.training
    assert first.tolist() == gpt.generate([1, 2, 3], 10, temperature=0).tolist()


def test_further_calls_use_the_weights_that_the_network_has_then(gpt):
    first = gpt.generate([1, 2, 3], 8, temperature=0)
    for weight in gpt.get_parameters().values():
        weight.d = np.random.default_rng(weight.size + 1).normal(0, 0.5, weight.shape)
    second = gpt.generate([1, 2, 3], 8, temperature=0)
    assert first.tolist() != second.tolist() == Decoder(gpt, 1, 11).generate([[1, 2, 3]], 8, temperature=0)[0].tolist()
    with nn.parameter_scope("", scope=gpt.parameter_scope):
        old = nn.get_parameters()["tokens/embed/W"]
        nn.parameter.set_parameter("tokens/embed/W", nn.Variable.from_numpy_array(-old.d, need_grad=True))
    third = gpt.generate([1, 2, 3], 8, temperature=0)
    assert second.tolist() != third.tolist() == Decoder(gpt, 1, 11).generate([[1, 2, 3]], 8, temperature=0)[0].tolist()


def test_what_is_kept_for_further_calls_does_not_keep_the_network(gpt):
    network = GPT(N_TOKENS, n_positions=6, n_layers=1, n_features=8, n_heads=2)
    network.generate([1], 2)
    reference = weakref.ref(network)
    copied = copy.deepcopy(network)
    assert copied.generate([1, 2], 3, temperature=0).tolist() == network.generate([1, 2], 3, temperature=0).tolist()
    del network
    gc.collect()
    assert reference() is None


class Own(nn.Module):
    """A network of a user's own: attention of PF, with the length first."""

    def call(self, tokens, cache=None):
        h = PF.embed(tokens, N_TOKENS, 8, name="tokens")
        x = F.transpose(h, (1, 0, 2))
        mask = None
        if cache is None:
            mask = nn.Variable.from_numpy_array(np.triu(np.full((x.shape[0],) * 2, -np.inf, np.float32), 1))
        y, _ = PF.multi_head_attention(x, x, x, 2, additive_mask=mask, cache=cache)
        return PF.affine(h + F.transpose(y, (1, 0, 2)), N_TOKENS, base_axis=2, name="scores")


def test_a_network_with_attention_of_pf_decodes_too():
    network = Own()
    tokens = np.random.default_rng(3).integers(0, N_TOKENS, (2, 9))
    expected = np.stack([full(network, row) for row in tokens])
    decoder = Decoder(network, n_sequences=2, capacity=9)
    scores = [decoder.read([tokens[0, :6], tokens[1, :6]])]
    scores += [decoder.step(tokens[:, place]) for place in range(6, 9)]
    np.testing.assert_allclose(np.stack(scores, 1), expected[:, 5:], rtol=1e-4, atol=1e-5)


def test_attention_with_a_cache_takes_what_it_can_honour():
    x, cache = nn.Variable((4, 2, 8)), Cache(2, 6)
    for settings, message in (
        ({"dropout": 0.1}, "with a cache there must be no dropout"),
        ({"additive_mask": nn.Variable((4, 4))}, "with a cache there must be no additive_mask"),
        ({"key_padding_mask": nn.Variable((2, 4))}, "with a cache there must be no key_padding_mask"),
        ({"add_attn_bias": True}, "with a cache there must be no add_attn_bias"),
    ):
        with pytest.raises(ArgumentError, match=message):
            PF.multi_head_attention(x, x, x, 2, cache=cache, **settings)
    assert PF.multi_head_attention(x, x, x, 2, cache=cache)[1] is None


def test_wrong_calls_are_refused(gpt):
    decoder = Decoder(gpt, n_sequences=2, capacity=5)
    for call, error, message in (
        (lambda: gpt.generate([1] * 20, 5), ArgumentError, "together must be at most 24, got 20 and 5"),
        (lambda: gpt.generate([1], 0), ArgumentError, "length must be a whole number of at least 1, got 0"),
        (lambda: gpt.generate([], 2), ArgumentError, "prompt 0 must hold at least one whole number"),
        (lambda: gpt.generate([1.5], 2), ArgumentError, "prompt 0 must hold at least one whole number"),
        (lambda: gpt.generate([1], 2, temperature=-1), ArgumentError, "temperature must be a finite number of at least 0"),
        (lambda: gpt.generate([1], 2, top_k=0), ArgumentError, "top_k must be a whole number of at least 1, got 0"),
        (lambda: gpt.generate([1], 2, top_p=1.5), ArgumentError, r"top_p must be in \(0, 1\], got 1.5"),
        (lambda: gpt.generate([99], 2), ArgumentError, "prompt 0 must hold tokens from 0 to 10, got 99"),
        (lambda: decoder.read([[1]]), ArgumentError, "there must be 2 prompts, got 1"),
        (lambda: decoder.read([[1] * 6, [1]]), ArgumentError, "must have at most 5 tokens, got 6"),
        (lambda: list(decoder.stream([[1, 2], [1]], 4)), ArgumentError, "must be at most 5, got 2 and 4 more"),
        (lambda: Block(8, 2, 8)(nn.Variable((1, 1, 8)), Cache(1, 4)), ArgumentError, "must have is_causal=True"),
        (lambda: gpt(nn.Variable((1, 1)), Cache(1, 25)), ShapeError, "capacity of at most 24, got 25"),
        (lambda: Decoder(lambda x, cache: x, 1, 3).read([[1]]), ShapeError, "the network must return scores of the shape"),
        (lambda: Cache(0, 3), ArgumentError, "n_sequences must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_a_full_cache_takes_no_more_tokens(gpt):
    decoder = Decoder(gpt, n_sequences=2, capacity=4)
    decoder.read([[1, 2, 3, 4], [5]])
    with pytest.raises(ArgumentError, match="must have at most 4 tokens, got 5"):
        decoder.step([1, 1])
    decoder.step([1, 1], keep=[False, True])
    assert decoder.cache.lengths.tolist() == [4, 2]


SCORES = np.log([[0.5, 0.3, 0.15, 0.05]])


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [0.5, 0.3, 0.15, 0.05]),
        ({"top_k": 2}, [0.625, 0.375, 0, 0]),
        ({"top_p": 0.75}, [0.625, 0.375, 0, 0]),
        ({"top_p": 0.85}, [0.5 / 0.95, 0.3 / 0.95, 0.15 / 0.95, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0]),
        ({"top_k": 3, "top_p": 0.6}, [0.625, 0.375, 0, 0]),
        ({"temperature": 0.5}, np.square([0.5, 0.3, 0.15, 0.05]) / np.sum(np.square([0.5, 0.3, 0.15, 0.05]))),
        ({"temperature": 0}, [1, 0, 0, 0]),
    ],
)
def test_tokens_are_drawn_with_their_probabilities(settings, expected):
    nn.seed(3)
    order = np.array([2, 0, 3, 1])  # so that the likely tokens are not the first
    drawn = Sampler(**settings)(np.repeat(SCORES[:, order], 20000, axis=0))
    found = np.bincount(order[drawn], minlength=4) / 20000
    np.testing.assert_allclose(found, expected, atol=0.015)
    assert not found[np.equal(expected, 0)].any()


def test_scores_without_a_largest_are_refused_and_hidden_tokens_never_drawn():
    for wrong in (np.nan, np.inf):
        with pytest.raises(ArgumentError, match=r"must be finite, got \S+ in row 1"):
            Sampler()(np.array([[0.0, 1.0], [wrong, 1.0]]))
    with pytest.raises(ArgumentError, match="must be finite, got -inf in row 0"):
        Sampler()(np.full((1, 3), -np.inf))
    hidden = np.repeat(np.array([[-np.inf, 0.0, -np.inf]], np.float32), 100, axis=0)
    assert (Sampler(top_p=0.999)(hidden) == 1).all()
