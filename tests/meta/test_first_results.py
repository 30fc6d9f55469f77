"""A kernel that gives its first result again is found for every operator, in the shortest run of the kit too."""

from dataclasses import replace

import numpy as np
import pytest

from nn_core.engine.dispatch.registry import spec_of
from nn_core.operators.reference.adapter import ReferenceKernel
from nn_core.operators.reference.registry import KERNELS
from nn_core.operators.spec.builtin import SPECS
from nn_core.testing.cases import cases, has_kernel
from nn_core.testing.checks.reuse import check_reuse
from nn_core.testing.checks.rules import check_description
from nn_core.testing.perturbed_inputs import other_numbers
from nn_core.testing.samples.registry import CONSTANT, samples_of
from tests.slow import some_slow


class FirstResults(ReferenceKernel):
    """Computes as the reference does, once for each call that it is prepared for."""

    def forward(self, call):
        run = super().forward(call)
        n_inputs, n_outputs = len(call.inputs), len(call.outputs)
        dynamic = call.spec.has("dynamic_shape")
        kept = []

        def first(*arrays):
            results = arrays[n_inputs : n_inputs + n_outputs]
            if not kept:
                made = run(*arrays)
                kept.append([result.copy() for result in (made if dynamic else results)])
            if dynamic:
                return tuple(result.copy() for result in kept[0])
            for result, value in zip(results, kept[0], strict=True):
                result[...] = value
            return None

        return first


#: Operators with results that depend on the numbers of inputs, or on a random key.
DEPENDENT = [spec for spec in SPECS if has_kernel(spec) and spec.name not in CONSTANT and (spec.inputs or spec.has("seeded"))]


@pytest.mark.parametrize("spec", some_slow(DEPENDENT, one_of=2), ids=lambda spec: spec.name)
def test_first_results_are_found(bed, smoke_cases, spec):
    bed.plant(spec.name, FirstResults(KERNELS[spec.name], np))
    case = replace(smoke_cases[spec.name], backend="planted")
    assert case.native
    with pytest.raises(AssertionError, match=r"elements differ|shape"):
        check_reuse(case)


@pytest.fixture(scope="module")
def smoke_cases():
    """The case of each operator in the shortest run, by name."""
    return {case.spec.name: case for case in cases(["reference"], fast=True)}


@pytest.mark.parametrize("name", sorted(CONSTANT))
def test_constant_functions_have_no_other_results(name):
    spec = spec_of(name)
    assert not any(other_numbers(spec, sample, "float32")[1] for sample in samples_of(spec))


def test_no_more_functions_are_constant_than_are_known():
    assert sorted(CONSTANT) == ["EyeLike", "Shape", "Sink"]


def test_samples_that_tell_nothing_are_found(monkeypatch):
    spec = spec_of("Tanh")
    check_description(spec)
    empty = [sample for sample in samples_of(spec) if sample.name == "empty"]
    monkeypatch.setattr("nn_core.testing.perturbed_inputs.samples_of", lambda spec: empty)
    with pytest.raises(AssertionError, match="Tanh: other numbers in the inputs of a sample must give other results"):
        check_description(spec)
