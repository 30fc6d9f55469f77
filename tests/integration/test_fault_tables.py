"""Every promise about a fault in docs/training.md and docs/distributed.md names the test that shows it."""

import re

import pytest

from tests.integration.named_tests import ROOT, require_test

#: The files of the tests, by page.
TESTS = {
    "training": {
        "test_a_killed_run_ends_as_one_that_was_not": "tests/integration/test_killed_runs.py",
        "test_signals_save_before_the_end": "tests/unit/training/test_trainer.py",
        "test_a_run_that_reaches_its_limit_is_continued_by_the_next_process": "tests/unit/training/test_time_limits.py",
        "test_a_newest_checkpoint_that_is_cut_anywhere_is_passed_over": "tests/unit/training/test_checkpoint.py",
        "test_nothing_is_resumed_where_all_checkpoints_are_damaged": "tests/unit/training/test_runs.py",
        "test_a_log_that_is_not_what_it_was_is_written_anew": "tests/unit/training/test_keeping.py",
        "test_training_goes_on_where_the_disk_is_full_for_a_while": "tests/unit/training/test_keeping.py",
        "test_a_signal_with_a_full_disk_does_not_read_as_saved": "tests/unit/training/test_keeping.py",
        "test_a_live_run_is_in_the_way_of_everything": "tests/unit/training/test_runs.py",
        "test_faults_lose_no_batch": "tests/unit/data/test_workers.py",
        "test_a_sample_that_kills_its_workers_is_named_and_passed_over": "tests/unit/data/test_hanging_workers.py",
        "test_a_sample_that_hangs_is_named_and_passed_over": "tests/unit/data/test_hanging_workers.py",
        "test_failing_samples_are_passed_over_as_without_workers": "tests/unit/data/test_workers.py",
        "test_a_file_that_is_another_by_now_is_refused": "tests/unit/data/test_large_files.py",
        "test_damaged_shards_are_refused": "tests/unit/data/test_large_files.py",
        "test_another_number_of_threads_is_said": "tests/unit/training/test_checkpoint.py",
    },
    "distributed": {
        "test_the_trainer_gives_the_same_bits_after_signals": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_divided_states_are_resumed_on_other_ranks_and_after_a_kill": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_the_others_go_on_when_a_process_is_killed": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_a_process_takes_the_place_of_a_killed_one": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_the_loss_of_rank_0_ends_the_job": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_the_loss_of_a_rank_loses_its_states": "tests/unit/communicators/test_sharded_states.py",
        "test_training_is_resumed_on_other_numbers_of_ranks": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_checkpoints_are_those_of_undivided_states": "tests/unit/training/test_sharded_training.py",
        "test_any_number_of_ranks_resumes_from_parts": "tests/unit/training/test_parts.py",
        "test_a_newest_checkpoint_with_a_damaged_part_is_passed_over": "tests/unit/training/test_parts.py",
        "test_no_file_of_rank_0_without_all_parts": "tests/unit/training/test_parts.py",
        "test_training_goes_on_where_one_rank_has_no_room_for_a_while": "tests/unit/training/test_parts.py",
        "test_divided_gradients_with_accumulated_batches_and_a_loss_scale": "tests/unit/training/test_sharded_training.py",
        "test_ranks_with_data_of_their_own_are_resumed_where_they_were": "extensions/nn_ext_mpi/tests/test_training.py",
        "test_ranks_resume_from_the_same_checkpoint": "tests/unit/training/test_ranks.py",
        "test_launch_hands_on_signals_and_waits_until_rank_0_has_saved": "extensions/nn_ext_mpi/tests/test_signals.py",
        "test_launch_passes_on_the_status_that_asks_for_another_start": "extensions/nn_ext_mpi/tests/test_signals.py",
        "test_all_ranks_stop_after_the_same_iteration": "tests/unit/training/test_ranks.py",
        "test_rank_0_completes_its_checkpoint_when_another_rank_fails": "extensions/nn_ext_mpi/tests/test_signals.py",
        "test_a_rank_that_ends_early_with_status_0_is_noticed_at_once": "extensions/nn_ext_mpi/tests/test_signals.py",
        "test_a_late_rank_is_named": "tests/unit/communicators/test_communicator.py",
        "test_sizes_and_calls_must_agree": "tests/unit/communicators/test_communicator.py",
        "test_the_job_continues_on_the_machines_that_are_left": "extensions/nn_ext_ray/tests/test_training.py",
    },
}


def named(page: str) -> list[str]:
    """Return the tests in the last column of the table."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    table = text.partition("# What is promised under which fault\n\n")[2].partition("\n\n")[0]
    return re.findall(r"\| `(\w+)` \|$", table, re.MULTILINE)


@pytest.mark.parametrize("page", TESTS)
def test_each_promise_names_its_test(page: str) -> None:
    names = named(page)
    assert names == list(TESTS[page]) and len(names) > 10
    for name in names:
        require_test(f"{TESTS[page][name]}::{name}")
