"""Mutated models: some in the tests, more by ``python -m tools.mutate_onnx``; a planted fault is found."""

from collections import Counter

import pytest

import nn_core.functions as F
from tools import mutate_onnx


def test_the_models_themselves_are_computed_right():
    assert {mutate_onnx.outcome(data) for data in mutate_onnx.models()} <= {"equal", "unjudged"}


@pytest.mark.parametrize("first", [0, 20, 40])
def test_mutated_models_are_refused_or_right(first):
    outcomes = Counter()
    assert mutate_onnx.findings(range(first, first + 20), 1, outcomes) == []
    assert sum(outcomes.values()) == 20


@pytest.mark.slow
def test_many_mutated_models_are_refused_or_right():
    assert mutate_onnx.findings(range(500), 2, Counter()) == []


def test_a_wrong_result_is_found(monkeypatch):
    dense = mutate_onnx.models()[0]
    monkeypatch.setattr(F, "softmax", lambda x, axis: F.sigmoid(x))
    assert mutate_onnx.outcome(dense).startswith("another result")
