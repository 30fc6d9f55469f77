"""The self-test of the doctor, on an emulated device."""

import nn_core as nn
from nn_core.testing.self_test import CASES, context_of, self_test


def test_backends_that_are_listed_but_not_installed_are_left_out(cuda, monkeypatch):
    recommended = nn.Context(["cuda:float", "not_installed:float"])
    monkeypatch.setattr("nn_core.testing.self_test.get_extension_context", lambda name, **settings: recommended)
    assert list(context_of("cuda").backend) == ["cuda:float"]


def test_all_functions_agree_with_the_reference(cuda):
    assert list(context_of("cuda").backend) == ["cuda:float"], "nothing leaves the device"
    outcomes = list(self_test(context_of("cuda")))
    assert [outcome.name for outcome in outcomes] == [case.name for case in CASES]
    assert len(outcomes) == 10
    assert all(outcome.passed for outcome in outcomes), outcomes
    assert {outcome.backend for outcome in outcomes} == {"cuda:float"}
