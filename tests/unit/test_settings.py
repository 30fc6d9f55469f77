"""The values that environment variables may have."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import nn_core as nn
from nn_core import settings as settings_module
from nn_core.communicators.engine_choice import choose_engine
from nn_core.communicators.launchers import find_launch
from nn_core.engine.runtime.limits import end_time
from nn_core.errors import ArgumentError, ShapeError
from nn_core.models.utils import get_model_url_base_from_env
from nn_core.settings import OPTIMIZATIONS, Settings, is_enabled, strict_shapes, without
from nn_core.utils.download import get_data_home


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


class Recorded(dict):
    """An environment that knows which variables were asked for."""

    def __init__(self, values=()):
        super().__init__(values)
        self.asked = set()

    def get(self, name, default=None):
        self.asked.add(name)
        return super().get(name, default)


def variables():
    environment = Recorded()
    Settings.read(environment)
    return sorted(environment.asked)


#: Values as bytes: environments have any bytes but NUL.
HOSTILE = [
    *(b" ", b"x", b"-1", b"0", b"1", b"1.5", b"1e300", b"1e400", b"nan", b"inf", b"9" * 400, b"9" * 5000, b"x" * 100_000),
    *(b"a\nb", b"\x1b[31m", b"\xe2\x80\xae", b"\xff\xfe", b"\xd9\xa1", b"0x1", b"True", b"/dev/null", b"/dev/zero"),
    *(b"/dev/null/x", b"~no_such_user/x", b"../x", b",", b"+", b"-", b"+,-", b"@" + b"9" * 400, b"@1", b"slurm", b"slurm-"),
    *(b"SIGKILL", b"SIGHUP,SIGSEGV", b"$(touch x)", b"%s%n{0}", b"http://", b"gopher://x", b"--output=x", b"a:b:c"),
]
#: The use of settings whose values are texts: what is no such text is refused there at the latest.
USES = {
    "NN_CORE_COMMUNICATOR": lambda: choose_engine(None),
    "NN_CORE_DATA": get_data_home,
    "NN_CORE_MODELS_URL_BASE": get_model_url_base_from_env,
    "NNABLA_MODELS_URL_BASE": get_model_url_base_from_env,
    "NN_CORE_TIME_LIMIT": lambda: end_time("NN_CORE_TIME_LIMIT", settings_module.settings().time_limit),
}


def test_every_setting_is_a_variable_and_texts_have_a_use():
    read = {"NNABLA_MODELS_URL_BASE" if part.name.startswith("nnabla_m") else f"NN_CORE_{part.name.upper()}": part.type
            for part in fields(Settings)}  # fmt: skip
    assert sorted(read) == variables()
    assert {name for name, kind in read.items() if "str | None" in str(kind)} - {"NN_CORE_LOG_LEVEL"} == set(USES)


@pytest.mark.parametrize("name", variables())
def test_a_hostile_value_is_understood_or_refused_by_name(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    refused = 0
    for value in HOSTILE:
        monkeypatch.setenv(name, value.decode(errors="surrogateescape"))
        settings_module.settings.cache_clear()
        try:
            settings_module.settings()
            USES.get(name, str)()
        except ArgumentError as error:
            refused += 1
            text = str(error)
            assert text.startswith(f"{name}: ") and len(text) < 1000, value[:40]
            assert text.replace("\n", "").isprintable(), value[:40]
    settings_module.settings.cache_clear()
    assert refused > len(HOSTILE) / 2 or (name == "NN_CORE_DATA" and refused >= 5)


LAUNCHED = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


@pytest.mark.parametrize("name", LAUNCHED)
def test_hostile_values_of_a_launcher(name):
    kept = set()
    for value in HOSTILE:
        try:
            find_launch({**LAUNCHED, name: value.decode(errors="surrogateescape")})
            kept.add(value)
        except ArgumentError as error:
            assert name in str(error) and len(str(error)) < 400
    assert kept == {"RANK": {b"0"}, "WORLD_SIZE": {b"1"}, "LOCAL_RANK": {b"0", b"1", b"-1"}}[name]
    assert find_launch({**LAUNCHED, "RANK": ""}) is None
    with pytest.raises(ArgumentError, match=r"RANK must be an integer from 0 to WORLD_SIZE - 1, got 2 of 2"):
        find_launch({"RANK": "2", "WORLD_SIZE": "2"})


def test_the_end_of_a_job_of_slurm(monkeypatch):
    kept = set()
    for value in HOSTILE:
        monkeypatch.setenv("SLURM_JOB_END_TIME", value.decode(errors="surrogateescape"))
        try:
            end_time("x", "slurm")
            kept.add(value)
        except ArgumentError as error:
            assert "slurm needs SLURM_JOB_END_TIME" in str(error) and len(str(error)) < 400
    assert kept == {b"0", b"1"}


def test_no_other_module_reads_variables_of_nn_core():
    """No variable escapes `test_a_hostile_value_is_understood_or_refused_by_name`."""
    root = Path(nn.__file__).parent
    readers = [path for path in root.rglob("*.py") if 'environ.get("NN_CORE' in path.read_text(encoding="utf-8")]
    assert readers == []
