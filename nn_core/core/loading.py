"""Parameters of a module from a file."""

from collections.abc import Mapping
from typing import NamedTuple

from nn_core.core.members import place_of
from nn_core.io.parameters import LoadReport, Parameters, load_into
from nn_core.parametric_functions.scope import Scope, parameter_scope, set_parameter
from nn_core.variable import Variable


class Member(NamedTuple):
    """A module inside the one that is loaded: its own parameters, and its scope, if the file may add some."""

    parameters: Mapping[str, Variable]
    open_scope: Scope | None


def load_members(
    source: Parameters,
    members: Mapping[str, Member],
    parameters: Mapping[str, Variable],
    strict: bool | None,
    refuse_unexpected: bool,
) -> LoadReport:
    """Let modules take over the values of a file, all of them or, when an error is raised, none.

    Args:
        source: The file that was read.
        members: The modules, by the path that precedes the names of their parameters.
        parameters: The parameters of all of them.
        strict: As for ``Module.load_parameters``.
        refuse_unexpected: Likewise.
    """

    def find(key: str) -> Variable | None:
        place, name = place_of(key)
        return members[place].parameters.get(name) if place in members else None

    def may_create(key: str) -> bool:
        place, _ = place_of(key)
        return place in members and members[place].open_scope is not None

    def create(key: str, parameter: Variable) -> None:
        place, name = place_of(key)
        with parameter_scope("", scope=members[place].open_scope):
            set_parameter(name, parameter)

    return load_into("load_parameters", source, parameters, find, create, may_create, strict, refuse_unexpected)
