"""Expected results of samples: computed in float64 by the reference, from inputs that were rounded to a dtype first."""

import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from nn_core.engine.arrays.casting import dtype_of
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.operators import hidden_results, output_gradients, run, run_gradient, updated
from nn_core.testing.samples.registry import Sample, numbers_of

Numbers: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """A call and its results, in float64 and int64.

    Attributes:
        inputs: The inputs, None where not given.
        after: The inputs after the function has run: those in `updates` may have changed.
        outputs: All outputs, aux outputs included.
        updates: New values of the inputs that the function rewrites; None where they stay.
        grads: Random gradients of the visible outputs.
        gradients: Gradients of the inputs by the rule; None where there is none, empty if the function has none.
    """

    inputs: tuple[Numbers | None, ...]
    after: tuple[Numbers | None, ...]
    outputs: tuple[Numbers, ...]
    updates: tuple[Numbers | None, ...]
    grads: tuple[Numbers, ...]
    gradients: tuple[Numbers | None, ...]

    @property
    def visible(self) -> tuple[Numbers, ...]:
        """The outputs that the caller gets."""
        return self.outputs[: len(self.grads)]


def rounded(array: Numbers | None, dtype: str) -> Numbers | None:
    """Floating numbers as `dtype` holds them, in float64; integers as they are."""
    if array is None or array.dtype.kind != "f":
        return array
    return array.astype(dtype_of(dtype)).astype(np.float64)


@lru_cache(maxsize=64)
def truth_of(spec: FunctionSpec, sample: Sample, dtype: str, key: tuple[int, int] | None = None) -> Truth:
    """Return the truth of `sample`; a seeded function draws from `key`."""
    inputs = tuple(rounded(array, dtype) for array in numbers_of(spec, sample))
    results = run(spec.name, *inputs, key=key, **sample.args)
    n_updates = len(spec.updates)
    outputs, updates = results[: len(results) - n_updates], results[len(results) - n_updates :]
    rng = np.random.default_rng(zlib.crc32(f"{spec.name}/{sample.name}/grads".encode()))
    drawn = output_gradients(results[: len(results) - hidden_results(spec)], rng)
    grads = tuple(rounded(grad, dtype) for grad in drawn)
    gradients: tuple[Any, ...] = ()
    if spec.differentiable and sample.gradient:
        gradients = run_gradient(spec.name, *inputs, grads=grads, key=key, **sample.args)
    after = tuple(updated(spec, inputs, updates))
    return Truth(inputs, after, outputs, updates, grads, gradients)  # type: ignore[arg-type]  # grads are arrays


def floating(spec: FunctionSpec, truth: Truth) -> tuple[bool, ...]:
    """Return, for each input, whether it can have a gradient: it is given and holds floating numbers."""
    return tuple(array is not None and array.dtype.kind == "f" for array in truth.inputs)
