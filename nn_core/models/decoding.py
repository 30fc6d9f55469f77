"""Decoding: a network that sees one more token at a time, with a cache of the keys and values of those before."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import is_
from typing import Any, Final, TypeAlias, cast
from weakref import WeakKeyDictionary, ref

import numpy as np
import numpy.typing as npt

import nn_core.functions as F
from nn_core.auto_forward import auto_forward
from nn_core.context import get_current_context
from nn_core.core.module import Module
from nn_core.engine.error_messages.refusal import checked_count, described, fitted, fitted_methods
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.sampling import Sampler, Scores, Tokens
from nn_core.variable import Variable

#: The tokens of one sequence, as a list or an array.
Prompt: TypeAlias = Sequence[int] | npt.NDArray[Any]


class Cache:
    """The keys and values of all tokens so far, for a batch of sequences and every attention of a network.

    A network uses it wherever a token depends on others: `attend` stands for attention, `positions` has the places of the
    tokens in their sequences, and `last` picks the states from which the next tokens follow. Its memory is allocated once.

    Args:
        n_sequences: Number of sequences, N.
        capacity: Largest number of tokens in a sequence.

    Example:
        A language model with one attention, which decodes with a cache and trains without:

        >>> from nn_core.models.decoding import Cache, Decoder
        >>> class Model(nn.Module):
        ...     def call(self, tokens, cache=None):
        ...         n, steps = tokens.shape
        ...         h = PF.embed(tokens, 10, 8, name="tokens")
        ...         q, k, v = F.split(F.reshape(PF.affine(h, 24, base_axis=2), (n, 1, steps, 3, 8)), axis=3)
        ...         if cache is None:
        ...             h = h + F.reshape(F.scaled_dot_product_attention(q, k, v, is_causal=True), h.shape)
        ...         else:
        ...             h = cache.last(h + F.reshape(cache.attend(q, k, v), h.shape))
        ...         return PF.affine(h, 10, base_axis=2, name="scores")
        >>> decoder = Decoder(Model(), n_sequences=2, capacity=20)
        >>> [len(tokens) for tokens in decoder.generate([[1, 2, 3], [4]], length=5)]
        [5, 5]
    """

    @fitted
    def __init__(self, n_sequences: int, capacity: int) -> None:
        self.n_sequences = checked_count("Cache: n_sequences", n_sequences)
        self.capacity = checked_count("Cache: capacity", capacity)
        self._lengths = _whole_numbers(self.n_sequences)
        self._last = _whole_numbers(self.n_sequences, 1)
        self._positions: dict[int, Variable] = {}
        self._layers: list[tuple[Variable, Variable]] = []
        self._next = 0

    @property
    def lengths(self) -> Tokens:
        """How many tokens of each sequence the cache holds. Shape (N,)."""
        held: Tokens = self._lengths.d
        return held.copy()

    @property
    def n_bytes(self) -> int:
        """Bytes of all keys and values, in float32."""
        return 4 * sum(room.size for layer in self._layers for room in layer)

    def attend(self, q: Variable, k: Variable, v: Variable, scale: float | None = None) -> Variable:
        """Append the keys and values of new tokens, and attend to all tokens up to each of them.

        The attentions of a network are told apart by the order in which they are called.

        Args:
            q: Queries, shape (N, heads, L, E).
            k: Keys, shape (N, heads, L, E).
            v: Values, shape (N, heads, L, V).
            scale: Factor of the scores. Default: 1 / sqrt(E).

        Returns:
            Shape (N, heads, L, V).

        Raises:
            ShapeError: when the arrays do not fit each other, `n_sequences`, or what the attention was called with before.
        """
        if q.ndim != 4 or q.shape[0] != self.n_sequences:
            raise ShapeError(f"attend: q must have the shape ({self.n_sequences}, heads, L, E), got {q.shape}")
        number, self._next = self._next, self._next + 1
        if number == len(self._layers):
            self._layers.append((self._room(k), self._room(v)))
        return F.cached_attention(q, k, v, *self._layers[number], self._lengths, scale)

    def positions(self, n_new: int) -> Variable:
        """Return the places of `n_new` new tokens in their sequences, counted from 0; shape (N, n_new)."""
        if n_new not in self._positions:
            self._positions[n_new] = _whole_numbers(self.n_sequences, n_new)
            self._place(n_new)
        return self._positions[n_new]

    def last(self, x: Variable) -> Variable:
        """Pick the state of the last new token of each sequence: of x, shape (N, L, E), a result of shape (N, 1, E)."""
        return x if x.shape[1] == 1 else F.gather(x, self._last, axis=1, batch_dims=1)

    def begin(self) -> None:
        """Note that a graph begins: the attention that is called next is the first one of the network."""
        self._next = 0

    def place(self, lengths: npt.ArrayLike, n_new: int, counts: npt.ArrayLike) -> None:
        """Set where the new tokens of the next pass go.

        Args:
            lengths: How many tokens of each sequence are kept; what the cache holds beyond them is overwritten.
            n_new: Number of new tokens, L.
            counts: How many of them are tokens of the sequence; the rest is padding. Shape (N,).
        """
        self._lengths.d[...] = lengths
        self._last.d[...] = np.subtract(counts, 1).reshape(-1, 1)
        self._place(n_new)

    def _place(self, n_new: int) -> None:
        if n_new in self._positions:
            places = self._lengths.d[:, None] + np.arange(n_new)
            self._positions[n_new].d[...] = np.minimum(places, self.capacity - 1)

    def _room(self, like: Variable) -> Variable:
        n, heads, _, features = like.shape
        return Variable((n, heads, self.capacity, features))


@fitted_methods("step")
class Decoder:
    """A network that generates tokens with a cache. Its graphs are built once, and used again by later calls.

    A prompt takes one pass, and each token another one over a graph of constant size. Prompts of different lengths are
    padded at their ends; attention never sees the padding.

    Args:
        network: Computes scores from new tokens and the cache: called with a Variable of shape (N, L) and a `Cache`, it
            returns the scores of the next tokens, shape (N, 1, n_tokens) or, for each new token, (N, L, n_tokens). It is
            called when a graph is built, once for single tokens and once for each length of padded prompts.
        n_sequences: Number of sequences, N.
        capacity: Largest number of tokens in a sequence, those of the prompt included.

    Raises:
        ArgumentError: when a number is not at least 1.

    Example:
        >>> from nn_core.models.transformer import GPT
        >>> from nn_core.models.decoding import Decoder
        >>> gpt = GPT(n_tokens=100, n_positions=16, n_layers=2, n_features=16, n_heads=4)
        >>> gpt.training = False
        >>> decoder = Decoder(gpt, n_sequences=1, capacity=16)
        >>> for token in decoder.stream([[5, 3, 8]], length=2, temperature=0):
        ...     print(token.shape)
        (1,)
        (1,)
    """

    @fitted
    def __init__(self, network: Callable[[Variable, Cache], Variable], n_sequences: int, capacity: int) -> None:
        self._network = network
        self.cache = Cache(n_sequences, capacity)
        self._graphs: dict[int, tuple[Variable, Variable]] = {}

    def read(self, prompts: Sequence[Prompt]) -> Scores:
        """Begin new sequences with `prompts`, and return the scores of the tokens after them.

        Args:
            prompts: The tokens of each sequence, which may have different lengths.

        Returns:
            Shape (N, n_tokens).

        Raises:
            ArgumentError: when there are not `n_sequences` prompts, one is empty or longer than the capacity, or holds
                something else than whole numbers.
        """
        rows = checked_prompts("read", prompts)
        if len(rows) != self.cache.n_sequences:
            raise ArgumentError(f"read: there must be {self.cache.n_sequences} prompts, got {len(rows)}")
        counts = [len(row) for row in rows]
        if max(counts) > self.cache.capacity:
            raise ArgumentError(f"read: a prompt must have at most {self.cache.capacity} tokens, got {max(counts)}")
        padded = np.zeros((len(rows), _rounded(max(counts), self.cache.capacity)), np.int64)
        for row, tokens in zip(padded, rows, strict=True):
            row[: len(tokens)] = tokens
        scores = self._scores(padded, np.zeros(len(rows), np.int64), counts)
        self.cache.place(counts, 1, 1)
        return scores

    def step(self, tokens: npt.ArrayLike, keep: npt.ArrayLike | None = None) -> Scores:
        """Append a token to each sequence, and return the scores of the tokens after them.

        Args:
            tokens: Shape (N,).
            keep: False for sequences that are finished: they stay as they are, and their scores have no meaning.

        Returns:
            Shape (N, n_tokens).

        Raises:
            ArgumentError: when a sequence has as many tokens as the capacity.
        """
        lengths = self.cache.lengths
        going = np.ones(len(lengths), bool) if keep is None else np.asarray(keep, bool)
        if int(lengths[going].max(initial=0)) >= self.cache.capacity:
            raise ArgumentError(f"step: a sequence must have at most {self.cache.capacity} tokens, got {lengths.max() + 1}")
        scores = self._scores(np.reshape(tokens, (-1, 1)), np.minimum(lengths, self.cache.capacity - 1), 1)
        self.cache.place(lengths + going, 1, 1)
        return scores

    def stream(
        self,
        prompts: Sequence[Prompt],
        length: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Sequence[int] | None = None,
    ) -> Iterator[Tokens]:
        """Generate the next tokens of all sequences, one after the other; the arguments are those of `generate`.

        Yields:
            The next token of each sequence, -1 for sequences that have ended. Shape (N,).
        """
        length = checked_count("generate: length", length)
        sampler, stops = Sampler(temperature, top_k, top_p), _stops(stop)
        prompts = checked_prompts("generate", prompts)
        longest = max((len(prompt) for prompt in prompts), default=0)
        if longest + length > self.cache.capacity:
            text = f"{self.cache.capacity}, got {longest} and {length} more"
            raise ArgumentError(f"generate: prompt and generated tokens must be at most {text}")
        return self._streamed(prompts, length, sampler, stops)

    def generate(
        self,
        prompts: Sequence[Prompt],
        length: int,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        stop: int | Sequence[int] | None = None,
    ) -> list[Tokens]:
        """Generate the tokens that follow each prompt.

        Args:
            prompts: The tokens of each sequence, which may have different lengths.
            length: Largest number of tokens to generate.
            temperature, top_k, top_p: How tokens are drawn; see `nn_core.models.sampling.Sampler`.
            stop: A token, or some, after which a sequence ends.

        Returns:
            The new tokens of each sequence, with the one that ended it.

        Raises:
            ArgumentError: when an argument is out of range, or prompt and generated tokens exceed the capacity.
        """
        steps = list(self.stream(prompts, length, temperature, top_k, top_p, stop))
        return [column[column >= 0] for column in np.stack(steps, axis=1)]

    def _streamed(self, prompts: Sequence[Prompt], length: int, sampler: Sampler, stops: frozenset[int]) -> Iterator[Tokens]:
        going = np.ones(self.cache.n_sequences, bool)
        scores = self.read(prompts)
        for number in range(length):
            tokens = sampler(scores)
            yield np.where(going, tokens, -1)
            going &= [int(token) not in stops for token in tokens] if stops else True
            if number + 1 == length or not going.any():
                return
            scores = self.step(tokens, going)

    def _scores(self, tokens: npt.NDArray[Any], lengths: Tokens, counts: npt.ArrayLike) -> Scores:
        """Run the graph for so many new tokens."""
        if tokens.shape[1] not in self._graphs:
            self._graphs[tokens.shape[1]] = self._built(tokens.shape[1])
        x, y = self._graphs[tokens.shape[1]]
        x.d[...] = tokens
        self.cache.place(lengths, tokens.shape[1], counts)
        y.forward(clear_buffer=True)
        scores: Scores = y.d  # the next pass writes there
        return scores.reshape(len(tokens), -1).copy()

    def _built(self, n_new: int) -> tuple[Variable, Variable]:
        x = _whole_numbers(self.cache.n_sequences, n_new)
        self.cache.begin()
        with auto_forward(False):
            y = self._network(x, self.cache)
            if not isinstance(y, Variable) or y.ndim != 3 or y.shape[:2] not in (x.shape, (x.shape[0], 1)):
                expected = f"({x.shape[0]}, 1, n_tokens) or ({x.shape[0]}, {n_new}, n_tokens)"
                raise ShapeError(f"Decoder: the network must return scores of the shape {expected}, got {described(y)}")
            return x, self.cache.last(y)


#: A decoder is kept only where its cache has at most so many bytes: building graphs takes long beside small networks only.
_KEPT_BYTES: Final = 2**26
#: The decoder that the last call for a network has left, with its settings and parameters.
_KEPT: Final[WeakKeyDictionary[Module, tuple[tuple[Any, ...], list[Variable], Decoder]]] = WeakKeyDictionary()


@fitted
@contextmanager
def decoder_of(network: Module, parameters: list[Variable], n_sequences: int, length: int, longest: int) -> Iterator[Decoder]:
    """Give a decoder for a network: that of the last call, if it fits and nobody uses it, or a new one.

    Args:
        network: A module, which is called as `Decoder` says.
        parameters: The parameters that it uses now.
        n_sequences: Number of sequences.
        length: Largest number of tokens in a sequence of this call.
        longest: Largest number of tokens in a sequence of any call.
    """
    key = n_sequences, get_current_context().key
    known = _KEPT.pop(network, None)  # another thread gets one of its own
    if known is not None and _fits(known, key, parameters) and known[2].cache.capacity >= length:
        decoder = known[2]
    else:
        reference = ref(network)  # a kept decoder must not keep its network

        def call(tokens: Variable, cache: Cache) -> Any:
            return cast(Any, reference())(tokens, cache)

        decoder = Decoder(call, n_sequences, _rounded(length, longest))
    yield decoder
    if decoder.cache.n_bytes <= _KEPT_BYTES:
        _KEPT[network] = key, parameters, decoder


def _fits(known: tuple[tuple[Any, ...], list[Variable], Decoder], key: tuple[Any, ...], parameters: list[Variable]) -> bool:
    return known[0] == key and len(known[1]) == len(parameters) and all(map(is_, known[1], parameters))


def is_several(prompt: Any) -> bool:
    """Tell whether these are several prompts, and not the tokens of one."""
    return hasattr(prompt, "__len__") and len(prompt) > 0 and np.ndim(prompt[0]) > 0


def _whole_numbers(*shape: int) -> Variable:
    return Variable.from_numpy_array(np.zeros(shape, np.int64))


def _rounded(length: int, capacity: int) -> int:
    """Return the length of padded prompts: lengths that differ by little share a graph."""
    step = 1 << max((length - 1).bit_length() - 3, 0)
    return min(-(-length // step) * step, capacity)


def checked_prompts(function: str, prompts: Sequence[Prompt], n_tokens: int | None = None) -> list[Tokens]:
    """Return the tokens of each prompt as an array.

    Raises:
        ArgumentError: when a prompt is empty, or holds something else than tokens, which are below `n_tokens`.
    """
    return [_tokens(function, prompt, number, n_tokens) for number, prompt in enumerate(prompts)]


def _tokens(function: str, prompt: Prompt, number: int, n_tokens: int | None) -> Tokens:
    tokens = np.asarray(prompt)
    if tokens.ndim != 1 or not tokens.size or tokens.dtype.kind not in "iu":
        raise ArgumentError(f"{function}: prompt {number} must hold at least one whole number, got {described(prompt)}")
    wrong = tokens[tokens < 0] if n_tokens is None else tokens[(tokens < 0) | (tokens >= n_tokens)]
    if wrong.size:
        allowed = "of at least 0" if n_tokens is None else f"from 0 to {n_tokens - 1}"
        raise ArgumentError(f"{function}: prompt {number} must hold tokens {allowed}, got {wrong[0]}")
    return tokens.astype(np.int64)


def _stops(stop: int | Sequence[int] | None) -> frozenset[int]:
    if stop is None:
        return frozenset()
    tokens = np.atleast_1d(np.asarray(stop))
    if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
        raise ArgumentError(
            f"generate: stop must be a token or a list of some, which are whole numbers, got {described(stop)}"
        )
    return frozenset(tokens.tolist())
