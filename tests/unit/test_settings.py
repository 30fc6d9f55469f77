"""What environment variables may say."""

import pytest

from nn_core.errors import ArgumentError
from nn_core.settings import OPTIMIZATIONS, Settings, is_enabled, without


def test_an_empty_environment_gives_the_defaults():
    assert Settings.read({}) == Settings()


def test_an_empty_value_counts_as_not_set():
    assert Settings.read({"NN_CORE_STRICT": "", "NN_CORE_NUM_THREADS": "", "NN_CORE_LOG_LEVEL": ""}) == Settings()


def test_every_variable_is_read():
    environment = {
        "NN_CORE_PLUGIN_AUTOLOAD": "0",
        "NN_CORE_STRICT": "1",
        "NN_CORE_LOG_LEVEL": "debug",
        "NN_CORE_NUM_THREADS": "3",
        "NN_CORE_SKIP_PLUGIN_CHECK": "on",
        "NN_CORE_DISABLE": "fuse, winograd,",
    }
    assert Settings.read(environment) == Settings(False, True, "DEBUG", 3, True, frozenset({"fuse", "winograd"}))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NN_CORE_STRICT", "maybe", "NN_CORE_STRICT: must be 0 or 1, got 'maybe'"),
        ("NN_CORE_LOG_LEVEL", "LOUD", "NN_CORE_LOG_LEVEL: must be one of DEBUG, .*, got 'LOUD'"),
        ("NN_CORE_NUM_THREADS", "0", "NN_CORE_NUM_THREADS: must be an integer of at least 1, got '0'"),
        ("NN_CORE_DISABLE", "fuse,speed", "NN_CORE_DISABLE: must be names of channels_last, fuse, .*, got 'speed'"),
        ("NN_CORE_NUM_THREADS", "two", "NN_CORE_NUM_THREADS: must be an integer of at least 1, got 'two'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name, value, message):
    with pytest.raises(ArgumentError, match=message):
        Settings.read({name: value})


def test_an_optimization_is_switched_off_for_a_block():
    with without("fuse"), without("join", "fuse"):
        assert not is_enabled("fuse")
        assert not is_enabled("join")
    assert all(is_enabled(name) for name in OPTIMIZATIONS)


def test_an_optimization_that_does_not_exist_cannot_be_switched_off():
    with pytest.raises(ArgumentError, match=r"without: must be names of .*, got 'speed'"), without("speed"):
        pass
