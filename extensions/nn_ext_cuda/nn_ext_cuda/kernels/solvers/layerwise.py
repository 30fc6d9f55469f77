"""Updates that depend on norms of each parameter, in two launches for all parameters: norms of chunks, then the steps.

The first launch leaves the sums of squares of two values for each chunk; in the second one each block adds up those of its
parameter, and steps.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nn_core.ext import Array, Step
from nn_ext_cuda.codegen.code import Code, generated, in_real
from nn_ext_cuda.codegen.dtypes import real_type
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
    guarded,
    number_parameters,
    read_numbers,
)
from nn_ext_cuda.kernels.solvers.rules import LAYERWISE_RULES, LayerwiseRule
from nn_ext_cuda.launch.program import THREADS


class LayerwiseUpdate(FloatingUpdate):
    """The update of such a rule; see `nn_core.solvers.update.UpdateKernel`.

    Args:
        rule: The rule.
        name: Its name.
    """

    guards = True

    def __init__(self, name: str, rule: LayerwiseRule) -> None:
        self._name = name
        self._rule = rule

    def bind(
        self,
        params: Sequence[Array],
        grads: Sequence[Array],
        states: Sequence[Sequence[Array]],
        hyper: Array,
        guard: Array | None = None,
    ) -> Step:
        """Return a step that updates these arrays, unless the norm in `guard` is not finite; `hyper` is read each time."""
        tables = Tables(list(zip(params, grads, *states, strict=True)), n_partial=2)
        dtype, rule = str(params[0].dtype), self._rule

        def launcher(resident: bool) -> Launcher:
            settings = {"resident": resident, "guarded": guard is not None}
            codes = [layerwise_code(self._name, rule, dtype, steps=steps, **settings) for steps in (False, True)]
            launches = [guarded(tables.launcher(code, partial=True), guard) for code in codes]

            def launch(numbers: Sequence[Any]) -> None:
                for one in launches:
                    one(numbers)

            return launch

        return UpdateStep(launcher, lambda: list(rule.numbers(hyper.tolist()).values()), dtype)


def layerwise_code(
    name: str, rule: LayerwiseRule, dtype: str, *, steps: bool, resident: bool = False, guarded: bool = False
) -> Code:
    """Return the kernel that sums the squares of each chunk, or the one that steps; see `updates.update_code`."""
    arrays = ("w", "g", *rule.states)
    numbers = list(rule.numbers([0.5] * 9))
    heads = "".join(f"  R* const {array}_ = (R*)pointers[owner * {len(arrays)} + {k}];\n" for k, array in enumerate(arrays))
    loads = " ".join(f"R {array} = {array}_[i];" for array in arrays)
    written = rule.moved if steps else rule.prepared
    stores = " ".join(f"{array}_[i] = {array};" for array in written)
    if steps:
        first = "for (int64 k = firsts[owner] + threadIdx.x; k < firsts[owner + 1]; k += blockDim.x) {"
        first += " a += partial[2 * k]; b += partial[2 * k + 1]; }"
        body = f"{LOOP} {{ {loads} {in_real(rule.move)} {stores} }}"
        last = f"const double first = sqrt(sums[0]), second = sqrt(sums[{THREADS}]);\n  {rule.ratio}\n  {body}"
    else:
        one, other = rule.norms
        squares = f"const R first = {one}, second = {other}; a += double(first * first); b += double(second * second);"
        first = f"{LOOP} {{ {loads} {in_real(rule.prepare)} {in_real(squares)} {stores} }}"
        store = f"partial[2 * blockIdx.x] = sums[0]; partial[2 * blockIdx.x + 1] = sums[{THREADS}];"
        last = f"if (threadIdx.x == 0) {{ {store} }}"
    text = f"""\
{GUARD if guarded else ""}
{"".join(read_numbers(numbers, resident))}
{HEAD}
{heads}
  __shared__ double sums[{2 * THREADS}];
  double a = 0, b = 0;
  {first}
  sums[threadIdx.x] = a;
  sums[{THREADS} + threadIdx.x] = b;
  for (int half = {THREADS // 2}; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) {{
      sums[threadIdx.x] += sums[threadIdx.x + half];
      sums[{THREADS} + threadIdx.x] += sums[{THREADS} + threadIdx.x + half];
    }}
  }}
  __syncthreads();
  {last}"""
    guard = [GUARD_PARAMETER] if guarded else []
    parameters = [*PARAMETERS, "double* partial", *guard, *number_parameters(numbers, "R", resident)]
    return generated(f"{'step' if steps else 'norms'}_{name}", parameters, text, real_type(dtype))


LAYERWISE: Final[Mapping[str, LayerwiseUpdate]] = {name: LayerwiseUpdate(name, rule) for name, rule in LAYERWISE_RULES.items()}
