"""The self-test of a device, on an emulated one."""

import dataclasses

import nn_core as nn


def test_all_functions_agree_with_the_reference(cuda):
    from nn_ext_cuda.self_test import CASES, self_test

    outcomes = list(self_test(nn.get_current_context()))
    assert [outcome.name for outcome in outcomes] == [case.name for case in CASES]
    assert len(outcomes) == 10
    assert all(outcome.passed for outcome in outcomes), outcomes
    assert {outcome.backend for outcome in outcomes} == {"cuda:float"}


def test_a_wrong_kernel_and_an_exception_are_told(cuda, monkeypatch):
    from click.testing import CliRunner

    from nn_core.ext import NNCoreError
    from nn_ext_cuda import self_test

    def failing(*_):
        raise NNCoreError("the device is gone\n  hint: none")

    gelu, *_ = (case for case in self_test.CASES if case.name == "gelu")
    cases = (gelu, dataclasses.replace(gelu, name="broken", compute=failing))
    assert [outcome.passed for outcome in self_test.self_test(nn.get_current_context(), cases)] == [True, False]
    monkeypatch.setattr(self_test, "CASES", cases)
    monkeypatch.setattr(self_test.self_test, "__defaults__", (cases,))
    result = CliRunner().invoke(self_test.command, [])
    assert result.exit_code == 1
    assert "ok     gelu" in result.output
    assert "FAILED broken               the device is gone" in result.output
    assert "1 of 2 functions do not agree" in result.output
    monkeypatch.setattr(self_test, "TOLERANCE", -1.0)
    assert not any(outcome.passed for outcome in self_test.self_test(nn.get_current_context(), cases))
