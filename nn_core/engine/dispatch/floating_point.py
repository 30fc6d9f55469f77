"""How the processor computes: its direction of rounding, and whether it takes subnormal numbers for zero.

A library that was compiled with ``-ffast-math`` may change the second for the thread that loads it.
"""

from typing import Any, Final

#: Bytes that hold the environment of every known platform.
_N_BYTES: Final = 256
_TINY: Final = 5e-324
_NORMAL: Final = 2.2250738585072014e-308


class FloatingPoint:
    """The floating-point environment of this thread.

    It is compared by what it does to numbers, since its registers also tell which exceptions have occurred.
    """

    def __init__(self) -> None:
        self._behaviour = _behaviour(1.0, 2.0**-60, _TINY, _NORMAL)
        self._registers = _registers()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatingPoint) and self._behaviour == other._behaviour

    __hash__ = None  # type: ignore[assignment]

    def restore(self) -> None:
        """Compute as before, where the library of C can be asked for that."""
        library = _library()
        if library is not None and self._registers is not None:
            library.fesetenv(self._registers)


def _behaviour(one: float, little: float, tiny: float, normal: float) -> tuple[bool, ...]:
    # arguments, since constants are computed when this file is compiled
    rounding = (one + little > one, -one - little < -one, one - little < one)
    return (*rounding, tiny * one == 0, normal / 2 == 0)


def _library() -> Any:
    try:
        import ctypes

        library = ctypes.CDLL(None)
        return library if hasattr(library, "fegetenv") and hasattr(library, "fesetenv") else None
    except (ImportError, OSError, TypeError):  # no ctypes, or Windows
        return None


def _registers() -> Any:
    library = _library()
    if library is None:
        return None
    import ctypes

    registers = ctypes.create_string_buffer(_N_BYTES)
    library.fegetenv(registers)
    return registers
