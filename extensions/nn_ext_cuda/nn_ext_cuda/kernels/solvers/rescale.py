"""All gradients unscaled and clipped by their common norm, which stays on the device for the update that depends on it.

The first launch leaves the sum of squares of each chunk; in the second one each block adds up all of them, in the same
order, and scales its chunk. Nothing is scaled where the norm is infinite or NaN, and the host need not know that before the
update: see `multi_tensor.GUARD`.
"""

from collections.abc import Sequence
from typing import Any

from nn_core.ext import Array, Refusal, Step
from nn_ext_cuda.codegen.code import Code, generated
from nn_ext_cuda.device.errors import failed
from nn_ext_cuda.kernels.solvers.multi_tensor import (
    HEAD,
    LOOP,
    PARAMETERS,
    FloatingUpdate,
    Launcher,
    Tables,
    UpdateStep,
    block_sum,
    number_parameters,
    read_numbers,
)
from nn_ext_cuda.launch import deferred


class Rescale(FloatingUpdate):
    """Gradients times a factor, and times limit / norm where their norm is then above the limit."""

    def prepare(self, sizes: Sequence[int], dtype: str) -> "Rescale | Refusal":
        """Take gradients of float32, whose squares float64 can add up."""
        return self if dtype == "float32" else Refusal(f"computes in float32, got {dtype}")

    def bind(self, params: Sequence[Array], grads: Sequence[Array], states: Sequence[Sequence[Array]], hyper: Array) -> Step:
        """Return a step that rescales these gradients; `hyper`, the factor and the limit, is read each time."""
        from nn_ext_cuda.device.runtime import cupy  # rules can be read without CuPy

        tables = Tables([(grad,) for grad in grads])
        norm = cupy.zeros((1,), "float64")

        def launcher(resident: bool) -> Launcher:
            squares = tables.launcher(rescale_code(scales=False), partial=True)
            scale = tables.launcher(rescale_code(scales=True, resident=resident), partial=True)

            def launch(numbers: Sequence[Any]) -> None:
                squares([])
                scale([norm, *numbers])

            return launch

        return RescaleStep(launcher, lambda: [float(number) for number in hyper], Norm(norm))


class Norm:
    """The norm of all gradients after they were multiplied by the factor; see `nn_core.solvers.update.Verdict`.

    Attributes:
        array: The number on the device.
    """

    def __init__(self, array: Array) -> None:
        self.array = array

    def read(self) -> float:
        """Return the number on the host, after everything that is held back."""
        deferred.flush()
        try:
            return float(self.array.get()[0])
        except Exception as error:  # a fault of an earlier launch is often told here
            raise failed("read the norm of the gradients", error, [self.array]) from error


class RescaleStep(UpdateStep):
    """The step, and where it leaves the norm."""

    __slots__ = ("verdict",)

    def __init__(self, launcher: Any, read: Any, verdict: Norm) -> None:
        super().__init__(launcher, read, "float64")
        self.verdict = verdict


def rescale_code(*, scales: bool, resident: bool = False) -> Code:
    """Return the kernel that writes the sum of squares of each chunk, or the one that scales; `resident`: numbers are
    there.
    """
    numbers = ["factor", "limit"] if scales else []
    first = f"{LOOP} a += double(g[i]) * g[i];"
    last = "if (threadIdx.x == 0) partial[blockIdx.x] = sums[0];"
    if scales:
        first = "for (int64 k = threadIdx.x; k < gridDim.x; k += blockDim.x) a += partial[k];"
        last = f"""\
const double norm = fabs(factor) * sqrt(sums[0]);
  if (blockIdx.x == 0 && threadIdx.x == 0) norm_of_all[0] = norm;
  if (norm - norm != 0) return;
  const R scale = R(norm > limit ? factor * (limit / norm) : factor);
  if (scale != 1) {LOOP} g[i] *= scale;"""
    body = f"""\
{"".join(read_numbers(numbers, resident, "double"))}
{HEAD}
  R* const g = (R*)pointers[owner];
{block_sum(first, last)}"""
    result = ["double* norm_of_all", *number_parameters(numbers, "double", resident)] if scales else []
    parameters = [*PARAMETERS, "double* partial", *result]
    return generated("rescale" if scales else "rescale_squares", parameters, body, "float")
