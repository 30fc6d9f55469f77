"""Philox4x32-10: the random bits of every function with the tag `seeded`.

Source: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
A backend that wants to draw the same numbers implements what this page says and nothing else:

- The key of a run is (seed, counter), two unsigned 64-bit integers.
- Element i of stream s has the number e = s * 2**40 + i. It is lane e % 4 of the block with the counter words
  (lo32(e // 4), hi32(e // 4), lo32(counter), hi32(counter)) under the key words (lo32(seed), hi32(seed)).
- ``bits``: the 32-bit word b of the element.
- ``uniform``: (b >> 8) * 2**-24, in [0, 1), the same 24 bits in every dtype.
- ``below``: (b * n) >> 32, an integer in [0, n).
- ``normal``: Box-Muller on the lane pairs (0, 1) and (2, 3). With u1 = ((b_even >> 8) + 1) * 2**-24, in (0, 1], and
  u2 = (b_odd >> 8) * 2**-24, the even lane is sqrt(-2 ln u1) cos(2 pi u2) and the odd lane sqrt(-2 ln u1) sin(2 pi u2),
  computed in double precision and then rounded.

A function that needs more than one draw for an element takes each from a stream of its own, so that no two draws of
a run share bits. Functions may be recomputed: the same key gives the same numbers. One block costs ten rounds of two
32 x 32 -> 64 bit products; the work is O(n) and vectorised over blocks.
"""

import math
from typing import Final

from nn_core.typing import Array, Namespace

N_ROUNDS: Final = 10
#: Multipliers of the two products of a round, and what is added to the key words after it (Salmon et al., table 2).
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
#: Elements of different streams never meet: no array has 2**40 elements.
STREAM_LENGTH: Final = 1 << 40

_LOW: Final = 0xFFFFFFFF


def bits(xp: Namespace, key: Array, n: int, *, stream: int = 0) -> Array:
    """Return the first `n` random words of `stream`, from [0, 2**32). int64, shape (n,)."""
    return _lanes(xp, key, n, stream).reshape(-1)[:n]


def words_at(xp: Namespace, key: Array, blocks: Array, *, stream: int = 0) -> tuple[Array, Array, Array, Array]:
    """Return the four random words of each of some `blocks` (non-negative integers) of `stream`: of elements 4 b to 4 b + 3.

    Four int64 arrays of the shape of `blocks`; for rejection methods, where a few elements draw again.
    """
    blocks = xp.asarray(blocks, dtype=xp.int64) + stream * (STREAM_LENGTH // 4)
    counter, seed = key[1:2].astype(xp.int64), key[0:1].astype(xp.int64)
    words = (blocks & _LOW, _high(blocks), counter & _LOW, _high(counter))
    return philox4x32(xp, words, (seed & _LOW, _high(seed)))


def uniform(xp: Namespace, key: Array, n: int, dtype: str = "float64", *, stream: int = 0) -> Array:
    """`n` numbers from [0, 1), multiples of 2**-24. Shape (n,); `dtype` float32 or float64, which hold them exactly."""
    return unit_interval(xp, bits(xp, key, n, stream=stream), dtype)


def normal(xp: Namespace, key: Array, n: int, dtype: str = "float64", *, stream: int = 0) -> Array:
    """`n` numbers of the standard normal distribution, at most 5.77 in magnitude. Shape (n,)."""
    lanes = unit_interval(xp, _lanes(xp, key, n, stream), "float64")
    radius = xp.sqrt(-2.0 * xp.log(lanes[:, 0::2] + 2.0**-24))
    angle = 2.0 * math.pi * lanes[:, 1::2]
    pairs = xp.stack((radius * xp.cos(angle), radius * xp.sin(angle)), axis=-1)
    return pairs.reshape(-1)[:n].astype(dtype, copy=False)


def unit_interval(xp: Namespace, words: Array, dtype: str = "float64") -> Array:
    """Random `words` as numbers in [0, 1): the upper 24 bits as a fraction."""
    return (words >> 8).astype(dtype) * 2.0**-24


def below(xp: Namespace, words: Array, n: int) -> Array:
    """Random `words` as integers in [0, n), n at most 2**32: the upper half of the product of word and n. int64.

    The chance of a value differs from 1 / n by at most 2**-32.
    """
    return _high(words * n)


def _lanes(xp: Namespace, key: Array, n: int, stream: int) -> Array:
    """Return the blocks that hold the first `n` elements of `stream`, one a row. int64, shape (ceil(n / 4), 4)."""
    return xp.stack(words_at(xp, key, xp.arange(-(-n // 4)), stream=stream), axis=-1)


def philox4x32(
    xp: Namespace, counter: tuple[Array, Array, Array, Array], key: tuple[Array, Array]
) -> tuple[Array, Array, Array, Array]:
    """Ten rounds of Philox4x32 on counter words under key words.

    All arrays are int64 with values from [0, 2**32), the results too, and broadcast against each other. Products wrap around
    2**64, so that their bits are those of unsigned ones, which not every array library has.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(N_ROUNDS):
        p0 = c0 * MULTIPLIERS[0]
        p1 = c2 * MULTIPLIERS[1]
        c0, c1, c2, c3 = _high(p1) ^ c1 ^ k0, p1 & _LOW, _high(p0) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + KEY_STEPS[0]) & _LOW, (k1 + KEY_STEPS[1]) & _LOW
    return c0, c1, c2, c3


def _high(x: Array) -> Array:
    """Return the upper 32 of 64 bits; the mask takes off what the shift copies of the sign."""
    return (x >> 32) & _LOW
