"""The short checks for devices, on a backend of the host; nn_ext_cudnn runs them on an emulated device."""

import pytest
from click.testing import CliRunner

from nn_core.ext_utils import list_extensions
from tools.release import smoke


@pytest.fixture
def place() -> smoke.CheckedBackend:
    return smoke.CheckedBackend("cpu" if "cpu" in list_extensions() else "reference", is_short=True)


def run(*words: str) -> tuple[int, list[str]]:
    result = CliRunner().invoke(smoke.main, list(words))
    return result.exit_code, result.output.splitlines()


def test_all_checks_pass_on_the_host(place: smoke.CheckedBackend) -> None:
    status, lines = run("-c", place.name, "--short")
    assert status == 0, lines
    assert lines[-1] == "all checks passed"
    assert [line.split()[1] for line in lines[:-1]] == ["normalization"] * 3 + ["recurrent"] * 8 + ["steps"] * 9


def test_differences_fail_a_check(place: smoke.CheckedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke, "TOLERANCES", {**smoke.TOLERANCES, "half": 1e-9})
    status, lines = run("-c", place.name, "--short", "recurrent")
    assert status == 1
    assert lines[-1] == "2 failed"
    assert [line.split()[2:4] for line in lines if line.startswith("FAILED")] == [["LSTM", "half"], ["GRU", "half"]]


def test_values_that_are_not_finite_differ() -> None:
    values = smoke.np.ones(3)
    assert smoke._difference(values * smoke.np.nan, values) == float("inf")


def test_other_bits_fail_a_check(place: smoke.CheckedBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    trained, n_calls = smoke._trained, []

    def drifting(*given: object) -> smoke.Training:
        n_calls.append(1)
        found = trained(*given)  # type: ignore[arg-type]
        return smoke.Training([*found.bits, str(len(n_calls)).encode()], found.recorded)

    monkeypatch.setattr(smoke, "_trained", drifting)
    outcome = next(smoke.steps(place))
    assert not outcome.passed
    assert str(outcome).startswith("FAILED steps MLP float: other bits together than step by step, ")


def test_a_training_that_is_not_recorded_fails_on_a_device() -> None:
    found = {way: smoke.Training([b"bits"], "0 graphs of 0 functions, 9 apart") for way in ("without graphs", "together")}
    assert smoke._verdict(found, smoke.CheckedBackend("cpu"))[0]
    assert not smoke._verdict(found, smoke.CheckedBackend("cuda"))[0]


def test_an_error_fails_a_check_and_the_others_go_on() -> None:
    status, lines = run("-c", "absent", "--short", "recurrent", "steps")
    assert status == 1
    assert lines[-1] == "17 failed"
    assert all("absent" in line for line in lines[:-1])
