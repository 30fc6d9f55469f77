"""The logger and NN_CORE_LOG_LEVEL."""

import logging

import pytest

from nn_core.logger import follow_settings, logger


@pytest.fixture
def target():
    return logging.Logger("nn_core.of_a_test")


def test_a_program_that_sets_up_nothing_sees_warnings():
    assert logger.name == "nn_core"
    assert logger.handlers == []  # a handler would keep the standard library from printing them


def test_without_a_level_nothing_is_set_up(target):
    follow_settings(target, None)
    assert (target.level, target.handlers, target.propagate) == (logging.NOTSET, [], True)


def test_a_level_prints_from_there_on(target, capsys):
    follow_settings(target, "INFO")
    target.debug("unseen")
    target.info("seen")
    assert capsys.readouterr().err == "seen\n"
