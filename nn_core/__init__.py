"""nn_core: neural networks on a small core, with backends and operators from separately installed packages.

Example:
    >>> import numpy as np
    >>> import nn_core as nn
    >>> x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    >>> y = (x * 2 + 1).apply(persistent=True)
    >>> y.forward()
    >>> float(y.d.sum())
    18.0
"""

from importlib import import_module
from typing import TYPE_CHECKING

from nn_core import indexing as _indexing
from nn_core import operators as _operators
from nn_core.array import NdArray as NdArray
from nn_core.auto_forward import auto_forward as auto_forward
from nn_core.auto_forward import get_auto_forward as get_auto_forward
from nn_core.auto_forward import set_auto_forward as set_auto_forward
from nn_core.context import Context as Context
from nn_core.context import context_scope as context_scope
from nn_core.context import get_current_context as get_current_context
from nn_core.context import set_default_context as set_default_context
from nn_core.dispatch.explain import explain as explain
from nn_core.dispatch.report import fallback_report as fallback_report
from nn_core.dispatch.report import strict_dispatch as strict_dispatch
from nn_core.dispatch.together import launch_together as launch_together
from nn_core.grad import grad as grad
from nn_core.graph.hooks import set_function_post_hook as set_function_post_hook
from nn_core.graph.hooks import set_function_pre_hook as set_function_pre_hook
from nn_core.graph.hooks import unset_function_post_hook as unset_function_post_hook
from nn_core.graph.hooks import unset_function_pre_hook as unset_function_pre_hook
from nn_core.graph.modes import no_grad as no_grad
from nn_core.graph.python_function import PythonFunction as PythonFunction
from nn_core.random import seed as seed
from nn_core.recompute import recompute as recompute
from nn_core.recompute import recompute_fn as recompute_fn
from nn_core.recompute import set_global_recompute as set_global_recompute
from nn_core.variable import Variable as Variable
from nn_core.variable import forward_all as forward_all

if TYPE_CHECKING:
    from nn_core.core.module import Module as Module
    from nn_core.core.sequential import Sequential as Sequential
    from nn_core.parameter import clear_parameters as clear_parameters
    from nn_core.parameter import get_current_parameter_scope as get_current_parameter_scope
    from nn_core.parameter import get_parameters as get_parameters
    from nn_core.parameter import load_parameters as load_parameters
    from nn_core.parameter import parameter_scope as parameter_scope
    from nn_core.parameter import save_parameters as save_parameters
    from nn_core.solvers.hooks import set_solver_post_hook as set_solver_post_hook
    from nn_core.solvers.hooks import set_solver_pre_hook as set_solver_pre_hook
    from nn_core.solvers.hooks import unset_solver_post_hook as unset_solver_post_hook
    from nn_core.solvers.hooks import unset_solver_pre_hook as unset_solver_pre_hook

__version__ = "0.1.0"

#: Names whose modules are imported when they are first used, so that ``import nn_core`` stays quick.
_LAZY = {
    "Module": "nn_core.core.module",
    "Sequential": "nn_core.core.sequential",
    **dict.fromkeys(
        (
            "clear_parameters",
            "get_current_parameter_scope",
            "get_parameters",
            "load_parameters",
            "parameter_scope",
            "save_parameters",
        ),
        "nn_core.parameter",
    ),
    **dict.fromkeys(
        ("set_solver_post_hook", "set_solver_pre_hook", "unset_solver_post_hook", "unset_solver_pre_hook"),
        "nn_core.solvers.hooks",
    ),
}

_operators.bind()
_indexing.bind()


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'nn_core' has no attribute {name!r}")
    value: object = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
