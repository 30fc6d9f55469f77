"""Signatures of functions that are changed, and written as source code."""

import inspect
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Any, Final

__all__ = ["SignatureEx"]

#: The kinds of arguments in the order of a signature.
PARAM_KINDS: Final = (
    Parameter.POSITIONAL_ONLY,
    Parameter.POSITIONAL_OR_KEYWORD,
    Parameter.VAR_POSITIONAL,
    Parameter.KEYWORD_ONLY,
    Parameter.VAR_KEYWORD,
)
param_kind_to_int: Final = {kind: place for place, kind in enumerate(PARAM_KINDS)}


class SignatureEx(inspect.Signature):
    """A signature that gives others with one argument more or less, and the source code of a definition and of a call.

    Example:
        >>> def scale(x, factor: float = 2.0, *, bias=None): ...
        >>> signature = SignatureEx.from_callable(scale).add_arg("name", default="y")
        >>> signature.format_argument_signature()
        "x, factor: float = 2.0, name='y', *, bias=None"
        >>> signature.format_caller_argument_signature()
        'x, factor, name, bias=bias'
    """

    def add_arg(
        self,
        argname: str,
        kind: Any = Parameter.POSITIONAL_OR_KEYWORD,
        *,
        default: Any = Parameter.empty,
        annotation: Any = Parameter.empty,
    ) -> "SignatureEx":
        """Make a signature with one more argument, the last one of its kind.

        Raises:
            ValueError: when there is an argument of this name, or one without default would follow one that has it.
        """
        added = Parameter(argname, kind, default=default, annotation=annotation)
        of_kind = sorted([*self.parameters.values(), added], key=lambda parameter: PARAM_KINDS.index(parameter.kind))
        return self.replace(parameters=of_kind)

    def drop_arg(self, argname: str, raise_if_not_found: bool = False) -> "SignatureEx":
        """Make a signature without an argument.

        Raises:
            KeyError: when there is none of this name and `raise_if_not_found` is set.
        """
        if raise_if_not_found and argname not in self.parameters:
            raise KeyError(f"drop_arg: argname must be one of {list(self.parameters)}, got {argname!r}")
        return self.replace(parameters=[p for name, p in self.parameters.items() if name != argname])

    @property
    def has_return_annotation(self) -> bool:
        """Whether the signature says what is returned."""
        return self.return_annotation is not self.empty

    def format_argument_signature(self) -> str:
        """Write the arguments as a definition has them between its parentheses."""
        return str(self.replace(return_annotation=self.empty))[1:-1]

    def format_return_annotation(self) -> str:
        """Write what follows the parentheses of a definition: `` -> type``, or nothing."""
        return str(self.replace(parameters=()))[2:]

    def format_caller_argument_signature(self) -> str:
        """Write the arguments of a call that passes each argument on under its own name."""
        return ", ".join(self._passed_on())

    def _passed_on(self) -> Iterator[str]:
        marks: dict[Any, Callable[[str], str]] = {
            Parameter.VAR_POSITIONAL: lambda name: f"*{name}",
            Parameter.KEYWORD_ONLY: lambda name: f"{name}={name}",
            Parameter.VAR_KEYWORD: lambda name: f"**{name}",
        }
        for name, parameter in self.parameters.items():
            yield marks.get(parameter.kind, str)(name)
