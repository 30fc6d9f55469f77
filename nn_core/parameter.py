"""The door ``nn_core.parameter``: parameters by name, their scopes, and their files."""

from nn_core.graph.modes import no_grad as no_grad
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
