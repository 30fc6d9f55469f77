"""The door ``nn_core.parameter``: parameters by name, their scopes, and their files."""

from nn_core.graph.modes import no_grad as no_grad
from nn_core.graph_rewriting import copy_graph, functions_of
from nn_core.io.parameters import load_parameters as load_parameters
from nn_core.io.parameters import save_parameters as save_parameters
from nn_core.parametric_functions.scope import clear_parameters as clear_parameters
from nn_core.parametric_functions.scope import get_current_parameter_scope as get_current_parameter_scope
from nn_core.parametric_functions.scope import get_parameter as get_parameter
from nn_core.parametric_functions.scope import get_parameter_or_create as get_parameter_or_create
from nn_core.parametric_functions.scope import get_parameters as get_parameters
from nn_core.parametric_functions.scope import parameter_scope as parameter_scope
from nn_core.parametric_functions.scope import pop_parameter as pop_parameter
from nn_core.parametric_functions.scope import set_parameter as set_parameter
from nn_core.variable import Variable

__all__ = [
    "clear_parameters",
    "get_current_parameter_scope",
    "get_parameter",
    "get_parameter_or_create",
    "get_parameters",
    "load_parameters",
    "no_grad",
    "parameter_scope",
    "pop_parameter",
    "save_parameters",
    "set_parameter",
]


def with_constant_parameters(variable: Variable) -> Variable:
    """A copy of the graph of `variable` in which the parameters of the current scope need no gradient."""
    registered = set(get_parameters(grad_only=False).values())
    inputs = {leaf for function in functions_of([variable]) for leaf in function.inputs} & registered
    return copy_graph([variable], {leaf: leaf.get_unlinked_variable(need_grad=False) for leaf in inputs})[0]
