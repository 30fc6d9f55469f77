"""Updates of all parameters of a solver in one or two launches; see ``nn_core.solvers.update`` for what a solver expects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, Step
from nn_ext_cuda.codegen.code import Code, generated, in_real
from nn_ext_cuda.codegen.dtypes import real_type
from nn_ext_cuda.kernels.solvers.layerwise import LAYERWISE, LayerwiseUpdate
from nn_ext_cuda.kernels.solvers.multi_tensor import (
    GUARD,
    GUARD_PARAMETER,
    HEAD,
    LOOP,
    PARAMETERS,
    FloatingUpdate,
    Launcher,
    Tables,
    UpdateStep,
    block_sum,
    guarded,
    number_parameters,
    read_numbers,
)
from nn_ext_cuda.kernels.solvers.rescale import Rescale
from nn_ext_cuda.kernels.solvers.rules import RULES, RULES_WITH_MAXIMUM, Rule


class MultiTensorUpdate(FloatingUpdate):
    """The update of a rule, for any number of parameters; see `nn_core.solvers.update.UpdateKernel`.

    Args:
        name: Name of the rule.
    """

    guards = True

    def __init__(self, name: str) -> None:
        self._name = name

    def bind(
        self,
        params: Sequence[Array],
        grads: Sequence[Array],
        states: Sequence[Sequence[Array]],
        hyper: Array,
        guard: Array | None = None,
    ) -> Step:
        """Return a step that updates these arrays, unless the norm in `guard` is not finite; `hyper` is read each time."""
        tables = Tables(list(zip(params, grads, *states, strict=True)))
        dtype = str(params[0].dtype)
        rule = rule_of(self._name, len(states))

        def launcher(resident: bool) -> Launcher:
            settings = {"resident": resident, "guarded": guard is not None}
            return guarded(tables.launcher(update_code(self._name, dtype, n_states=len(states), **settings)), guard)

        return UpdateStep(launcher, lambda: list(rule.numbers(hyper.tolist()).values()), dtype)


class ClipGradByNorm(FloatingUpdate):
    """Gradients scaled to a norm where theirs is larger: a launch for the squares, and one that scales."""

    def bind(self, params: Sequence[Array], grads: Sequence[Array], states: Sequence[Sequence[Array]], hyper: Array) -> Step:
        """Return a step that scales these gradients; `hyper` is read each time."""
        tables = Tables([(grad,) for grad in grads])
        dtype = str(grads[0].dtype)

        def launcher(resident: bool) -> Launcher:
            squares = tables.launcher(norm_code(dtype, scales=False), partial=True)
            scale = tables.launcher(norm_code(dtype, scales=True, resident=resident), partial=True)

            def launch(numbers: Sequence[Any]) -> None:
                squares([])
                scale(numbers)

            return launch

        return UpdateStep(launcher, lambda: [float(hyper[0])], "float64")


def rule_of(name: str, n_states: int) -> Rule:
    """Return the rule of a solver that keeps so many states."""
    rule = RULES[name]
    return rule if len(rule.states) == n_states else RULES_WITH_MAXIMUM[name]


def update_code(name: str, dtype: str, *, resident: bool = False, n_states: int | None = None, guarded: bool = False) -> Code:
    """Return the kernel of a rule.

    Args:
        name: Name of the rule.
        dtype: dtype of the parameters.
        resident: Its numbers are on the device.
        n_states: Number of states, where a setting adds one.
        guarded: It changes nothing while the norm of all gradients is not finite.
    """
    rule = RULES[name] if n_states is None else rule_of(name, n_states)
    arrays = ("w", "g", *rule.states)
    numbers = list(rule.numbers([0.5] * 10))
    head = [f"R* const {array}_ = (R*)pointers[owner * {len(arrays)} + {k}];" for k, array in enumerate(arrays)]
    loads = [f"R {array} = {array}_[i];" for array in arrays]
    stores = [f"{array}_[i] = {array};" for array in (*rule.writes, *rule.states)]
    body = "\n".join(
        [
            *([GUARD] if guarded else []),
            *read_numbers(numbers, resident),
            HEAD,
            *(f"  {line}" for line in head),
            f"  {LOOP} {{",
            *(f"    {line}" for line in (*loads, in_real(rule.body), *stores)),
            "  }",
        ]
    )
    parameters = [*PARAMETERS, *([GUARD_PARAMETER] if guarded else []), *number_parameters(numbers, "R", resident)]
    return generated(f"update_{name}", parameters, body, real_type(dtype))


def norm_code(dtype: str, *, scales: bool, resident: bool = False) -> Code:
    """Return the kernel that writes the sum of squares of each chunk, or the one that scales by the sum of the chunks.

    `resident`: the limit is on the device.
    """
    limit = ["limit"] if scales else []
    loop = "for (int64 k = firsts[owner] + threadIdx.x; k < firsts[owner + 1]; k += blockDim.x) a += partial[k];"
    first = loop if scales else f"{LOOP} a += double(g[i]) * g[i];"
    last = (
        f"const double norm = sqrt(sums[0]);\n  if (norm > limit) {LOOP} g[i] = R(g[i] * R(limit / norm));"
        if scales
        else "if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];"
    )
    body = f"""\
{"".join(read_numbers(limit, resident, "double"))}
{HEAD}
  R* const g = (R*)pointers[owner];
{block_sum(first, last)}"""
    numbers = number_parameters(limit, "double", resident) if scales else []
    parameters = [*PARAMETERS, "double* partial", *numbers]
    return generated("clip_scale" if scales else "clip_squares", parameters, body, real_type(dtype))


UPDATES: Final[Mapping[str, MultiTensorUpdate | ClipGradByNorm | LayerwiseUpdate | Rescale]] = {
    **{name: MultiTensorUpdate(name) for name in RULES},
    **LAYERWISE,
    "ClipGradByNorm": ClipGradByNorm(),
    "Rescale": Rescale(),
}
