"""Functions of arrays without elements: a result, or a refusal of ours, never an exception of NumPy or a warning."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

import nn_core as nn
import nn_core.testing.samples  # fills the tables
from nn_core.engine.graph.apply import operator_of
from nn_core.errors import NNCoreError
from nn_core.operators.spec.builtin import SPECS
from nn_core.operators.spec.model import FunctionSpec
from nn_core.testing.samples.registry import Sample, numbers_of, samples_of

OPERATORS = [spec for spec in SPECS if not spec.has("composite") and samples_of(spec)]
#: Samples of each function in the quick test.
FEW = 1


def emptied(spec: FunctionSpec, entry: Sample) -> Iterator[list[np.ndarray[Any, Any] | None]]:
    """The inputs of a sample with no place on all axes of one length, then on one axis of one input."""
    arrays = numbers_of(spec, entry)
    given = [array for array in arrays if array is not None]
    for length in sorted({n for array in given for n in array.shape}):
        yield [None if a is None else _of_shape(a, [0 if n == length else n for n in a.shape]) for a in arrays]
    for place, array in enumerate(arrays):
        for axis in range(0 if array is None else array.ndim):
            shape = [0 if n == axis else length for n, length in enumerate(array.shape)]
            yield [_of_shape(a, shape) if n == place else a for n, a in enumerate(arrays)]


def _of_shape(array: np.ndarray[Any, Any], shape: list[int]) -> np.ndarray[Any, Any]:
    return array if list(array.shape) == shape else np.zeros(shape, array.dtype)


def run(spec: FunctionSpec, entry: Sample, arrays: list[np.ndarray[Any, Any] | None], backend: str) -> None:
    """Run a call forwards and backwards; a refusal is fine."""
    with nn.context_scope(nn.Context([backend])):
        inputs = [None if a is None else nn.Variable.from_numpy_array(a, need_grad=a.dtype.kind == "f") for a in arrays]
        try:
            made = operator_of(spec)(*inputs, **entry.args)
            results = list(made) if isinstance(made, (tuple, list)) else [made]
            nn.forward_all(results)
            for result in results[:1]:
                if result.need_grad:
                    result.backward()
        except NNCoreError:
            pass


@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_inputs_without_elements(spec: FunctionSpec) -> None:
    for entry in islice(samples_of(spec), FEW):
        for arrays in emptied(spec, entry):
            run(spec, entry, arrays, "reference")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_inputs_without_elements_in_all_samples(spec: FunctionSpec, backend: str) -> None:
    if backend == "cpu":
        pytest.importorskip("nn_ext_cpu")
    for entry in samples_of(spec):
        for arrays in emptied(spec, entry):
            run(spec, entry, arrays, backend)
