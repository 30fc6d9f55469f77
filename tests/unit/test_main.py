"""The command nn-core."""

import itertools
import json
import sys

import pytest
from click.testing import CliRunner

import nn_core as nn
from nn_core import __main__ as command
from nn_core.__main__ import main
from nn_core.engine.dispatch import doctor, explain
from nn_core.engine.dispatch.plugin_manager import PLUGINS, Plugins


@pytest.fixture
def run(install, monkeypatch, examines_no_others):
    """Runs the command on the plugins that the test installs."""
    plugins = Plugins()
    monkeypatch.setattr(doctor, "PLUGINS", plugins)
    monkeypatch.setattr(explain, "PLUGINS", plugins)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(command, "PLUGINS", plugins)
    yield lambda *words: CliRunner().invoke(main, words)
    plugins.close()


@pytest.fixture
def installed_zoo(install):
    """One plugin in each state."""
    install.backend("works", more="{'description': 'a [host]', 'devices': lambda: ['0: one', '1: two']}")
    install.backend("idle", more="{'probe': lambda: Refusal('driver 1.2 is too old')}")
    install("crash", "import a_library_that_nobody_has")


ROWS = {
    "works": ("nn-ext-works 1.0", "loaded", "a [host]", "0: one"),
    "idle": ("nn-ext-idle 1.0", "no device", "driver 1.2 is too old"),
    "crash": ("nn-ext-crash 1.0", "broken", "ModuleNotFoundError", "pip install --upgrade nn-ext-crash"),
    "missing": ("absent", "not installed", "correct the name"),
}


def paragraph(output: str, name: str) -> str:
    """Return what the doctor says about a plugin: the line that begins with its name, and those that are indented."""
    lines = iter(output.splitlines())
    head = next(line for line in lines if line.split(" ", 1)[0] == name)
    return "\n".join([head, *itertools.takewhile(lambda line: line.startswith(" "), lines)])


@pytest.mark.usefixtures("installed_zoo")
def test_the_doctor_shows_every_state(run):
    result = run("doctor", "missing")
    for name, parts in ROWS.items():
        for part in parts:
            assert part in paragraph(result.output, name)
    assert result.exit_code == 1


@pytest.mark.usefixtures("installed_zoo")
def test_the_doctor_writes_json_for_programs(run):
    result = run("doctor", "--json")
    report = json.loads(result.output)
    found = {row["name"]: row for row in report["findings"]}
    assert (found["idle"]["state"], found["works"]["package"]) == ("no device", "nn-ext-works 1.0")
    assert report["threads"] == nn.num_threads()
    assert min(limit["threads"] for limit in report["thread_limits"]) >= 1


def test_the_doctor_fits_a_hundred_columns(run, install):
    install.backend("wordy", more=f"{{'probe': lambda: Refusal({'many words about a device ' * 9!r})}}")
    assert max(map(len, run("doctor").output.splitlines())) <= 100


def test_the_doctor_shows_operators(run, install):
    spec = "- {name: ops.Twice, api: ops_twice, topic: arithmetic, doc: d, inputs: {x: {doc: d}}, "
    spec += "outputs: {y: {doc: d}}, shape: same_as x, backward: {none: test}}"
    body = "@kernel('ops.Twice')\ndef twice(xp, x):\n    return 2 * x\n"
    install("ops", f"{body}@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(spec={spec!r})]\n")
    try:
        assert "functions: ops.Twice" in run("doctor").output
    finally:
        PLUGINS.registry.remove("ops")


def test_the_doctor_is_content_with_what_has_no_device(run, install):
    install.backend("idle", more="{'probe': lambda: Refusal('no device')}")
    assert "idle" in run("doctor").output
    assert run("doctor", "idle").exit_code == 1


def test_info_imports_no_plugin(run, install):
    module = install("crash", "raise RuntimeError")
    result = run("info")
    assert result.exit_code == 0
    assert "plugin crash: nn-ext-crash 1.0" in result.output
    assert "NN_CORE_STRICT: False" in result.output
    assert module not in sys.modules


