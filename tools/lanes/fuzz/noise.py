"""Changes of the truth that a run may make: rounding as noise, NaN and infinities that spread; the tolerances that follow."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.engine.graph.node import Node, Storage
from nn_core.errors import NNCoreError
from tools.lanes.specials import SPREADING

from .program import Array


@dataclass(frozen=True)
class Precision:
    """How exactly functions compute whose contexts have a dtype.

    Attributes:
        noise: Relative size of the noise: some units in the last place.
        of_terms: The same as a part of the largest number: kernels compute small results from large terms.
        floor: Tolerance relative to the largest magnitude, if noise changes nothing.
        useless: Results that the noise changes by more than this part of their magnitude tell nothing.
        allowed: How often a difference that the noise made is allowed.
        draws: Draws of noise before a result counts as different: they must meet each jump that a run may meet.
    """

    noise: float
    of_terms: float
    floor: float
    useless: float
    allowed: float
    draws: int


PRECISIONS: Final = {
    "float32": Precision(1e-6, 1.2e-7, 4e-6, 0.02, 12.0, 12),
    "float16": Precision(1.5e-3, 2e-4, 4e-3, 0.1, 6.0, 60),
    "bfloat16": Precision(1.2e-2, 1.6e-3, 3.2e-2, 0.2, 6.0, 60),
}
#: Those of half precision.
HALVES: Final = ("float16", "bfloat16")
#: Draws of noise that the tolerance of a result comes from at first; where it is beyond it, as many as `Precision` says.
FEW: Final = 1
#: A tolerance that says: NaN or an infinity, whichever.
NOT_FINITE: Final = -np.inf
#: Results as large as this tell nothing: float32 may not hold what they are computed from.
FARTHEST: Final = 1e12

_TINY: Final = np.finfo(np.float32).tiny
#: Ordinary numbers in the place of others: what differs between them depends on what they stand for.
_ORDINARY: Final = (0.5, 0.75)

#: From here on numbers are infinite in float16: those below round to its largest one, 65504.
_BEYOND: Final = 65520.0
#: Inputs and results that have the dtype of the context, or are whole numbers.
_OF_CONTEXT: Final = ("float", "exact")

_Key = TypeVar("_Key")
#: Changes the numbers of an array as rounding to a dtype might.
Change: TypeAlias = Callable[[Array, Precision, str], Array]


@dataclass(frozen=True)
class Dtypes:
    """The dtypes of half precision that functions have; where one is not named, it is float32.

    Attributes:
        noise: Of each function the coarsest, of values and gradients.
        computed: In which each function computes, to which its inputs are rounded.
        held: Of each result.
    """

    noise: Mapping[Node, str] = field(default_factory=dict)
    computed: Mapping[Node, str] = field(default_factory=dict)
    held: Mapping[Storage, str] = field(default_factory=dict)

    def read(self, array: Array, node: Node, dtype: str) -> Array:
        """Return an input of a dtype of the specification as the function reads it: infinite where that does not hold it."""
        return _held(array, self.computed.get(node)) if dtype in _OF_CONTEXT else array

    def stored(self, array: Array, storage: Storage) -> Array:
        """Return a result as its array holds it."""
        return _held(array, self.held.get(storage))


def _held(array: Array, dtype: str | None) -> Array:
    if dtype != "float16" or array.dtype.kind != "f":
        return array
    return np.where(np.abs(array) >= _BEYOND, np.copysign(np.inf, array), array)


@dataclass(frozen=True)
class Noise:
    """One way to compute the truth again.

    Attributes:
        dtypes: In which functions compute.
        change: Applied to what functions read and give.
        single: Whether kernels compute in float32.
        spreads: Whether NaN and infinities reach more than what depends on them, where docs/special_values.md allows it...
        number: ...and what they become there; None: they are left out where nothing depends on them.
        overflows: Whether gradients overflow in half precision, as results always do: those of leaves and what is added up
            within a function do not have to.
    """

    dtypes: Dtypes = field(default_factory=Dtypes)
    change: Change | None = None
    single: bool = False
    spreads: bool = False
    number: float | None = None
    overflows: bool = False

    @property
    def is_exact(self) -> bool:
        """Return whether it changes nothing."""
        return self.change is None and not self.spreads and not self.overflows

    def gradient(self, array: Array, node: Node) -> Array:
        """Return a gradient that a function gets or gives, or what it is computed from, with noise."""
        array = self.disturbed(array, node)
        return _held(array, self.dtypes.noise.get(node)) if self.overflows else array

    def disturbed(self, array: Array, node: Node) -> Array:
        """Return the array with noise, if it holds floating-point numbers."""
        if self.change is None or array.dtype.kind != "f":
            return array
        dtype = self.dtypes.noise.get(node, "float32")
        with np.errstate(all="ignore"):
            return self.change(array, PRECISIONS[dtype], dtype)

    def spread(self, node: Node, arrays: Sequence[Any], results: Sequence[Any], run: Callable[..., Sequence[Any]]) -> Any:
        """Return `results`, which `run` gives for `arrays`, with NaN and infinities as far as they may reach."""
        if not (self.spreads and SPREADING & {node.spec.topic, node.spec.name} and _has_specials([*arrays, *results])):
            return results
        try:
            one, other = (run(*(_ordinary(array, number) for array in arrays)) for number in _ORDINARY)
        except NNCoreError:
            return results
        return tuple(self._spread(*arrays) for arrays in zip(results, one, other, strict=True))

    def _spread(self, result: Any, one: Any, other: Any) -> Any:
        if result is None or one is None or np.asarray(result).dtype.kind != "f":
            return result
        independent = np.equal(one, other)
        if self.number is None:
            return np.where(independent, one, result)
        return np.where(independent | ~np.isfinite(result), self.number, result)


def dtypes_of(order: Sequence[Node], dtype: str, leaves: Mapping[Storage, str]) -> Dtypes:
    """Return the dtypes in which functions compute, values and gradients, where they are not float32.

    It is that of its context, for which `dtype` stands where the context is not of half precision; a function that only moves
    elements of half precision, which `leaves` may have, keeps them, and rounds the gradient.
    """
    moved, noise, computed, held = dict(leaves), dict[Node, str](), dict[Node, str](), dict[Storage, str]()
    for node in order:
        own = node.context.dtype
        computed[node] = own if own in HALVES else dtype
        first = next((value for value in node.inputs if value is not None), None)
        kept = moved.get(first.storage, computed[node]) if first is not None else computed[node]
        for entry, storage in zip(node.spec.outputs, node.storages, strict=False):
            same = entry.dtype == "same" or node.spec.has("view")
            moved[storage] = kept if same else computed[node]
            if same or entry.dtype in _OF_CONTEXT:
                held[storage] = moved[storage]
            noise[node] = max(moved[storage], computed[node], key=lambda name: PRECISIONS[name].noise)
    return Dtypes(*(_of_half_precision(found) for found in (noise, computed, held)))


def _of_half_precision(found: Mapping[_Key, str]) -> dict[_Key, str]:
    return {key: name for key, name in found.items() if name != "float32"}


def is_floating(array: Array) -> bool:
    """Return whether an array holds floating-point numbers; the kind of bfloat16 is another one."""
    return array.dtype.kind in "fV"


def _has_specials(arrays: Sequence[Any]) -> bool:
    return any(array is not None and not np.all(np.isfinite(array)) for array in arrays)


def _ordinary(array: Any, number: float) -> Any:
    return array if array is None or np.all(np.isfinite(array)) else np.where(np.isfinite(array), array, number)


def shaken(seed: int) -> Change:
    """Return noise as large as a precision says; zeros get the other sign, which kernels do not promise."""
    rng = np.random.default_rng(seed)

    def change(array: Array, precision: Precision, dtype: str) -> Array:
        relative = precision.noise * rng.uniform(-1.0, 1.0, array.shape)
        absolute = precision.of_terms * rng.uniform(-1.0, 1.0, array.shape)
        largest = np.max(np.abs(array), initial=0.0, where=np.isfinite(array))
        return np.where(array == 0, -array, array * (1.0 + relative) + largest * absolute)

    return change


def coarse(array: Array, precision: Precision, dtype: str) -> Array:
    """Return it with fewer bits: the errors of equal numbers are equal, and add up where `shaken` makes them cancel."""
    mantissa, exponent = np.frexp(array)
    return np.ldexp(np.floor(mantissa / precision.noise) * precision.noise, exponent)


def rounded(array: Array, precision: Precision, dtype: str) -> Array:
    """Return it in the dtype, for functions that compute in float32: sums of equal errors are seen, and what cancels."""
    single = array.astype(dtype_of(dtype)).astype(np.float32)
    return np.where(np.abs(single) < _TINY, np.copysign(np.float32(0), single), single)  # as kernels may flush subnormals


def kinds(dtypes: Dtypes, draws: int, *, special: bool) -> list[Noise]:
    """Return all noise for a number of draws; `special` if there are NaN or infinities."""
    spread = [Noise(dtypes, spreads=True, number=n) for n in (None, np.nan, np.inf, -np.inf)] if special else []
    overflow = [Noise(dtypes, overflows=True)] if "float16" in dtypes.noise.values() else []
    fixed = [Noise(dtypes, coarse), Noise(dtypes, rounded, single=True)]
    return [*spread, *overflow, *fixed, *(Noise(dtypes, shaken(n)) for n in range(1, draws + 1))]


def least_tolerance(exact: Array, precision: Precision) -> float:
    """Return the tolerance of rounding alone."""
    if exact.dtype.kind != "f" or not exact.size:
        return 0.0
    scale = magnitude(exact)
    return precision.floor * scale + 1e-6 if scale < FARTHEST else 0.0


def magnitude(array: Array) -> float:
    """Return the largest magnitude of what is finite; 0 where nothing is."""
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def tolerance(exact: Array, noisy: Sequence[Array], precision: Precision) -> float | Array:
    """Return how far a result may be from the truth, with what `noisy` noise makes of it; infinite where rounding decides.

    NaN and infinities have no distance: where noise makes them of others, or others of them, everything is allowed. Where it
    makes them of each other, each of them is, which `NOT_FINITE` says.
    """
    if exact.dtype.kind != "f":
        return 0.0 if all(np.array_equal(exact, other) for other in noisy) else np.inf
    if not exact.size:
        return 0.0
    finite = np.isfinite(exact)
    same = np.all([np.isfinite(other) == finite for other in noisy], axis=0)
    where = same & finite
    scale = float(np.max(np.abs(exact), initial=0.0, where=where))
    with np.errstate(invalid="ignore"):
        spread = max(float(np.max(np.abs(exact - other), initial=0.0, where=where)) for other in noisy)
    if not scale < FARTHEST or not spread <= precision.useless * max(scale, 1e-3):
        return np.inf
    allowed = precision.allowed * spread + precision.floor * scale + 1e-6
    if finite.all() and same.all():
        return allowed
    alike = finite | np.all([_same(exact, other) for other in noisy], axis=0)
    return np.where(same, np.where(alike, allowed, NOT_FINITE), np.inf)


def _same(one: Array, other: Array) -> Array:
    return np.asarray((one == other) | (np.isnan(one) & np.isnan(other)))


def agree(given: Array, exact: Array, allowed: float | Array) -> bool:
    """Return whether all numbers are within a tolerance of the truth, and NaN and infinities where they are in the truth."""
    if given.shape != exact.shape:
        return False
    with np.errstate(invalid="ignore"):
        near = np.abs(given - exact) <= allowed  # False for NaN and infinities
    if near.all():
        return True
    known, special = np.isfinite(allowed), np.equal(allowed, NOT_FINITE)
    return bool(np.all(np.where(known, near | _same(given, exact), np.where(special, ~np.isfinite(given), True))))
