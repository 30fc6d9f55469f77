"""Offers of plugins besides backends and operators: found by name, imported when used, refused where names clash."""

import subprocess
import sys
import threading
import types

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
import nn_core.parametric_functions as PF
import nn_core.solvers as S
from nn_core import __main__ as command
from nn_core import ext, initializer
from nn_core.engine.dispatch import attributes, hookspecs
from nn_core.engine.dispatch.kinds import KINDS, FileFormatInfo
from nn_core.engine.dispatch.plugin_manager import PLUGINS
from nn_core.engine.dispatch.resolve import candidates
from nn_core.errors import ArgumentError, BackendNotFoundError, PluginError
from nn_core.files import formats
from nn_core.io import parameters
from nn_core.utils import learning_rate_scheduler as LRS

HOOK = "@hookimpl\ndef nn_core_{kind}():\n    return [{info}]\n"
INFOS = {
    "file_formats": "FileFormatInfo(name='acme', extensions=('.acme',), read='{target}')",
    "commands": "CommandInfo(name='acme-do', help='Do it.', target='{target}')",
    "training": "TrainingInfo(name='AcmeLogger', role='logger', target='{target}')",
    "communicators": "CommunicatorInfo(name='acme', target='{target}')",
    "composites": "CompositeInfo(name='acme_function', target='{target}')",
    "parametric_functions": "ParametricFunctionInfo(name='acme_layer', target='{target}')",
    "solvers": "SolverInfo(name='AcmeSgd', target='{target}')",
    "initializers": "InitializerInfo(name='AcmeInitializer', target='{target}')",
    "schedulers": "SchedulerInfo(name='AcmeScheduler', target='{target}')",
    "data": "DataInfo(name='AcmeSource', role='source', target='{target}')",
    "passes": "PassInfo(name='acme_fold', role='pass', target='{target}')",
    "viewers": "ViewerInfo(name='AcmeViewer', role='viewer', target='{target}')",
    "tracers": "TracerInfo(name='AcmeTracer', target='{target}')",
    "words": "WordInfo(name='acme.exact', role='tag')",  # has no target, and carries the name of its plugin
}
PARTS = {"file_formats": "read"}


def offer(kind, target="decimal:Decimal"):
    """Body of a plugin with one offer of a kind."""
    return HOOK.format(kind=kind, info=INFOS[kind].format(target=target))


@pytest.fixture
def own(plugins, monkeypatch):
    """The modules of the core see the plugins of the test."""
    for module in (attributes, formats, parameters, command, ext):
        monkeypatch.setattr(module, "PLUGINS", plugins)
    return plugins


def test_every_kind_has_a_hook_and_a_description_for_plugin_authors():
    hooks = {name.removeprefix("nn_core_") for name in vars(hookspecs) if name.startswith("nn_core_")}
    assert hooks == {"backends", "functions", *KINDS}
    assert set(INFOS) == set(KINDS)
    for kind in KINDS.values():
        assert getattr(ext, kind.info.__name__) is kind.info


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"words"}))
def test_an_offer_is_found_without_its_target_and_imports_it_when_used(install, plugins, kind):
    module = install("acme", offer(kind, "heavy_of_a_test:thing"))
    (found,) = [offered for offered in plugins.offered(kind) if offered.plugin == "acme"]
    key = found.info.keys[0]
    assert plugins.offer(kind, key) is plugins.offer(kind, f"acme.{key}") is found
    assert module in sys.modules
    assert "heavy_of_a_test" not in sys.modules
    with pytest.raises(PluginError, match=r"'heavy_of_a_test:thing' must be importable, got: ModuleNotFoundError"):
        plugins.offers.load(found, PARTS.get(kind, "target"))
    heavy = sys.modules["heavy_of_a_test"] = types.ModuleType("heavy_of_a_test")
    try:
        heavy.thing = object()
        assert plugins.offers.load(found, PARTS.get(kind, "target")) is heavy.thing
    finally:
        del sys.modules["heavy_of_a_test"]


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"words"}))
def test_a_name_of_two_plugins_is_refused_with_both_named(install, plugins, kind):
    for name in ("second", "first"):
        install(name, offer(kind))
    plugins.module("second")
    key = plugins.offers.of(kind)[0].info.keys[0]
    with pytest.raises(PluginError, match=r"(?s)must be claimed by one plugin, got 'first' and 'second'.*PLUGINS=-"):
        plugins.offer(kind, key)
    assert plugins.offer(kind, f"first.{key}").plugin == "first"


