"""Tokens drawn from the scores of a language model."""

from typing import Any

import numpy as np
import numpy.typing as npt

from nn_core.engine.error_messages.refusal import checked_count, described, fitted
from nn_core.engine.graph.seeds import FUNCTION_SEED
from nn_core.errors import ArgumentError

Scores = npt.NDArray[np.floating[Any]]
Tokens = npt.NDArray[np.int64]


class Sampler:
    """A rule by which the next tokens are drawn.

    Its random numbers follow from `nn_core.seed`, as those of random functions do: a sampler takes one key from that
    source when it is made.

    Args:
        temperature: The scores are divided by it: below 1 likely tokens become more likely, above 1 less so. 0 takes the
            most likely token.
        top_k: The `top_k` most likely tokens are drawn from. Default: all.
        top_p: The most likely tokens are drawn from that have at least this probability together, in (0, 1]. After
            `top_k`. Default: all.

    Raises:
        ArgumentError: when one of them is out of range.

    References:
        Fan et al. (2018), Hierarchical neural story generation, for `top_k`. Holtzman et al. (2020), The curious case of
        neural text degeneration, for `top_p`.

    Example:
        >>> from nn_core.models.sampling import Sampler
        >>> Sampler(temperature=0)(np.array([[0.1, 0.7, 0.2]])).tolist()
        [1]
    """

    @fitted
    def __init__(self, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None) -> None:
        self._temperature = _number("temperature", temperature)
        if not 0 <= self._temperature < np.inf:
            raise ArgumentError(f"generate: temperature must be a finite number of at least 0, got {described(temperature)}")
        self._top_k = None if top_k is None else checked_count("generate: top_k", top_k)
        self._top_p = 1.0 if top_p is None else _number("top_p", top_p)
        if not 0 < self._top_p <= 1:
            raise ArgumentError(f"generate: top_p must be in (0, 1], got {described(top_p)}")
        seed, counter = FUNCTION_SEED.draw()
        self._random = np.random.Generator(np.random.Philox(key=[seed, counter]))

    def __call__(self, scores: Scores) -> Tokens:
        """Draw a token for each row.

        Args:
            scores: Logarithms of probabilities, up to a constant for each row; -inf for what must not be drawn. Shape
                (N, n_tokens).

        Returns:
            Shape (N,).

        Raises:
            ArgumentError: when the scores of a row hold NaN or inf, or nothing but -inf.
        """
        largest = scores.max(axis=1, initial=-np.inf)
        if not np.isfinite(largest).all():
            row = int(np.argmin(np.isfinite(largest)))
            raise ArgumentError(f"generate: the largest score of a sequence must be finite, got {largest[row]} in row {row}")
        if self._temperature == 0 or self._top_k == 1:
            return scores.argmax(axis=1)
        drawn = self._random.random(len(scores))
        return np.array([self._drawn(row, u) for row, u in zip(scores, drawn, strict=True)], np.int64)

    def _drawn(self, scores: Scores, u: float) -> int:
        places = None
        if self._top_k is not None and self._top_k < len(scores):
            places = np.argpartition(scores, -self._top_k)[-self._top_k :]
            scores = scores[places]
        if self._top_p < 1:
            order = np.argsort(-scores, kind="stable")
            places = order if places is None else places[order]
            scores = scores[order]
        scaled = (scores.astype(np.float64) - scores.max()) / self._temperature
        reached = np.cumsum(np.exp(scaled))
        if self._top_p < 1:  # the first places whose sum is large enough
            reached = reached[: 1 + int(np.searchsorted(reached, self._top_p * reached[-1]))]
        place = min(int(np.searchsorted(reached, u * reached[-1], side="right")), len(reached) - 1)
        return place if places is None else int(places[place])


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"generate: {name} must be a number, got {described(value)}")
    return float(value)
