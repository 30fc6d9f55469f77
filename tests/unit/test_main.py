"""The command nn-core."""

import sys

import pytest
from click.testing import CliRunner

from nn_core.__main__ import main
from nn_core.dispatch import doctor, explain
from nn_core.dispatch.plugins import PLUGINS, Plugins


@pytest.fixture
def run(install, monkeypatch):
    """Runs the command on the plugins that the test installs."""
    plugins = Plugins()
    monkeypatch.setattr(doctor, "PLUGINS", plugins)
    monkeypatch.setattr(explain, "PLUGINS", plugins)
    monkeypatch.setenv("COLUMNS", "300")
    return lambda *words: CliRunner().invoke(main, words)


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
    "missing": ("absent", "not installed", "pip install nn-ext-missing"),
}


@pytest.mark.usefixtures("installed_zoo")
@pytest.mark.parametrize("has_rich", [True, False])
def test_the_doctor_shows_every_state(run, monkeypatch, has_rich):
    if has_rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    result = run("doctor", "missing")
    lines = result.output.splitlines()
    for name, parts in ROWS.items():
        (line,) = [line for line in lines if f" {name} " in f" {line}"]
        for part in parts:
            assert part in line
    assert result.exit_code == 1


def test_the_doctor_shows_operators(run, install):
    spec = "- {name: ops.Twice, api: ops_twice, topic: arithmetic, doc: d, inputs: {x: {doc: d}}, "
    spec += "outputs: {y: {doc: d}}, shape: same_as x, backward: {none: test}}"
    install("ops", f"@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(spec={spec!r})]\n")
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


def test_explain_refuses_an_unknown_name(run):
    result = run("explain", "taanh")
    assert "Error: explain: the name of a function must be given, got 'taanh'" in result.output
    assert result.exit_code == 1


def test_stubs_hold_the_functions_of_the_core(run, tmp_path):
    result = run("stubs", "--folder", str(tmp_path))
    package = tmp_path / "nn_core-stubs"
    assert result.output == f"{package}\n"
    stub = (package / "functions" / "__init__.pyi").read_text()
    compile(stub, "stub", "exec")
    assert "from nn_core.functions.activation import tanh as tanh\n" in stub
    assert (package / "py.typed").read_text() == "partial\n"
