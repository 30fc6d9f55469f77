"""The arrays that the ranks reduce together: those that at least one of them has written, of one dtype on all."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from nn_core.communicators.group import Circle
from nn_core.communicators.packing import CODES, NAMES, SUMS, code_of
from nn_core.engine.arrays.ndarray import NdArray
from nn_core.errors import CommunicationError, DTypeError
from nn_core.typing import Array


class Live(NamedTuple):
    """Arrays that at least one rank has written, and their dtypes."""

    arrays: list[NdArray]
    dtypes: list[str]


def live_arrays(call: str, circle: Circle, arrays: Sequence[NdArray], subject: str) -> Live:
    """Agree on what is to be reduced, leaving out what no rank has written."""
    codes = [code_of(call, array) for array in arrays]
    digest = _digest(codes)
    return _settled(call, circle, arrays, codes, circle.agree(call, subject, 0 in codes, digest, -digest))


def single_array(call: str, circle: Circle, array: NdArray, subject: str) -> Live | None:
    """Do what `live_arrays` does for one array, in a third of the time where it was written; None where it was not."""
    known = _KNOWN.get(array.synced.dtype)
    if known is None or array.is_unwritten:
        return None
    agreed = circle.agree(call, subject, 0, known.digest, -known.digest)
    if agreed[0] or agreed[1] != -agreed[2]:
        return _settled(call, circle, [array], [CODES[known.name]], agreed)
    return Live([array], known.names)


def _digest(codes: Sequence[int]) -> int:
    return hash(tuple(codes)) >> 2


class _Known(NamedTuple):
    """Facts about one array that its dtype tells."""

    name: str
    names: list[str]
    digest: int


_KNOWN: Final = {name: _Known(name, [name], _digest([CODES[name]])) for name in SUMS}


def _settled(call: str, circle: Circle, arrays: Sequence[NdArray], codes: Sequence[int], agreed: Sequence[int]) -> Live:
    some_unwritten, most, least = agreed
    if not some_unwritten:
        if most != -least:
            raise _differing_dtypes(call, codes)
        return Live(list(arrays), [NAMES[code] for code in codes])
    highest, lowest = _exchange(circle, codes)
    if (lowest[highest > 0] != highest[highest > 0]).any():
        raise _differing_dtypes(call, codes)
    chosen = [(array, NAMES[int(code)]) for array, code in zip(arrays, highest, strict=True) if code]
    return Live([array for array, _ in chosen], [name for _, name in chosen])


def _exchange(circle: Circle, codes: Sequence[int]) -> tuple[Array, Array]:
    """Return the highest and the lowest dtype of each array over the ranks that have written it."""
    own = np.array(codes, np.int8)
    both = np.concatenate([own, np.where(own > 0, -own, -127).astype(np.int8)])
    circle.run("all_reduce", both, "max")
    return both[: own.size], -both[own.size :]


def _differing_dtypes(call: str, own: Sequence[int]) -> CommunicationError:
    names = sorted({NAMES[code] for code in own if code})
    return CommunicationError(f"{call}: an array must have one dtype on all ranks, got {', '.join(names) or 'none'} here")


def packs(live: Live, inplace: bool) -> Iterator[Live]:
    """Yield the arrays that are sent together: each by itself, or all whose sums have one dtype."""
    if len(live.arrays) == 1:
        yield live
        return
    if inplace:
        for array, dtype in zip(*live, strict=True):
            yield Live([array], [dtype])
        return
    for total in sorted({SUMS[dtype] for dtype in live.dtypes}):
        chosen = [(array, dtype) for array, dtype in zip(*live, strict=True) if SUMS[dtype] == total]
        yield Live([array for array, _ in chosen], [dtype for _, dtype in chosen])


def sum_dtype(call: str, name: str, division: bool) -> str:
    """Return the dtype in which arrays of dtype `name` are added up.

    Raises:
        DTypeError: for a dtype that cannot be added up, or divided.
    """
    if name not in SUMS:
        raise DTypeError(f"{call}: arrays must hold numbers, got {name}")
    if division and SUMS[name][0] != "f":
        raise DTypeError(f"{call}: division needs floating-point arrays, got {name}")
    return SUMS[name]
