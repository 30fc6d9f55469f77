"""The budget of readers: what reading a file may take before it is refused, whoever wrote the file.

One object for all readers, those of extensions too. Its defaults are many times what honest files need; a program that has a
larger file raises what the message names: ``with nn_core.files.reading_budget(digits=30): ...``.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Final

from nn_core.engine.error_messages.refusal import fitted, fitted_constructor
from nn_core.engine.runtime.context_values import Ambient
from nn_core.errors import ArgumentError, FileFormatError


@fitted_constructor
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Bounds of all that reading a file may take.

    Attributes:
        expansion: Bytes in memory for one byte of a compressed array; no codec of HDF5 or zip files makes more.
        archive_growth: Bytes of all texts and networks in an archive for one byte of the archive, beyond 16 MiB.
        members: Files in an archive of networks.
        text_bytes: Bytes of a text that is parsed as a whole: a header, or a network in text.
        blanks: Blanks in a row in a text.
        digits: Digits of an integer in a text.
        depth: Groups, messages or bodies inside each other, and parts of a name.
        nodes: Functions of a network, with loops and the model's own functions written out.
        written_out: Functions that loops and functions of a file stand for, beyond 200 for each function in the file.
        drawn_values: Numbers of one array that a network says how to draw instead of having them.

    Example:
        >>> from nn_core.files import Budget
        >>> Budget().digits
        19
    """

    expansion: int = 1100
    archive_growth: int = 200
    members: int = 10_000
    text_bytes: int = 100_000_000
    blanks: int = 4_096
    digits: int = 19
    depth: int = 200
    nodes: int = 200_000
    written_out: int = 10_000
    drawn_values: int = 1 << 29

    def require(self, name: str, needed: int, what: str) -> None:
        """Refuse a file that needs more of something.

        Args:
            name: The attribute of the budget.
            needed: How much it needs.
            what: Subject of the message, such as "an integer".

        Raises:
            FileFormatError: when it is more than the budget has.
        """
        most = getattr(self, name)
        if needed > most:
            raise FileFormatError(
                f"{what} must stay within the budget of readers, {name} {most}, got {needed}\n"
                f"  hint: for a file that you trust, with nn_core.files.reading_budget({name}={_rounded(needed)}):"
            )


_BUDGET: Final[Ambient[Budget]] = Ambient("reading budget", Budget())
_NAMES: Final = tuple(entry.name for entry in fields(Budget))


@fitted
def budget() -> Budget:
    """Return the budget of what is read here; extensions use it in their readers.

    Example:
        >>> from nn_core.ext import budget
        >>> budget().require("digits", 3, "an integer")
    """
    return _BUDGET.get()


@fitted
def reading_budget(**most: int) -> AbstractContextManager[Budget]:
    """Read with another budget inside a ``with`` block.

    Args:
        most: Attributes of `Budget` with other values.

    Raises:
        ArgumentError: when there is no such attribute, or its value is no whole number of at least 0.

    Example:
        >>> from nn_core.files import reading_budget
        >>> with reading_budget(digits=30) as budget:
        ...     budget.digits
        30
    """
    for name, value in most.items():
        if name not in _NAMES:
            raise ArgumentError(f"reading_budget: must have arguments among {', '.join(_NAMES)}, got {name!r}")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ArgumentError(f"reading_budget: {name} must be a whole number of at least 0, got {value!r}")
    return _BUDGET.scope(replace(budget(), **most))


def _rounded(needed: int) -> int:
    """Return a number that is large enough, with two digits, since the exact one says nothing."""
    power = 10 ** max(len(str(needed)) - 2, 0)
    return -(-needed // power) * power
