"""The tables of samples."""

import numpy as np
import pytest

from nn_core.engine.dispatch.registry import spec_of
from nn_core.errors import ArgumentError
from nn_core.operators.spec.builtin import SPECS
from nn_core.testing import drawing
from nn_core.testing.samples import registry


def test_every_function_has_samples():
    assert [spec.name for spec in SPECS if not registry.samples_of(spec)] == []


def test_pointwise_functions_are_drawn_from_their_domain():
    log = spec_of("Log")
    by_name = {entry.name: entry for entry in registry.samples_of(log)}
    (x,) = registry.numbers_of(log, by_name["long"])
    low, high = log.domain
    assert low <= x.min() < x.max() <= high


def test_functions_of_two_arrays_are_broadcast():
    names = {entry.name for entry in registry.samples_of(spec_of("Maximum2"))}
    assert {"matrix", "scalar", "empty", "broadcast", "row", "one", "channel", "ties", "special"} <= names


def test_the_numbers_of_a_sample_repeat_and_another_attempt_draws_others():
    spec = spec_of("Affine")
    entry = registry.samples_of(spec)[0]
    again = registry.numbers_of.__wrapped__(spec, entry)
    for first, second in zip(registry.numbers_of(spec, entry), again, strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(again[0], registry.numbers_of(spec, entry, 1)[0])


def test_inputs_that_are_not_given_are_none():
    spec = spec_of("Affine")
    assert registry.numbers_of(spec, registry.samples_of(spec)[0])[2] is None


def test_names_of_samples_must_differ(monkeypatch):
    monkeypatch.setitem(registry._SAMPLES, "Tanh", [])
    registry.sample("Tanh", "plain", drawing.normal(2))
    with pytest.raises(ArgumentError, match="Tanh: samples must have different names, got 'plain' twice"):
        registry.sample("Tanh", "plain", drawing.normal(3))


def test_drawn_matrices_are_what_they_say():
    rng = np.random.default_rng(0)
    assert (np.linalg.eigvalsh(drawing.positive_definite(5, 3, 3)(rng)) > 1).all()
    assert (np.linalg.det(drawing.regular(20, 4, 4)(rng)) > 0).all()
    numbers = np.sort(drawing.distinct(3, 5, gap=0.5)(rng), axis=None)
    np.testing.assert_allclose(np.diff(numbers), 0.5)
    assert set(np.unique(drawing.mask(50)(rng))) == {0.0, 1.0}
