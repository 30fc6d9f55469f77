"""The values that environment variables may have."""

from dataclasses import replace

import numpy as np
import pytest

import nn_core as nn
from nn_core.errors import ArgumentError, ShapeError
from nn_core.settings import OPTIMIZATIONS, Settings, is_enabled, strict_shapes, without


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
        "NN_CORE_STRICT_SHAPES": "true",
        "NN_CORE_PLUGINS": "+acme, -other",
        "NN_CORE_PLUGIN_TIMEOUT": "2.5",
        "NN_CORE_CHECK_KERNELS": "1",
        "NN_CORE_COMMUNICATOR": "mpi",
        "NN_CORE_COMM_TIMEOUT": "0",
        "NN_CORE_STOP_SIGNALS": "SIGUSR1, SIGUSR2",
        "NN_CORE_TIME_LIMIT": "3h50m",
        "NN_CORE_REQUEUE_STATUS": "99",
        "NN_CORE_TRUST_HDF5": "1",
        "NN_CORE_NNABLA_PROGRAM": "1",
        "NN_CORE_KEEP_VALUES": "1",
        "NN_CORE_MODELS_URL_BASE": "file:///a",
        "NNABLA_MODELS_URL_BASE": "file:///b",
    }
    disabled = frozenset({"fuse", "winograd"})
    base = Settings(False, True, "DEBUG", 3, True, disabled, True, ("+acme", "-other"), 2.5, True)
    expected = replace(base, communicator="mpi", comm_timeout=0, trust_hdf5=True, nnabla_program=True, keep_values=True)
    signals = frozenset({"SIGUSR1", "SIGUSR2"})
    limits = {"time_limit": "3h50m", "requeue_status": 99}
    bases = {"models_url_base": "file:///a", "nnabla_models_url_base": "file:///b"}
    assert Settings.read(environment) == replace(expected, stop_signals=signals, **limits, **bases)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NN_CORE_STRICT", "maybe", "NN_CORE_STRICT: must be 0 or 1, got 'maybe'"),
        ("NN_CORE_LOG_LEVEL", "LOUD", "NN_CORE_LOG_LEVEL: must be one of DEBUG, .*, got 'LOUD'"),
        ("NN_CORE_NUM_THREADS", "0", "NN_CORE_NUM_THREADS: must be an integer of at least 1, got '0'"),
        (
            "NN_CORE_DISABLE",
            "fuse,speed",
            "NN_CORE_DISABLE: must be names of channels_last, checkpoints, fuse, .*, got 'speed'",
        ),
        ("NN_CORE_PLUGINS", "acme", r"must be names with \+ or - in front, such as \+acme,-other, got 'acme'"),
        ("NN_CORE_PLUGIN_TIMEOUT", "-1", "NN_CORE_PLUGIN_TIMEOUT: must be a positive number of seconds, got '-1'"),
        ("NN_CORE_PLUGIN_TIMEOUT", "0", "must be a positive number of seconds, got '0'"),
        ("NN_CORE_COMM_TIMEOUT", "-1", "NN_CORE_COMM_TIMEOUT: must be a positive number of seconds, got '-1'"),
        ("NN_CORE_PLUGIN_TIMEOUT", "soon", "must be a positive number of seconds, got 'soon'"),
        ("NN_CORE_STOP_SIGNALS", "HUP", "must be names of signals that can be handled, such as SIGHUP,SIGUSR1, got 'HUP'"),
        ("NN_CORE_STOP_SIGNALS", "SIGKILL", "must be names of signals that can be handled, .*, got 'SIGKILL'"),
        ("NN_CORE_REQUEUE_STATUS", "256", "NN_CORE_REQUEUE_STATUS: must be an exit status from 1 to 255, got 256"),
        pytest.param("NN_CORE_CACHE_MB", "9" * 5000, "NN_CORE_CACHE_MB: must be an integer of at least 1", id="digits"),
        ("NN_CORE_NUM_THREADS", "two", "NN_CORE_NUM_THREADS: must be an integer of at least 1, got 'two'"),
    ],
)
def test_a_value_that_cannot_be_is_refused(name, value, message):
    with pytest.raises(ArgumentError, match=message):
        Settings.read({name: value})


def test_an_optimization_is_switched_off_for_a_block():
    with without("fuse"), without("inference_fusion", "fuse"):
        assert not is_enabled("fuse")
        assert not is_enabled("inference_fusion")
    assert all(is_enabled(name) for name in OPTIMIZATIONS)


def test_an_optimization_that_does_not_exist_cannot_be_switched_off():
    with pytest.raises(ArgumentError, match=r"without: must be names of .*, got 'speed'"), without("speed"):
        pass


@pytest.mark.parametrize("array", ["d", "g"])
def test_assigned_values_are_broadcast_unless_shapes_are_strict(array, monkeypatch):
    x = nn.Variable((2, 3))
    setattr(x, array, [1, 2, 3])
    np.testing.assert_array_equal(getattr(x, array), [[1, 2, 3]] * 2)
    with strict_shapes():
        with pytest.raises(ShapeError, match=r"NdArray: assigned values must have the shape \(2, 3\) or be a number, got"):
            setattr(x, array, [1, 2, 3])
        for value in (2, np.float32(2), np.array(2), np.full((2, 3), 2)):
            setattr(x, array, value)
            np.testing.assert_array_equal(getattr(x, array), np.full((2, 3), 2))
        with strict_shapes(False):
            setattr(x, array, [1, 2, 3])
    monkeypatch.setattr("nn_core.settings.settings", lambda: Settings(strict_shapes=True))
    with pytest.raises(ShapeError, match="hint: strict_shapes"):
        setattr(x, array, np.ones((1, 3)))


# Threads -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def threads_as_before():
    """Leave the number of threads as the environment says."""
    from nn_core import settings as module

    yield
    module._NUM_THREADS.clear()


def test_the_number_of_threads_reaches_those_who_prepare_work(threads_as_before, monkeypatch):
    seen = []
    monkeypatch.setattr("nn_core.settings.WHEN_SWITCHED", [lambda: seen.append(nn.num_threads())])
    nn.set_num_threads(3)
    nn.set_num_threads(3)
    assert seen == [3]


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_a_wrong_number_of_threads_is_refused(threads):
    with pytest.raises(ArgumentError, match="set_num_threads: threads must be an integer of at least 1, got "):
        nn.set_num_threads(threads)


@pytest.mark.parametrize(
    ("text", "allowed"),
    [("", {"acme", "other"}), ("-other", {"acme"}), ("+acme", {"acme"}), ("+acme,+other,-acme", {"other"})],
)
def test_plugins_are_allowed_and_blocked_by_name(text, allowed):
    settings = Settings.read({"NN_CORE_PLUGINS": text})
    assert {name for name in ("acme", "other") if settings.allows_plugin(name)} == allowed


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("-acme", "remove -acme from it"),
        ("+other", "add +acme to it"),
        ("+other,-acme", "remove -acme from it and add +acme to it"),
        ("+acme,+other,-acme", "remove -acme from it"),
    ],
)
def test_how_to_allow_a_plugin_allows_it(text, how):
    settings = Settings.read({"NN_CORE_PLUGINS": text})
    assert not settings.allows_plugin("acme")
    assert settings.how_to_allow("acme") == how
    changed = {choice for choice in text.split(",") if choice != "-acme"} | ({"+acme"} if "add" in how else set())
    assert Settings.read({"NN_CORE_PLUGINS": ",".join(sorted(changed))}).allows_plugin("acme")