@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_returns_something_else_is_refused_with_its_line(install, plugins, kind):
    install("acme", f"@hookimpl\ndef nn_core_{kind}():\n    return ['a name']\n")
    with pytest.raises(PluginError, match=rf"plugin_of_a_test_\d+.py:\d+: nn_core_{kind} must return a list of "):
        plugins.module("acme")
    install("other", f"@hookimpl\ndef nn_core_{kind}():\n    return 3\n")
    with pytest.raises(PluginError, match=rf"nn_core_{kind} must return a list of .*, got int"):
        plugins.module("other")


@pytest.mark.parametrize(
    ("kind", "info", "message"),
    [
        ("solvers", "SolverInfo(name='1st', target='a:b')", r"names must be like .*, got '1st'"),
        ("solvers", "SolverInfo(name='A', target='nowhere')", r"target must be an object or 'module:attribute', got 'no"),
        ("solvers", "SolverInfo(name='A', target='a:b', updates={'cpu': 3})", r"updates must be an object or .*, got 3"),
        ("file_formats", "FileFormatInfo(name='a', extensions=('a',))", r"names must be like .*, got 'a'"),
        ("file_formats", "FileFormatInfo(name='a', extensions=())", r"must have a tuple of names, got \(\)"),
        ("data", "DataInfo(name='A', role='sauce', target='a:b')", "role must be one of source, cache, cell, got 'sauce'"),
    ],
)
def test_a_wrong_description_is_refused(install, plugins, kind, info, message):
    install("acme", HOOK.format(kind=kind, info=info))
    with pytest.raises(PluginError, match=message):
        plugins.module("acme")


def test_an_operator_and_a_composite_of_one_name_in_one_plugin_are_refused(install, plugins):
    spec = (
        "- {name: acme.F, api: acme_function, topic: activation, doc: D., inputs: {x: {doc: X.}}, outputs: {y: {doc: Y.}}, "
        "shape: same_as x, backward: {none: a test}}"
    )
    body = "@kernel('acme.F')\ndef f(xp, x):\n    return x\n@hookimpl\ndef nn_core_functions():\n"
    install("acme", f"{body}    return [FunctionPackage(spec={spec!r})]\n{offer('composites')}")
    with pytest.raises(PluginError, match="functions must be operators or composites, got both for acme_function"):
        plugins.module("acme")


def test_a_name_twice_in_one_plugin_is_refused(install, plugins):
    body = offer("solvers").replace("]", ", SolverInfo(name='AcmeSgd', target='a:b')]")
    install("acme", body)
    with pytest.raises(PluginError, match="solver 'AcmeSgd' of plugin 'acme': names must differ, got 'AcmeSgd' twice"):
        plugins.module("acme")


def test_names_of_the_core_stay_its_own(install, own):
    own.offers.reserve("commands", ["doctor"])
    install("acme", HOOK.format(kind="commands", info="CommandInfo(name='doctor', help='', target='a:b')"))
    with pytest.raises(PluginError, match="command 'doctor': must come from one place, got 'nn_core' and 'acme'"):
        own.module("acme")


# The index.


def test_with_an_index_only_the_owner_is_imported(install, plugins):
    owner = install("acme", offer("solvers"), index="solvers.AcmeSgd = acme")
    other = install("other", offer("initializers"), index="initializers.AcmeInitializer = other")
    assert plugins.names_of("solvers") == ["AcmeSgd"]
    assert plugins.offer("solvers", "AcmeSgd").plugin == "acme"
    assert plugins.offer("solvers", "AcmeSgdd") is None
    assert owner in sys.modules
    assert other not in sys.modules


def test_an_index_that_lists_something_else_is_refused(install, plugins):
    install("acme", offer("solvers"), index="solvers.Other = acme")
    message = r'(?s)must list what it brings.*"solvers.AcmeSgd" = "acme", no "solvers.Other"'
    with pytest.raises(PluginError, match=message):
        plugins.module("acme")


# Consumers in the core.


