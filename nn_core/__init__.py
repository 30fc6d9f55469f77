"""nn_core: neural networks on a small core, with backends and operators from separately installed packages.

The API by subject; ``help(nn_core.initializer)`` and the like tell more:

    F, PF, S            functions, functions with parameters (layers), solvers
    Variable, NdArray   values in a graph, arrays that are computed at once
    Module, Sequential  networks as objects; also ModuleList, ModuleDict
    layers              layers as modules, for Sequential
    Context             where functions run; also context_scope, set_default_context, explain, ext_utils
    parameter_scope     parameters by name; also get_parameters, save_parameters, load_parameters, parameter
    auto_forward        dynamic graphs; also no_grad, recompute, forward_all, grad
    PythonFunction      functions in Python; also numpy_function
    summary             a table of the layers and parameters of a network
    initializer         initial values of parameters
    data                sources of samples, and iterators of batches
    fit, predict        training and prediction on arrays in one call
    training            trainer, checkpoints, metrics
    monitor, logger     what a run reports
    files, io           files of arrays, of parameters and of networks
    random, seed        random numbers
    settings, errors    environment variables, exceptions
    ext, testing        for authors of plugins
    utils, experimental, backward_functions, callback, context, function_bases, functions, normalization_functions,
    numpy_compat_functions, parametric_functions, solver, solvers, typing    the modules under the names of NNabla

Example:
    >>> import numpy as np
    >>> import nn_core as nn
    >>> x = nn.Variable.from_numpy_array(np.ones((2, 3)), need_grad=True)
    >>> y = (x * 2 + 1).apply(persistent=True)
    >>> y.forward()
    >>> float(y.d.sum())
    18.0
"""

import sys
from importlib import import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

from nn_core.auto_forward import auto_forward as auto_forward
from nn_core.auto_forward import get_auto_forward as get_auto_forward
from nn_core.auto_forward import set_auto_forward as set_auto_forward
from nn_core.context import BY_NAME as _CONTEXT_BY_NAME
from nn_core.context import Context as Context
from nn_core.context import context_scope as context_scope
from nn_core.context import get_current_context as get_current_context
from nn_core.context import set_default_context as set_default_context
from nn_core.engine.arrays import operators as _operators
from nn_core.engine.arrays.indexing import bind as _bind_subscripts
from nn_core.engine.arrays.ndarray import NdArray as NdArray
from nn_core.engine.dispatch.explain import explain as explain
from nn_core.engine.dispatch.launch_scope import launch_together as launch_together
from nn_core.engine.dispatch.report import fallback_report as fallback_report
from nn_core.engine.dispatch.report import strict_dispatch as strict_dispatch
from nn_core.engine.error_messages.attributes import submodule as _submodule
from nn_core.engine.error_messages.elsewhere import attribute_suggestion as _attribute_suggestion
from nn_core.engine.graph.hooks import set_function_post_hook as set_function_post_hook
from nn_core.engine.graph.hooks import set_function_pre_hook as set_function_pre_hook
from nn_core.engine.graph.hooks import unset_function_post_hook as unset_function_post_hook
from nn_core.engine.graph.hooks import unset_function_pre_hook as unset_function_pre_hook
from nn_core.engine.graph.modes import no_grad as no_grad
from nn_core.engine.graph.python_function import PythonFunction as PythonFunction
from nn_core.engine.runtime.caches import clear_caches as clear_caches
from nn_core.engine.runtime.gil import require_gil as _require_gil
from nn_core.errors import UnknownAttributeError as _UnknownAttributeError
from nn_core.function import Function as _Function  # noqa: F401  # gives variable.parent its class
from nn_core.grad import grad as grad
from nn_core.logger import logger as logger
from nn_core.random import seed as seed
from nn_core.recompute import recompute as recompute
from nn_core.recompute import recompute_fn as recompute_fn
from nn_core.recompute import set_global_recompute as set_global_recompute
from nn_core.settings import num_threads as num_threads
from nn_core.settings import set_num_threads as set_num_threads
from nn_core.variable import COPIERS as _COPIERS
from nn_core.variable import Variable as Variable
from nn_core.variable import forward_all as forward_all

