"""Rounding that products may do besides that of their results: all of it is off until a program turns it on.

Both settings hold for the whole process, and for functions that are set up from now on.
"""

from nn_core.ext import forget_prepared

_tf32_allowed = False
_reduced_precision_reduction_allowed = False


def allow_tf32(allowed: bool = True) -> None:
    """Let float32 matrix products and convolutions round their operands to 10 bits of mantissa, or forbid it."""
    global _tf32_allowed  # noqa: PLW0603 -- one setting of the process, as the hardware has it
    if _tf32_allowed != bool(allowed):
        _tf32_allowed = bool(allowed)
        forget_prepared()


def is_tf32_allowed() -> bool:
    """Return whether float32 products may use TF32."""
    return _tf32_allowed


def allow_reduced_precision_reduction(allowed: bool = True) -> None:
    """Let cuBLAS add the parts of a split sum of float16 or bfloat16 products in 16 bits, or forbid it."""
    global _reduced_precision_reduction_allowed  # noqa: PLW0603 -- as above
    if _reduced_precision_reduction_allowed != bool(allowed):
        _reduced_precision_reduction_allowed = bool(allowed)
        forget_prepared()


def is_reduced_precision_reduction_allowed() -> bool:
    """Return whether parts of sums of 16-bit products may be added in 16 bits."""
    return _reduced_precision_reduction_allowed
