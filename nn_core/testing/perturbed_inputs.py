"""Other numbers for the inputs of a sample, at which the function gives other results: a kernel that returns what it
computed for the first ones is then found.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Final, TypeAlias

import numpy as np

from nn_core.errors import NNCoreError
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.expected import Numbers, rounded
from nn_core.testing.operators import KEY, hidden_results, run
from nn_core.testing.samples.registry import CONSTANT, Sample, numbers_of, samples_of

Inputs: TypeAlias = tuple[Numbers | None, ...]

#: A second key for seeded functions.
OTHER_KEY: tuple[int, int] = (8, 3)
#: A sample is drawn anew this many times before its numbers are rearranged or replaced.
DRAWS: Final = 4
#: The last resort to change results: equal numbers for comparisons, and what `IsNaN` and `IsInf` look for.
_FILLS: Final = (0.0, 1.0, np.nan, np.inf)
#: Results differ where they are this far from each other, relative to the largest: more than any tolerance of the kit.
_CLEARLY: Final = 1e-2


@lru_cache(maxsize=512)  # each test of a short run asks for one sample of each function
def other_numbers(spec: FunctionSpec, sample: Sample, dtype: str) -> tuple[Inputs, bool]:
    """Return inputs of the same shapes as those of `sample`, and whether the visible results for them differ clearly.

    The first ones that make a difference are taken: the sample drawn anew, its numbers in the opposite order, and
    floating inputs full of one number. Where none does, as for arrays without elements, they are the sample drawn anew.
    Seeded functions draw from `OTHER_KEY`.
    """
    first = _rounded(numbers_of(spec, sample), dtype)
    before = _results(spec, sample, first, KEY)
    fallback = None
    for inputs in _candidates(spec, sample, first, dtype):
        results = _results(spec, sample, inputs, OTHER_KEY)
        if results is None:
            continue
        if before is not None and _differ(before, results):
            return inputs, True
        fallback = fallback or inputs
    return fallback or first, False


def has_other_results(spec: FunctionSpec) -> bool:
    """Return whether some sample of the function has a second call with other results, or cannot have one."""
    if spec.name in CONSTANT or not (spec.inputs or spec.has("seeded")):
        return True
    return any(other_numbers(spec, sample, "float32")[1] for sample in samples_of(spec))


def _candidates(spec: FunctionSpec, sample: Sample, first: Inputs, dtype: str) -> Iterator[Inputs]:
    shapes = _shapes(first)
    for attempt in range(1, DRAWS + 1):
        drawn = _rounded(numbers_of(spec, sample, attempt), dtype)
        if _shapes(drawn) == shapes:
            yield drawn
    yield _changed(first, _backwards, kinds="f")  # matrices stay symmetric or positive definite
    yield _changed(first, _backwards, kinds="fi")
    for number in _FILLS:
        yield _changed(first, partial(np.full_like, fill_value=number), kinds="f")


def _backwards(array: Numbers) -> Numbers:
    return np.flip(array).copy()


def _changed(inputs: Inputs, change: Callable[[Numbers], Numbers], kinds: str) -> Inputs:
    return tuple(change(array) if array is not None and array.dtype.kind in kinds else array for array in inputs)


def _rounded(inputs: Inputs, dtype: str) -> Inputs:
    return tuple(rounded(array, dtype) for array in inputs)


def _shapes(inputs: Inputs) -> list[tuple[int, ...] | None]:
    return [None if array is None else array.shape for array in inputs]


def _results(spec: FunctionSpec, sample: Sample, inputs: Inputs, key: tuple[int, int]) -> Sequence[Numbers] | None:
    """Return the visible results, or None where the function refuses the numbers."""
    try:
        results = run(spec.name, *inputs, key=key if spec.has("seeded") else None, **sample.args)
    except (NNCoreError, ValueError, IndexError):
        return None
    visible: Sequence[Numbers] = results[: len(results) - hidden_results(spec)]
    return visible


def _differ(one: Sequence[Numbers], other: Sequence[Numbers]) -> bool:
    """Return whether some result has another shape or numbers further away than any tolerance of the kit."""
    return any(a.shape != b.shape or not _are_close(a, b) for a, b in zip(one, other, strict=True))


def _are_close(one: Numbers, other: Numbers) -> bool:
    scale = float(np.max(np.abs(one), initial=1.0, where=np.isfinite(one)))
    return np.allclose(one, other, rtol=_CLEARLY, atol=_CLEARLY * scale, equal_nan=True)