def test_explain_prints_candidates(run, install):
    install.backend("fast")
    result = run("explain", "tanh", "-b", "fast:half")
    assert "-> reference over fast:half  can run it" in result.output
    assert result.exit_code == 0


def test_explain_offers_sample_calls_in_the_types_that_are_asked(run, install):
    picky = (
        "class Kernel:\n"
        "    def __init__(self, limit):\n"
        "        self.limit = limit\n"
        "    def refuse(self, call):\n"
        "        if call.dtype != 'float32':\n"
        "            return Refusal(f'computes in float32, got {call.dtype}')\n"
        "        return Refusal('takes small arrays') if call.inputs[0].size > self.limit else None\n"
        "def load():\n"
        "    backend = Host()\n"
        "    backend.kernels = {'Tanh': Kernel(10**9), 'Exp': Kernel(5), 'Softmax': Kernel(10**9)}\n"
        "    return backend\n"
    )
    install.backend("picky", body=picky, more="{'load': load}")
    for name in ("tanh", "softmax"):
        half = run("explain", name, "-b", "picky:half").output.splitlines()
        assert half[1:] == [
            "   picky:half                 computes in float32, got float16",
            "-> reference over picky:half  can run it",
        ]
        assert run("explain", name, "-b", "picky").output.splitlines()[1] == "-> picky:float                 can run it"
    partly = run("explain", "exp", "-b", "picky").output.splitlines()[1]
    assert partly == "-> picky:float                 runs some calls, refuses others: takes small arrays"
    assert "-> no kernel needed  can run it" in run("explain", "reshape", "-b", "picky").output


def test_explain_refuses_an_unknown_name(run):
    result = run("explain", "taanh")
    assert "Error: explain: the name of a function must be given, got 'taanh'" in result.output
    assert result.exit_code == 1


def test_explain_refuses_a_backend_that_does_not_exist(run, install):
    install.backend("fast")
    result = run("explain", "tanh", "-b", "fats")
    assert result.exit_code == 1
    assert "got 'fats'; did you mean 'fast'?" in result.output
    assert "tanh" not in result.output.lower()


def test_stubs_hold_the_functions_of_the_core(run, tmp_path):
    result = run("stubs", "--folder", str(tmp_path))
    package = tmp_path / "nn_core-stubs"
    assert result.output == f"{package}\n"
    stub = (package / "functions" / "__init__.pyi").read_text()
    compile(stub, "stub", "exec")
    assert "from nn_core.functions.activation import tanh as tanh\n" in stub
    assert (package / "py.typed").read_text() == "partial\n"


def test_the_version(run):
    from nn_core import __version__

    assert run("--version").output == f"nn-core, version {__version__}\n"


def test_ops_lists_functions_and_who_runs_them(run):
    shown = run("ops", "*max_pooling")
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0].split() == ["function", "topic", "backends"]
    assert [line.split()[:2] for line in lines[1:]] == [["max_pooling", "pooling"]]
    assert "reference" in lines[1]
    assert len(run("ops").output.splitlines()) > 200
    missing = run("ops", "nothing*")
    assert missing.exit_code == 1
    assert "PATTERN must fit a function, got 'nothing*'" in missing.output


def test_explain_suggests_names(run):
    shown = run("explain", "convolutoin")
    assert shown.exit_code == 1
    assert "got 'convolutoin'; did you mean 'convolution'?" in shown.output


def test_doctor_shows_what_a_plugin_says_and_takes_no_advice_from_it(run, install):
    install.backend("idle", more="{'probe': lambda: Refusal('the driver is missing: pip install driver')}")
    shown = paragraph(run("doctor", "idle").output, "idle")
    assert "the driver is missing: pip install driver" in shown
    assert "what to do" not in shown
    unknown = run("doctor", "nothing_like_this").output
    assert "pip install nn-ext-nothing" not in unknown
