"""Whether float32 products may use TF32: off until somebody turns it on, and told by whoever asks."""

from nn_core.ext import forget_prepared

_allowed = False


def allow_tf32(allowed: bool = True) -> None:
    """Let float32 matrix products and convolutions round their operands to 10 bits of mantissa, or forbid it.

    It holds for the whole process, and for functions that are set up from now on.
    """
    global _allowed  # noqa: PLW0603 -- one setting of the process, as the hardware has it
    if _allowed != bool(allowed):
        _allowed = bool(allowed)
        forget_prepared()


def is_tf32_allowed() -> bool:
    """Whether float32 products may use TF32."""
    return _allowed
