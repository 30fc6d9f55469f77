"""The door ``nn_core.parameter``: parameters by name, their scopes, and their files."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from nn_core.engine.error_messages.refusal import door
from nn_core.engine.error_messages.synonyms import suggestion
from nn_core.engine.graph.modes import NO_GRAD
from nn_core.engine.graph.modes import no_grad as no_grad
from nn_core.engine.graph.parameter_sources import ParameterSource, parameters_of
from nn_core.errors import UnknownAttributeError
from nn_core.graph_rewriting import copy_graph, functions_of
from nn_core.io.exchange import hold_parameters as hold_parameters
from nn_core.io.exchange import swap_parameters as swap_parameters
from nn_core.io.parameters import load_parameters as load_parameters
from nn_core.io.parameters import save_parameters as save_parameters
from nn_core.parametric_functions.freezing import freeze, unfreeze
from nn_core.parametric_functions.scope import clear_parameters as clear_parameters
from nn_core.parametric_functions.scope import get_current_parameter_scope as get_current_parameter_scope
from nn_core.parametric_functions.scope import get_parameter as get_parameter
from nn_core.parametric_functions.scope import get_parameter_or_create as get_parameter_or_create
from nn_core.parametric_functions.scope import get_parameters as get_parameters
from nn_core.parametric_functions.scope import parameter_scope as parameter_scope
from nn_core.parametric_functions.scope import pop_parameter as pop_parameter
from nn_core.parametric_functions.scope import root_parameter_scope
from nn_core.parametric_functions.scope import set_parameter as set_parameter
from nn_core.variable import Variable

__all__ = [
    "clear_parameters",
    "freeze_parameters",
    "get_current_parameter_scope",
    "get_parameter",
    "get_parameter_or_create",
    "get_parameters",
    "hold_parameters",
    "load_parameters",
    "no_grad",
    "parameter_scope",
    "pop_parameter",
    "save_parameters",
    "set_parameter",
    "swap_parameters",
    "unfreeze_parameters",
]


@door
def freeze_parameters(params: ParameterSource | None = None) -> None:
    """Keep parameters from being trained until ``unfreeze_parameters()``.

    They need no gradient, and stay so when layers that use them are called: a layer asks for parameters to train in each
    call, which undoes ``parameter.need_grad = False``. Solvers leave them alone, and ``get_parameters()`` leaves them out.

    Args:
        params: Variables by name, a module, or the name of a scope; None: all of the current scope.

    Example:
        >>> y = PF.affine(nn.Variable((8, 4)), 3, name="first")
        >>> nn.freeze_parameters()
        >>> y = PF.affine(PF.affine(nn.Variable((8, 4)), 3, name="first"), 2, name="last")
        >>> list(nn.get_parameters())
        ['last/affine/W', 'last/affine/b']
    """
    freeze(parameters_of("freeze_parameters", params).values())


@door
def unfreeze_parameters(params: ParameterSource | None = None) -> None:
    """Let frozen parameters be trained again; others stay as they are.

    Args:
        params: Variables by name, a module, or the name of a scope; None: all of the current scope.

    Example:
        >>> y = PF.affine(nn.Variable((8, 4)), 3)
        >>> nn.freeze_parameters()
        >>> nn.unfreeze_parameters()
        >>> list(nn.get_parameters())
        ['affine/W', 'affine/b']
    """
    unfreeze(parameters_of("unfreeze_parameters", params).values())


if not TYPE_CHECKING:  # so that checkers report names that do not exist

    def __getattr__(name: str) -> object:
        """Variables of NNabla's module, read when they are asked for (PEP 562)."""
        if name in _LIVE:
            return _LIVE[name]()
        raise UnknownAttributeError(
            f"module 'nn_core.parameter' has no attribute {name!r}{suggestion(name, __all__)}",
            name=name,
            obj=sys.modules[__name__],
        )


#: Variables of NNabla's module, by their present values.
_LIVE: Final[Mapping[str, Callable[[], object]]] = {
    "current_no_grad": NO_GRAD.get,
    "current_scope": get_current_parameter_scope,
    "root_scope": root_parameter_scope,
}


def with_constant_parameters(variable: Variable) -> Variable:
    """Return a copy of the graph of `variable` in which the parameters of the current scope need no gradient."""
    registered = set(get_parameters(grad_only=False).values())
    inputs = {leaf for function in functions_of([variable]) for leaf in function.inputs} & registered
    return copy_graph([variable], {leaf: leaf.get_unlinked_variable(need_grad=False) for leaf in inputs})[0]
