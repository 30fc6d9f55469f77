"""Callables that run before and after every function and every update of a parameter."""

from nn_core.engine.graph.hooks import set_function_post_hook as set_function_post_hook
from nn_core.engine.graph.hooks import set_function_pre_hook as set_function_pre_hook
from nn_core.engine.graph.hooks import unset_function_post_hook as unset_function_post_hook
from nn_core.engine.graph.hooks import unset_function_pre_hook as unset_function_pre_hook
from nn_core.solvers.hooks import set_solver_post_hook as set_solver_post_hook
from nn_core.solvers.hooks import set_solver_pre_hook as set_solver_pre_hook
from nn_core.solvers.hooks import unset_solver_post_hook as unset_solver_post_hook
from nn_core.solvers.hooks import unset_solver_pre_hook as unset_solver_pre_hook