@pytest.mark.parametrize(
    ("module", "kind", "name", "close"),
    [
        (S, "solvers", "AcmeSgd", "AcmeSdg"),
        (PF, "parametric_functions", "acme_layer", "acme_lyer"),
        (initializer, "initializers", "AcmeInitializer", "AcmeInitialiser"),
        (LRS, "schedulers", "AcmeScheduler", "AcmeSheduler"),
    ],
)
def test_offers_are_attributes_of_the_module_of_their_kind(install, own, module, kind, name, close):
    import decimal

    install("acme", offer(kind))
    assert getattr(module, name) is decimal.Decimal
    assert getattr(module.acme, name) is decimal.Decimal
    assert name in dir(module)
    assert dir(module.acme) == [name]
    with pytest.raises(AttributeError, match=f"has no attribute '{close}', .* did you mean '{name}'"):
        getattr(module, close)
    with pytest.raises(AttributeError, match=f"plugin 'acme' offers no '{close}'; did you mean '{name}'"):
        getattr(module.acme, close)
    assert not hasattr(module, "__nothing__")


FORMAT = """
import json
import numpy as np

def read(file):
    return {name: Entry(np.asarray(values, "float32"), {"need_grad": True}) for name, values in json.load(file).items()}

def write(file, entries):
    file.write(json.dumps({name: entry.values.tolist() for name, entry in entries.items()}).encode())

@hookimpl
def nn_core_file_formats():
    return [FileFormatInfo(name="plain", extensions=(".plain",), read=read, write=write)]
"""


def test_parameters_are_saved_in_the_format_of_a_plugin(install, own, tmp_path):
    install("plain", FORMAT)
    path = tmp_path / "weights.plain"
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    nn.save_parameters(path, {"a/w": nn.Variable.from_numpy_array(weights, need_grad=True)})
    nn.clear_parameters()
    nn.load_parameters(path)
    np.testing.assert_array_equal(nn.get_parameters()["a/w"].d, weights)
    nn.clear_parameters()
    path.write_bytes(b"[1, 2")
    with pytest.raises(nn.errors.FileFormatError, match=r"the file must be whole and in the format \.plain"):
        nn.load_parameters(path)


def test_an_unknown_format_names_those_of_plugins(install, own, tmp_path):
    install("plain", FORMAT, index="file_formats..plain = plain")
    with pytest.raises(ArgumentError, match=r"must be one of .h5, .npz, .safetensors, .*\.plain.*, got '.plane'"):
        nn.save_parameters(tmp_path / "weights.plane", {})


def test_commands_of_plugins_are_listed_and_run(install, own, monkeypatch):
    install("acme", offer("commands", "commands_of_a_test:main"))
    result = CliRunner().invoke(command.main, ["--help"])
    assert "acme-do  " in result.output and "Do it." in result.output
    assert "commands_of_a_test" not in sys.modules
    missing = CliRunner().invoke(command.main, ["acme-do"])
    assert "Error: command 'acme-do' of plugin 'acme': 'commands_of_a_test:main' must be importable" in missing.output
    assert missing.exit_code == 1
    import click

    module = types.ModuleType("commands_of_a_test")
    module.main = click.Command("x", callback=lambda n: click.echo(f"done {n}"), params=[click.Argument(["n"])])
    monkeypatch.setitem(sys.modules, "commands_of_a_test", module)
    assert CliRunner().invoke(command.main, ["acme-do", "7"]).output == "done 7\n"
    assert CliRunner().invoke(command.main, ["acme-undo"]).exit_code == 2


# In-process plugins, and plugins that need others.


def module_of(name, body):
    """A module made by the program."""
    module = types.ModuleType(name)
    exec(f"from nn_core.ext import *\n{body}", vars(module))
    return module


def test_a_module_is_registered_and_forgotten(own):
    module = module_of("nn_ext_notebook", offer("solvers"))
    ext.register(module)
    try:
        assert "notebook" in own.names()
        assert ext.list_offers("solvers") == {"notebook.AcmeSgd": ""}
        assert ext.find_extension("solvers", "AcmeSgd").__name__ == "Decimal"
        ext.register(module)
        with pytest.raises(PluginError, match=r"plugin 'notebook': must come from one place, got 'notebook' \(registered"):
            ext.register(module_of("notebook", offer("solvers")))
    finally:
        ext.unregister("notebook")
    assert own.offer("solvers", "AcmeSgd") is None
    with pytest.raises(BackendNotFoundError, match=r"unregister: a plugin must be registered or installed \(.*\), got 'note"):
        ext.unregister("notebook")
    with pytest.raises(ArgumentError, match=r"solver: must be offered by a plugin \(none is\), got 'AcmeSgd'"):
        ext.find_extension("solvers", "AcmeSgd")