if TYPE_CHECKING:
    from nn_core import backward_functions as backward_functions
    from nn_core import callback as callback
    from nn_core import communicator as communicator
    from nn_core import communicators as communicators
    from nn_core import data as data
    from nn_core import ext_utils as ext_utils
    from nn_core import function_bases as function_bases
    from nn_core import functions as functions
    from nn_core import initializer as initializer
    from nn_core import io as io
    from nn_core import layers as layers
    from nn_core import monitor as monitor
    from nn_core import normalization_functions as normalization_functions
    from nn_core import numpy_compat_functions as numpy_compat_functions
    from nn_core import parameter as parameter
    from nn_core import parametric_functions as parametric_functions
    from nn_core import solver as solver
    from nn_core import solvers as solvers
    from nn_core import utils as utils
    from nn_core.compat.host import add_available_context as add_available_context
    from nn_core.compat.host import array_classes as array_classes
    from nn_core.compat.host import available_contexts as available_contexts
    from nn_core.compat.host import prefer_cached_array as prefer_cached_array
    from nn_core.compat.host import reset_array_preference as reset_array_preference
    from nn_core.core.containers import ModuleDict as ModuleDict
    from nn_core.core.containers import ModuleList as ModuleList
    from nn_core.core.module import Module as Module
    from nn_core.core.sequential import Sequential as Sequential
    from nn_core.engine.graph.numpy_function import numpy_function as numpy_function
    from nn_core.network_summary import summary as summary
    from nn_core.parameter import clear_parameters as clear_parameters
    from nn_core.parameter import freeze_parameters as freeze_parameters
    from nn_core.parameter import get_current_parameter_scope as get_current_parameter_scope
    from nn_core.parameter import get_parameters as get_parameters
    from nn_core.parameter import hold_parameters as hold_parameters
    from nn_core.parameter import load_parameters as load_parameters
    from nn_core.parameter import parameter_scope as parameter_scope
    from nn_core.parameter import save_parameters as save_parameters
    from nn_core.parameter import swap_parameters as swap_parameters
    from nn_core.parameter import unfreeze_parameters as unfreeze_parameters
    from nn_core.solvers.hooks import set_solver_post_hook as set_solver_post_hook
    from nn_core.solvers.hooks import set_solver_pre_hook as set_solver_pre_hook
    from nn_core.solvers.hooks import unset_solver_post_hook as unset_solver_post_hook
    from nn_core.solvers.hooks import unset_solver_pre_hook as unset_solver_pre_hook
    from nn_core.training.fitting import fit as fit
    from nn_core.training.predicting import predict as predict

    F = functions
    PF = parametric_functions
    S = solvers

__version__ = "0.1.0"

#: The short names of modules: ``from nn_core import F, PF, S``.
_SHORT = {"F": "nn_core.functions", "PF": "nn_core.parametric_functions", "S": "nn_core.solvers"}

#: Names whose modules are imported when they are first used, so that ``import nn_core`` stays quick.
_LAZY = {
    "Module": "nn_core.core.module",
    "ModuleDict": "nn_core.core.containers",
    "ModuleList": "nn_core.core.containers",
    "Sequential": "nn_core.core.sequential",
    "numpy_function": "nn_core.engine.graph.numpy_function",
    "fit": "nn_core.training.fitting",
    "predict": "nn_core.training.predicting",
    "summary": "nn_core.network_summary",
    **dict.fromkeys(
        (
            "add_available_context",
            "array_classes",
            "available_contexts",
            "prefer_cached_array",
            "reset_array_preference",
        ),
        "nn_core.compat.host",
    ),
    **dict.fromkeys(
        (
            "clear_parameters",
            "freeze_parameters",
            "get_current_parameter_scope",
            "get_parameters",
            "hold_parameters",
            "load_parameters",
            "parameter_scope",
            "save_parameters",
            "swap_parameters",
            "unfreeze_parameters",
        ),
        "nn_core.parameter",
    ),
    **dict.fromkeys(
        ("set_solver_post_hook", "set_solver_pre_hook", "unset_solver_post_hook", "unset_solver_pre_hook"),
        "nn_core.solvers.hooks",
    ),
}

from_dlpack = NdArray.from_dlpack

_require_gil()
_operators.bind()
_bind_subscripts()
_CONTEXT_BY_NAME.append(lambda name: import_module("nn_core.ext_utils").context_named(name))
_COPIERS["no_grad"] = lambda variable: import_module("nn_core.parameter").with_constant_parameters(variable)


#: Submodules that programs use; the others are the engine's.
_MODULES = (
    *("backward_functions", "callback", "context", "data", "errors", "ext", "ext_utils", "files", "function_bases"),
    *("functions", "initializer", "io", "layers", "monitor", "normalization_functions", "numpy_compat_functions"),
    *("parameter", "parametric_functions", "random", "settings", "solver", "solvers", "testing", "typing", "utils"),
)


def __dir__() -> list[str]:
    """Functions and classes, and F, PF and S; `help(nn_core)` lists the other modules."""
    things = {name: value for name, value in globals().items() if not isinstance(value, _ModuleType)}
    own = {name for name, value in things.items() if getattr(value, "__module__", "").startswith("nn_core.")}
    return sorted({name for name in own if not name.startswith("_")}.union(_LAZY, _SHORT, ("__version__",)))


if not TYPE_CHECKING:  # so that checkers report names that do not exist

    def __getattr__(name: str) -> object:
        place = _LAZY.get(name)
        if place is not None:
            value: object = getattr(import_module(place), name)
            globals()[name] = value
            return value
        module = import_module(_SHORT[name]) if name in _SHORT else _submodule("nn_core", name)
        if module is not None:
            return module
        hint = _attribute_suggestion("nn_core", name, [*__dir__(), *_MODULES])
        raise _UnknownAttributeError(f"module 'nn_core' has no attribute {name!r}{hint}", name=name, obj=sys.modules[__name__])
