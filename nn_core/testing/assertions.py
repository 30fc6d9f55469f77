"""Comparisons with messages that say where two arrays differ most, and a count of how many were made."""

from typing import Any

import numpy as np

#: Tells pytest to end tracebacks at the caller.
__tracebackhide__ = True

#: Comparisons made in this process; the conformance tests report the number.
_made = [0]


def comparisons() -> int:
    """Return the number of comparisons that were made in this process."""
    return _made[0]


def require(condition: object, message: str) -> None:
    """Fail with `message` unless `condition` holds."""
    _made[0] += 1
    if not condition:
        raise AssertionError(message)


def assert_allclose(
    actual: Any,
    desired: Any,
    rtol: float = 1e-05,
    atol: float = 1e-06,
    equal_nan: bool = True,
    err_msg: str = "",
    verbose: bool = True,
) -> None:
    """Fail unless |actual - desired| <= atol + rtol |desired| everywhere, and the shapes are equal.

    Args:
        actual: Array, NdArray or number that was computed.
        desired: Expected values; a number means an array of it.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: Whether NaN agrees with NaN.
        err_msg: Text in front of the message.
        verbose: Whether the message shows both arrays, if they are small.

    Raises:
        AssertionError: when they differ; the message has the place and the size of the largest difference.

    Example:
        >>> assert_allclose([1.0, 2.0], [1.0, 2.000001])
    """
    _made[0] += 1
    got, expected = _values(actual), _values(desired)
    head = f"{err_msg}: " if err_msg else ""
    if expected.ndim and got.shape != expected.shape:
        raise AssertionError(f"{head}shapes must be equal, got {got.shape} for {expected.shape}")
    expected = np.broadcast_to(expected, got.shape)
    close = np.isclose(got, expected, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if close.all():
        return
    with np.errstate(all="ignore"):
        excess = np.where(close, -1.0, np.nan_to_num(np.abs(got - expected), nan=np.inf))
    place = tuple(int(n) for n in np.unravel_index(np.argmax(excess), got.shape))
    tolerance = f"{atol:g} + {rtol:g} |desired|"
    lines = [f"{head}{int((~close).sum())} of {close.size} elements differ by more than {tolerance}"]
    lines[0] += f"; most at {place}: got {got[place]!r} for {expected[place]!r}"
    if verbose and got.size <= 24:
        lines += [f"actual: {got.tolist()}", f"desired: {expected.tolist()}"]
    raise AssertionError("\n".join(lines))


def assert_identical(actual: Any, desired: Any, message: str) -> None:
    """Fail unless two arrays have the same bits (any NaN is like any other)."""
    _made[0] += 1
    got, expected = np.asarray(actual), np.asarray(desired)
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise AssertionError(f"{message}: {got.dtype} {got.shape} for {expected.dtype} {expected.shape}")
    with np.errstate(invalid="ignore"):  # what a kernel keeps for itself may look like a signalling NaN
        same = (got == expected) | ((got != got) & (expected != expected))
    if not same.all():
        place = tuple(int(n) for n in np.argwhere(~same)[0])
        raise AssertionError(
            f"{message}: {int((~same).sum())} of {same.size} elements differ, "
            f"the first at {place}: {got[place]!r} and {expected[place]!r}"
        )


def _values(array: Any) -> np.ndarray[Any, Any]:
    values = np.asarray(getattr(array, "data", array) if hasattr(array, "get_data") else array)
    return values if values.dtype.kind in "iub" else values.astype(np.float64)
