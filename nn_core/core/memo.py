"""Lists of parameters in which each occurs once."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING

from nn_core.core.members import SUBMODULE_MARK
from nn_core.variable import Variable

if TYPE_CHECKING:
    from nn_core.core.module import Module


class ParamMemo:
    """The parameters that were found already, so that shared ones are listed once.

    Args:
        seen: A set to look in and to add to; None: a new one.
    """

    def __init__(self, seen: set[Variable] | None = None) -> None:
        self.seen = set() if seen is None else seen
        self._open: list[Module] = []

    def filter_and_update(self, params: Mapping[str, Variable]) -> "OrderedDict[str, Variable]":
        """Those of `params` that were not found before; they count as found from now on."""
        fresh: OrderedDict[str, Variable] = OrderedDict()
        for name, parameter in params.items():
            if parameter not in self.seen:
                self.seen.add(parameter)
                fresh[name] = parameter
        return fresh

    def enter(self, module: "Module") -> bool:
        """Note that the parameters of `module` are being listed; False when they are already, in a circle."""
        if any(module is other for other in self._open):
            return False
        self._open.append(module)
        return True

    def leave(self) -> None:
        """Note that the parameters of the module that was entered last are listed."""
        self._open.pop()


def insert_parent_name(name: str, params: Mapping[str, Variable]) -> "OrderedDict[str, Variable]":
    """`params` under the names that they have in the parent of the module called `name`."""
    return OrderedDict((f"{SUBMODULE_MARK}{name}/{key}", parameter) for key, parameter in params.items())
