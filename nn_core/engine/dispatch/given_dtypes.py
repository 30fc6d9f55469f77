"""The dtypes of inputs that a function takes as they are given, because the context alone does not decide them."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from nn_core.operators.spec.model import INTEGERS, InputSpec, OutputSpec

#: The dtype of each input that is taken as it is, None for the others; empty where that is none.
GivenDtypes: TypeAlias = tuple[str | None, ...]

#: The kinds of inputs whose dtype has a say; see `nn_core.operators.spec.model.DTYPE_KINDS`.
GIVEN_KINDS: Final = frozenset({"same", "exact"})


def given_dtypes(entries: Sequence[InputSpec | OutputSpec], held: Sequence[str | None]) -> GivenDtypes:
    """Return the dtype in which each input is taken as it is.

    Args:
        entries: The specification of each input.
        held: The dtype of what each input holds; None for an input that is not given.
    """
    taken: list[str | None] = []
    is_floating = False  # one floating-point input decides for all that are to be exact
    for entry, dtype in zip(entries, held):  # noqa: B905  # each call of some functions passes here, and `strict` takes its time
        kind = entry.dtype
        taken.append(dtype if kind in GIVEN_KINDS else None)
        if kind == "exact" and dtype is not None and dtype not in INTEGERS:
            is_floating = True
    if is_floating:
        taken = [None if entry.dtype == "exact" else dtype for entry, dtype in zip(entries, taken, strict=True)]
    return tuple(taken) if any(taken) else ()
