"""Statements of C that integer networks have in common."""

from nn_ext_c.integer.network import Node
from nn_ext_c.loops import Code


def centered(element: str, zero: int) -> str:
    """Return the distance of an element from the integer for 0, as C."""
    return element if not zero else f"{element} {'-' if zero > 0 else '+'} {abs(zero)}"


def rescale(code: Code, total: str, shift: str, place: object, zero: int, node: Node, target: str = "y") -> None:
    """Write ``clamp(round(total / 2 ** shift) + zero)``; halves are rounded away from zero."""
    code.line(f"const int64_t scaled = {total};")
    code.line(f"const int64_t half = (int64_t)1 << ({shift} - 1);")
    rounded = f"scaled >= 0 ? (scaled + half) >> {shift} : -((half - scaled) >> {shift})"
    code.line(f"const int64_t q = {f'({rounded}) + ({zero})' if zero else rounded};")
    low, high = node.data["low"], node.data["high"]
    code.line(f"{target}[{place}] = (int8_t)(q < {low} ? {low} : q > {high} ? {high} : q);")