def test_a_module_may_leave_out_its_versions_and_must_state_true_ones(own):
    with pytest.raises(PluginError, match=r"PLUGIN_API must be 1 to 2 .*, got 99"):
        ext.register(module_of("newer", "PLUGIN_API = 99\n" + offer("solvers")))
    assert "newer" not in own.names()


def test_a_module_that_breaks_a_rule_leaves_nothing(own):
    body = "@kernel('bad.Op')\ndef op(xp, x):\n    return x\n" + offer("solvers")
    with pytest.raises(PluginError, match="a reference kernel must be for a function that plugin 'bad' specifies"):
        ext.register(module_of("bad", body))
    assert "bad" not in own.names()
    assert own.offer("solvers", "AcmeSgd") is None
    from nn_core.operators.reference.registry import KERNELS

    assert "bad.Op" not in KERNELS


def test_plugins_that_a_plugin_needs_are_loaded_first(install, plugins):
    install("first", "REQUIRES_PLUGINS = ('second',)\n" + offer("solvers"))
    second = install("second", offer("initializers"))
    plugins.module("first")
    assert second in sys.modules
    assert plugins.state("second").value == "loaded"


def test_a_plugin_that_needs_an_absent_one_names_it(install, plugins):
    install("first", "REQUIRES_PLUGINS = ('second',)\n" + offer("solvers"))
    with pytest.raises(PluginError, match=r"(?s)got 'second'.*nn-core doctor lists"):
        plugins.module("first")


def test_plugins_that_need_each_other_are_refused(install, plugins):
    for one, other in (("first", "second"), ("second", "first")):
        install(one, f"REQUIRES_PLUGINS = ('{other}',)\n" + offer("solvers"))
    with pytest.raises(PluginError, match="must not be used while it is being loaded, got first -> second -> first"):
        plugins.module("first")


def test_what_a_plugin_needs_is_stated_as_names(install, plugins):
    install("first", "REQUIRES_PLUGINS = 'second'\n" + offer("solvers"))
    with pytest.raises(PluginError, match="REQUIRES_PLUGINS must be a tuple of names of plugins, got 'second'"):
        plugins.module("first")


