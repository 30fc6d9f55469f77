"""Every claim of nn_core's column in docs/comparison.md has a test; this table names it."""

import re

import pytest

from tests.integration.named_tests import ROOT, require_test

PLUGINS = "tests/unit/dispatch/test_plugins.py"
OFFERS = "tests/unit/dispatch/test_offers.py"
HOSTILE = "tests/unit/testing/test_hostile.py"
KINDS = "tests/unit/test_plugin_kinds.py"
KERNELS = "tests/meta/test_kernel_checks.py"
SCAFFOLD = "tests/packaging/test_scaffold.py"

#: The first cell of a row, and the tests that hold the second one to what it says.
TESTS = {
    "found by": [f"{PLUGINS}::test_names_come_from_metadata_alone"],
    "kinds of extension": [f"{KINDS}::test_there_is_one_of_every_kind_and_describing_them_imports_none"],
    "cost of an installed plugin that is not used": [
        "tests/packaging/test_import.py::test_of_fifty_plugins_a_name_imports_its_owner_and_a_typing_error_none"
    ],
    "a plugin that fails to import": [
        "tests/packaging/test_failures.py::test_a_broken_plugin_does_not_disturb_the_core",
        f"{HOSTILE}::test_a_plugin_that_cannot_be_loaded",
    ],
    "`sys.exit`, hanging, a crash at import": [
        f"{PLUGINS}::test_a_plugin_that_exits_is_broken",
        f"{HOSTILE}::test_a_deadline_reaches_other_threads",
        f"{HOSTILE}::test_the_doctor_survives_what_takes_the_interpreter_down",
    ],
    "half-registered plugin": [f"{HOSTILE}::test_a_plugin_that_cannot_be_loaded"],
    "names that clash": [
        f"{PLUGINS}::test_an_api_name_of_two_plugins_is_refused_whatever_the_order_and_their_own_names_serve",
        f"{OFFERS}::test_a_name_of_two_plugins_is_refused_with_both_named",
    ],
    "version check": [f"{PLUGINS}::test_a_core_serves_a_range_of_numbers"],
    "written compatibility promise": ["tests/packaging/test_frozen.py::test_every_frozen_plugin_is_tested"],
    "gradients": [
        "tests/meta/test_rule_checks.py::test_a_wrong_gradient_of_any_input_is_found",
        f"{HOSTILE}::test_calls_of_kernels_are_checked_when_asked_to",
    ],
    "conformance kit": [
        f"{KERNELS}::test_layouts_channels_last",
        f"{KERNELS}::test_refusal",
        f"{KERNELS}::test_reuse",
        f"{KERNELS}::test_threads",
        "tests/unit/dispatch/test_certificate.py::",
    ],
    "compiled code sees plugin operators": ["tests/unit/test_plugin_consumers.py::test_passes_without_gradients_run_fusions"],
    "any array library": [
        "tests/unit/adapted/test_operators.py::test_every_operator_runs_over_the_standard",
        "tests/unit/test_strict_namespace.py::",
    ],
    "scaffold": [f"{SCAFFOLD}::test_the_guide_leads_from_an_empty_folder_to_a_wheel_whose_tests_and_program_pass"],
    "hygiene of importing": [f"{HOSTILE}::test_the_doctor_says_what_importing_does"],
    "saved files": ["tests/unit/training/test_checkpoint.py::test_checkpoints_name_the_plugins_that_they_need"],
    "third-party packages in the field": [],  # there are none, as it says
}


def rows() -> list[str]:
    """The first cell of each row."""
    lines = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8").splitlines()
    return [line.split(" | ")[0].removeprefix("| ") for line in lines if re.match(r"\| [^|]", line)]


def test_every_row_is_named() -> None:
    assert rows() == list(TESTS)


@pytest.mark.parametrize("row", TESTS)
def test_the_tests_of_a_row_exist(row: str) -> None:
    for place in TESTS[row]:
        require_test(place)
