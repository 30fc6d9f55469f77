"""The parameters that belong to a training by its solvers, where no model is given."""

from collections.abc import Iterable

from nn_core.engine.runtime.holders import modules_with_parameters
from nn_core.errors import ArgumentError
from nn_core.parametric_functions.scope import get_parameters
from nn_core.solvers.base import Solver
from nn_core.variable import Variable


def parameters_of_solvers(solvers: Iterable[Solver]) -> dict[str, Variable]:
    """Return the parameters of the current scope, and of the modules that hold what the solvers change.

    Raises:
        ArgumentError: when the solvers change others, or a module has parameters of the same names.
    """
    model = get_parameters(grad_only=False)
    changed = {
        variable.storage: f"{name} of {solver.name}"
        for solver in solvers
        for name, variable in solver.get_parameters().items()
    }
    for _, parameters in modules_with_parameters():
        lacking = changed.keys() - {variable.storage for variable in model.values()}
        if lacking & {variable.storage for variable in parameters.values()} and not model.keys() & parameters.keys():
            model.update(parameters)
    for storage in changed.keys() - {variable.storage for variable in model.values()}:
        raise ArgumentError(
            "Updater: model must be given when parameters are not in the parameter scope or in modules with other names, "
            f"got none, and {changed[storage]}"
        )
    return model