def test_a_thread_waits_for_a_plugin_that_another_one_loads(install, plugins):
    install("acme", "import time\ntime.sleep(0.2)\n" + offer("solvers"))
    found = []
    threads = [threading.Thread(target=lambda: found.append(plugins.offer("solvers", "AcmeSgd"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [offer is not None and offer.plugin for offer in found] == ["acme"] * 4


def test_a_plugin_may_ask_for_offers_while_it_is_loaded(install, plugins, monkeypatch):
    monkeypatch.setattr(attributes, "PLUGINS", plugins)
    install("acme", "import nn_core.solvers as S\nassert not hasattr(S, 'AcmeSgd')\n" + offer("solvers"))
    assert plugins.offer("solvers", "AcmeSgd").plugin == "acme"


# Overlays.

OVERLAY = """
class Doubled:
    def refuse(self, call):
        return None if call.dtype == "float32" else Refusal("float32 only")
    def forward(self, call):
        def run(x, y):
            y[...] = 2 * x
        return run
    def backward(self, call, wanted):
        return None

@hookimpl
def nn_core_functions():
    return [FunctionPackage(overlays={"reference": {"Tanh": Doubled()}})]
"""


def test_an_overlay_runs_a_function_of_the_core_and_what_it_refuses_runs_as_before(tmp_path):
    module = module_of("overlay_of_a_test", OVERLAY)
    module.__dict__["nn_core_functions"].__module__ = module.__name__
    x = nn.Variable.from_numpy_array(np.full((2,), 0.5, np.float32))
    with nn.context_scope(nn.Context(["reference"])):
        y = nn.functions.tanh(x)
        y.forward()
        before = y.d.copy()
        ext.register(module)
        try:
            overlaid = nn.functions.tanh(x)
            overlaid.forward()
            assert overlaid.d.tolist() == [1.0, 1.0]
            with nn.context_scope(nn.Context(["reference:double"])):
                double = nn.functions.tanh(x)
                double.forward()
        finally:
            ext.unregister("overlay_of_a_test")
        again = nn.functions.tanh(x)
        again.forward()
    np.testing.assert_array_equal(again.d, before)
    np.testing.assert_allclose(double.d, np.tanh(0.5), rtol=1e-6)


@pytest.mark.parametrize(
    ("overlays", "message"),
    [
        ("{'host': {'Nothing': 1}}", "overlays must be for functions that exist, got 'Nothing' on 'host'"),
        ("{'acme': {'Tanh': 1}}", "overlays must be for functions and backends of others, got 'Tanh' on 'acme'"),
    ],
)
def test_a_wrong_overlay_is_refused(install, plugins, overlays, message):
    install("acme", f"@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(overlays={overlays})]\n")
    with pytest.raises(PluginError, match=message):
        plugins.module("acme")


def test_two_overlays_of_one_kernel_are_refused_with_both_named(install, plugins):
    body = "@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(overlays={'host': {'Tanh': object()}})]\n"
    install("first", body, index="overlays.host = first")
    install("second", body, index="overlays.host = second")
    plugins.module("first")
    with pytest.raises(PluginError, match="overlay of 'Tanh' on 'host': must come from one plugin, got 'first' and 'sec"):
        plugins.module("second")


def test_overlays_in_the_index_are_loaded_with_the_backend(install, plugins):
    body = "@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(overlays={'host': {'Tanh': object()}})]\n"
    module = install("acme", body, index="overlays.host = acme")
    plugins.extra_kernels("other", "Tanh")
    assert module not in sys.modules
    assert len(plugins.extra_kernels("host", "Tanh")[0]) == 1


def test_the_kernels_of_a_plugin_for_its_own_operators_run_on_the_reference_backend(install, plugins):
    operator = """
from nn_core.ext import gradient, kernel
SPEC = '''
- name: acme.Twice
  api: acme_twice
  topic: arithmetic
  doc: Twice.
  inputs: {x: {doc: Input.}}
  outputs: {y: {doc: Output.}}
  shape: same_as x
  backward: {none: a test}
'''
@kernel("acme.Twice")
def twice(xp, x):
    return 2 * x
NATIVE = object()
@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec=SPEC, kernels={"reference": {"acme.Twice": NATIVE}, "host": {"acme.Twice": NATIVE}})]
"""
    install("acme", operator)
    native = plugins.module("acme").NATIVE
    spec = plugins.registry.spec("acme.Twice")
    found = [candidate.kernel for candidate in candidates(spec, nn.Context(["reference"]), plugins)]
    assert found[0] is native and len(found) == 2  # the reference kernel takes what is refused
    assert plugins.extra_kernels("host", "acme.Twice") == ([], [native])


def test_the_commands_of_the_core_are_reserved():
    assert subprocess.run([sys.executable, "-m", "nn_core", "--help"], capture_output=True, check=False).returncode == 0
    PLUGINS.offers.reserve("commands", command.main.commands)
    with pytest.raises(PluginError, match="command 'doctor': must come from one place"):
        ext.register(
            module_of("taker", HOOK.format(kind="commands", info="CommandInfo(name='doctor', help='', target='a:b')"))
        )
    assert FileFormatInfo(name="x", extensions=(".x",)).keys == (".x",)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise SystemExit(1)", r"backend 'acme': context\(\): must not end the program, got SystemExit: 1"),
        ("return 'acme'", r"backend 'acme': context\(\) must return a Context, got 'acme'"),
    ],
)
def test_a_context_that_is_none_is_refused(install, plugins, monkeypatch, body, message):
    from nn_core import ext_utils

    monkeypatch.setattr(ext_utils, "PLUGINS", plugins)
    install.backend("acme", body=f"def context():\n    {body}\n", more="{'context': context}")
    with pytest.raises(PluginError, match=message):
        ext_utils.get_extension_context("acme")


def test_the_door_imports_what_describing_does_not_need_when_it_is_asked_for():
    lines = [
        "import sys, nn_core.ext as ext",
        "assert 'nn_core.parametric_functions' not in sys.modules and {'PF', 'Variable'} <= {*dir(ext)}",
        "from nn_core.ext import *",
        "import nn_core, nn_core.functions, nn_core.parametric_functions",
        "assert F is nn_core.functions and PF is nn_core.parametric_functions and Variable is nn_core.Variable",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)
    with pytest.raises(AttributeError, match=r"module 'nn_core.ext' has no attribute 'nothing'"):
        _ = ext.nothing
