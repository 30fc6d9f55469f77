"""The updates of solvers: a backend's kernel for all parameters at once, against the rule in float64."""

import zlib

import numpy as np

import nn_core.solvers as S
from nn_core.context import context_scope
from nn_core.engine.dispatch.plugin_manager import REFERENCE
from nn_core.testing.assertions import assert_allclose, assert_identical
from nn_core.testing.cases import SolverCase, context_of
from nn_core.testing.expected import Numbers
from nn_core.testing.samples.solvers import GRADIENT_CHANGES
from nn_core.variable import Variable

#: Shapes of the parameters: a scalar, nothing, and more than a block of any vectorised loop.
SHAPES = ((3, 4), (), (0, 2), (1037,), (65,))
STEPS = 4
#: First elements of the last parameter: what is no number any more stays what it is, or becomes NaN, as by the rule.
SPECIAL = (np.inf, -np.inf, np.nan)
#: Rounding errors of some steps, in which gradients are divided by their own size.
RTOL, ATOL = 2e-5, 2e-6


def check_solver(case: SolverCase) -> None:
    """Some steps of a solver give the parameters, gradients and states of the reference, and the same bits again."""
    truth = _train(case, REFERENCE, "float64")
    given = _train(case, case.backend, "float32")
    for (name, array), (_, again) in zip(given.items(), _train(case, case.backend, "float32").items(), strict=True):
        assert_allclose(array, truth[name], RTOL, ATOL, err_msg=f"{case}: {name} after {STEPS} steps")
        assert_identical(again, array, f"{case}: {name} of the second run")


def _train(case: SolverCase, backend: str, dtype: str) -> dict[str, Numbers]:
    """Parameters, gradients and states after some steps; all numbers come from the name of the case."""
    rng = np.random.default_rng(zlib.crc32(f"{case.solver}-{case.name}".encode()))
    with context_scope(context_of(backend, dtype)):
        change = GRADIENT_CHANGES.get(case.solver)
        solver = S.Sgd(lr=0.1) if change else getattr(S, case.solver)(**case.settings)
        variables = {f"w{n}": _variable(rng.normal(size=shape), dtype) for n, shape in enumerate(SHAPES)}
        variables[f"w{len(SHAPES) - 1}"].d[: len(SPECIAL)] = SPECIAL
        solver.set_parameters(variables)
        for _ in range(STEPS):
            for variable in variables.values():
                variable.grad.data = np.asarray(rng.normal(size=variable.shape)).astype(np.float32).astype(dtype)
            if change:
                getattr(solver, change[0])(change[1])
            solver.update()
        results = {f"{name}.data": np.array(variable.d) for name, variable in variables.items()}
        results.update({f"{name}.grad": np.array(variable.g) for name, variable in variables.items()})
        for name, state in solver.get_states().items():
            results.update({f"{name}.{key}": np.array(array.data) for key, array in state.pstate.items()})
    return results


def _variable(values: Numbers, dtype: str) -> Variable:
    return Variable.from_numpy_array(np.asarray(values).astype(np.float32).astype(dtype), need_grad=True)
