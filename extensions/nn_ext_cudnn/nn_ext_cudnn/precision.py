"""The choice of engines by precision: what they note about their arithmetic, and what the process allows."""

from typing import Final

from nn_core.ext import forget_prepared
from nn_ext_cuda.gemm.precision import is_tf32_allowed

#: cudnnBackendNumericalNote_t.
TENSOR_CORE: Final = 0
DOWN_CONVERT_INPUTS: Final = 1
REDUCED_PRECISION_REDUCTION: Final = 2
FFT: Final = 3
NONDETERMINISTIC: Final = 4
WINOGRAD: Final = frozenset({5, 6, 7, 8})

_nondeterministic = False
_autotuning = True


def allow_nondeterministic(allowed: bool = True) -> None:
    """Let cuDNN choose engines that give other bits from run to run, or forbid it; forbidden at the start.

    Such engines add up gradients of filters in the order in which blocks happen to finish, and are faster for some
    shapes. It holds for the whole process, and for functions that are set up from now on.
    """
    global _nondeterministic  # noqa: PLW0603 -- one setting of the process, as TF32 is
    if _nondeterministic != bool(allowed):
        _nondeterministic = bool(allowed)
        forget_prepared()


def is_nondeterministic_allowed() -> bool:
    """Return whether engines may give other bits from run to run."""
    return _nondeterministic


def allow_autotuning(allowed: bool = True) -> None:
    """Time engines for exact float32 convolutions before one of them is chosen, or take the first that runs; on at the start.

    Engines differ in the order of their sums, so the last bits of results can depend on which one was fastest. The file
    ``~/.cache/nn_core/cudnn_engines.json`` keeps the choice; the environment variable ``NN_CORE_CUDNN_CACHE`` names
    another file, or none if it is empty. It holds for the whole process, and for shapes that have no plan yet.
    """
    global _autotuning  # noqa: PLW0603 -- as above
    _autotuning = bool(allowed)


def is_autotuning_allowed() -> bool:
    """Return whether engines for exact float32 convolutions are timed."""
    return _autotuning


def excluded_notes(dtype: str) -> frozenset[int]:
    """Return the notes of engines that may not run on arrays of `dtype`.

    Sums in half precision never; rounding of operands to TF32, and transforms that cost digits (FFT, Winograd), only
    for float32 once TF32 is allowed.
    """
    excluded = {REDUCED_PRECISION_REDUCTION}
    if not _nondeterministic:
        excluded.add(NONDETERMINISTIC)
    if dtype != "float32" or not is_tf32_allowed():
        excluded |= {DOWN_CONVERT_INPUTS, FFT, *WINOGRAD}
    if dtype == "float32" and not is_tf32_allowed():
        excluded.add(TENSOR_CORE)  # on float32 they round the operands
    return frozenset(excluded)


def prefers_channels_last(dtype: str) -> bool:
    """Return whether images of `dtype` should be channels-last in memory, as tensor cores read them.

    The engines for exact float32 and for double copy such images into the order of C and back; so everything that works
    on images keeps that order for them.
    """
    return dtype in ("float16", "bfloat16") or (dtype == "float32" and is_tf32_allowed())
