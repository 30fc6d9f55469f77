"""The self-test of backends, and the doctor's option for it."""

import dataclasses

import pytest
from click.testing import CliRunner

from nn_core.__main__ import main
from nn_core.errors import NNCoreError
from nn_core.testing import self_test as module


@pytest.fixture
def cases(monkeypatch):
    """A case that passes and one that raises, in the place of the ten."""

    def failing(*_):
        raise NNCoreError("the device is gone\n  hint: none")

    gelu, *_ = (case for case in module.CASES if case.name == "gelu")
    found = (gelu, dataclasses.replace(gelu, name="broken", compute=failing))
    monkeypatch.setattr(module.self_test, "__defaults__", (found,))
    return found


def test_ten_functions_agree_with_themselves():
    lines, passed = module.report("reference")
    assert passed
    assert len(lines) == 11
    assert lines[0].startswith("ok     affine               reference:float, difference 0.0e+00, ")
    assert lines[-1] == "reference: 10 of 10 functions agree with the reference"


def test_a_wrong_result_and_an_exception_are_told(cases, monkeypatch):
    lines, passed = module.report("reference")
    assert not passed
    assert lines[1] == "FAILED broken               the device is gone"
    assert lines[-1] == "reference: 1 of 2 functions agree with the reference"
    monkeypatch.setattr(module, "TOLERANCE", -1.0)
    assert not any(outcome.passed for outcome in module.self_test(module.context_of("reference"), cases))


@pytest.mark.usefixtures("examines_no_others")
def test_the_doctor_tests_what_is_named(cases):
    result = CliRunner().invoke(main, ["doctor", "--test", "reference"])
    assert result.exit_code == 1
    assert "FAILED broken" in result.output
    result = CliRunner().invoke(main, ["doctor", "--test"])
    assert result.exit_code == 2
    assert "--test must be given the names of backends" in result.output
