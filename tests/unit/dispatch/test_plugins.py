"""The rules that plugins are loaded by, one by one."""

import contextlib
import logging
import sys
import threading

import pytest

from nn_core.engine.dispatch import admission, hookspecs, loader
from nn_core.engine.dispatch import plugin_manager as plugins_module
from nn_core.engine.dispatch.plugin_record import State
from nn_core.engine.runtime import installed
from nn_core.engine.runtime.metadata import Scan
from nn_core.engine.runtime.registrations import is_registered
from nn_core.errors import BackendNotFoundError, BackendUnavailableError, PluginError
from nn_core.settings import Settings

SWISH = '''
@kernel("{name}")
def swish(xp, x):
    return x / (1 + xp.exp(-x))

@hookimpl
def nn_core_functions():
    return [FunctionPackage(spec="""
- name: {name}
  api: {api}
  topic: activation
  doc: Swish.
  inputs: {{x: {{doc: Input.}}}}
  outputs: {{y: {{doc: Output.}}}}
  shape: same_as x
  backward: {{none: for a test}}
""", kernels={kernels})]
'''


def swish(name="acme.Swish", api="acme_swish", kernels="{}"):
    """Hook of a plugin that brings one operator."""
    return SWISH.format(name=name, api=api, kernels=kernels)


# Discovery.


def test_names_come_from_metadata_alone(install, plugins):
    module = install("acme", "raise RuntimeError")
    assert "acme" in plugins.names()
    assert module not in sys.modules


def test_names_are_sorted(install, plugins):
    install.backend("zeta")
    install.backend("alpha")
    assert plugins.names() == sorted(plugins.names())


def test_asking_for_a_backend_imports_its_plugin_only(install, plugins):
    wanted, other = install.backend("wanted"), install.backend("other")
    assert plugins.backend("wanted").name == "wanted"
    assert wanted in sys.modules
    assert other not in sys.modules


def test_packages_are_scanned_once(install, plugins, monkeypatch):
    scans = []
    install.backend("acme")
    installed.forget()
    monkeypatch.setattr(installed, "scan", lambda groups, objection: scans.append(True) or Scan((), ()))
    plugins.names()
    plugins.names_of("functions")
    plugins.names()
    assert scans == [True]


def test_refresh_finds_what_was_installed_since(install, plugins):
    with pytest.raises(BackendNotFoundError):
        plugins.backend("late")
    install.backend("late")
    plugins.refresh()
    assert plugins.backend("late").name == "late"


def test_refresh_forgets_what_was_uninstalled(install, plugins):
    module = install("acme", swish())
    assert plugins.function("acme_swish") is not None
    install.uninstall(module)
    plugins.refresh()
    assert plugins.function("acme_swish") is None
    assert "acme" not in plugins.names()


def test_refresh_keeps_what_works_and_retries_what_failed(install, plugins):
    install.backend("good")
    install.backend("flaky", body="answers = [Refusal('unplugged'), None]\n", more="{'probe': lambda: answers.pop(0)}")
    good = plugins.backend("good")
    with pytest.raises(BackendUnavailableError):
        plugins.backend("flaky")
    plugins.refresh()
    assert plugins.backend("good") is good
    assert plugins.backend("flaky").name == "flaky"


def test_refresh_tells_those_who_cache(plugins):
    told = []
    plugins.when_refreshed.append(lambda: told.append(True))
    plugins.refresh()
    plugins.forget_prepared()
    assert told == [True, True]


# Absent, broken, no device.


def test_an_absent_backend_is_named(install, plugins):
    install.backend("acme")
    with pytest.raises(BackendNotFoundError, match=r"(?s)installed \(acme,.*\), got 'warp'.*nn-core doctor lists"):
        plugins.backend("warp")


def test_an_absent_reference_is_a_matter_of_the_core():
    empty = plugins_module.Plugins(dict)
    with pytest.raises(BackendNotFoundError, match=r"(?s)installed \(none\), got 'reference'.*pip install nn-core$"):
        empty.backend("reference")


def test_a_backend_that_its_plugin_does_not_bring_is_absent(install, plugins):
    install.backend("acme")
    with pytest.raises(BackendNotFoundError, match=r"plugin 'acme' \(nn-ext-acme 1.0\): must bring 'acme.x', got \['acme'\]"):
        plugins.backend("acme.x")


def test_an_import_error_inside_a_plugin_is_broken_and_not_absent(install, plugins):
    install("acme", "import a_library_that_nobody_has")
    with pytest.raises(PluginError, match=r"ModuleNotFoundError: .*a_library_that_nobody_has") as caught:
        plugins.backend("acme")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    assert "pip install --upgrade nn-ext-acme, or pip uninstall nn-ext-acme" in str(caught.value)


def test_a_plugin_that_exits_is_broken(install, plugins):
    install("acme", "1 / 0")
    for _ in range(2):
        with pytest.raises(PluginError, match="ZeroDivisionError"):
            plugins.backend("acme")
    assert plugins.plugin("acme").failure.state is State.BROKEN


def test_a_broken_plugin_leaves_the_others_alone(install, plugins):
    install("aaa", "raise RuntimeError('no')")
    install.backend("good")
    assert [plugin.name for plugin in plugins.all() if plugin.failure] == ["aaa"]
    assert plugins.backend("good").name == "good"


def test_a_backend_without_a_device_says_so(install, plugins):
    install.backend("acme", more="{'probe': lambda: Refusal('driver 1.2 is too old')}")
    with pytest.raises(BackendUnavailableError, match=r"backend 'acme': a device must be usable, got: driver 1.2 is too old"):
        plugins.backend("acme")
    assert plugins.failure("acme").state is State.NO_DEVICE


@pytest.mark.parametrize("part", ["probe", "load"])
def test_a_backend_that_raises_while_it_is_loaded_is_broken(install, plugins, part):
    install.backend(
        "acme", body="def fail():\n    raise OSError('libacme.so: undefined symbol')\n", more=f"{{'{part}': fail}}"
    )
    with pytest.raises(PluginError, match=r"OSError: libacme.so: undefined symbol") as caught:
        plugins.backend("acme")
    assert isinstance(caught.value.__cause__, OSError)
    assert plugins.failure("acme").state is State.BROKEN


def test_a_backend_is_loaded_once_by_many_threads(install, plugins):
    install.backend("acme", body="loads = []\n", more="{'load': lambda: (loads.append(1), Host())[1]}")
    found = []
    threads = [threading.Thread(target=lambda: found.append(plugins.backend("acme"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert sys.modules[plugins.plugin("acme").module.__name__].loads == [1]


def test_the_state_is_told_without_importing(install, plugins):
    module = install.backend("works")
    install.backend("idle", more="{'probe': lambda: Refusal('no')}")
    install("crash", "1 / 0")
    install("ops", swish("ops.Swish", "ops_swish"))
    names = ("works", "idle", "crash", "ops", "missing")
    assert [plugins.state(name).value for name in names] == ["installed"] * 4 + ["absent"]
    assert module not in sys.modules
    for plugin in plugins.all():
        for backend in plugin.backends:
            with contextlib.suppress(BackendUnavailableError, PluginError):
                plugins.backend(backend)
    assert [plugins.state(name).value for name in names] == ["loaded", "no device", "broken", "loaded", "absent"]


def test_the_backends_of_the_process_are_shared():
    assert plugins_module.get_backend("reference") is plugins_module.PLUGINS.backend("reference")


# Registration.


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("", r"PLUGIN_API must be 1 to 2 for nn-core .*, got None"),
        ("PLUGIN_API = 3\n", r"(?s)PLUGIN_API must be 1 to 2 for nn-core .*, got 3.*pip install --upgrade nn-core"),
        ("PLUGIN_API = 0\n", r"(?s)PLUGIN_API must be 1 to 2 for nn-core .*, got 0.*pip install --upgrade nn-ext-acme"),
        ("PLUGIN_API = (3, 4)\n", r"(?s)PLUGIN_API must be 1 to 2 for nn-core .*, got \(3, 4\).*--upgrade nn-core"),
        ("PLUGIN_API = 1.0\n", r"PLUGIN_API must be 1 to 2 for nn-core .*, got 1.0"),
        ("PLUGIN_API = 1\n", "REQUIRES_CORE must be a version range such as '>=0.1,<1', got None"),
        ("PLUGIN_API = 1\nREQUIRES_CORE = 'new'\n", "REQUIRES_CORE must be a version range .*, got 'new'"),
        (
            "PLUGIN_API = 1\nREQUIRES_CORE = '>=7,<8'\n",
            r"(?s)REQUIRES_CORE must allow nn-core .*, got '>=7,<8'.*pip install 'nn-core>=7,<8', or .*nn-ext-acme",
        ),
    ],
)
def test_a_version_that_does_not_fit_is_refused(install, plugins, head, message):
    install("acme", "", head=head)
    with pytest.raises(PluginError, match=message):
        plugins.backend("acme")


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("2", ""), ("4", ""), ("(1, 2)", ""), ("(4, 9)", ""), ("(1, 9)", ""),
        ("1", r"(?s)must be 2 to 4 for .*, got 1.*--upgrade nn-ext-acme"),
        ("(0, 1)", r"(?s)must be 2 to 4 for .*, got \(0, 1\).*--upgrade nn-ext-acme"),
        ("5", r"(?s)must be 2 to 4 for .*, got 5.*--upgrade nn-core"),
        ("(2, 3, 4)", r"must be 2 to 4 for .*, got \(2, 3, 4\)"),
    ],
)  # fmt: skip
def test_a_core_serves_a_range_of_numbers(install, plugins, monkeypatch, stated, message):
    monkeypatch.setattr(hookspecs, "PLUGIN_APIS", range(2, 5))
    install.backend("acme", body=f"PLUGIN_API = {stated}\n")
    if message:
        with pytest.raises(PluginError, match=message):
            plugins.backend("acme")
    else:
        assert plugins.backend("acme").name == "acme"


def test_a_development_version_of_the_core_is_in_range(install, plugins, monkeypatch):
    monkeypatch.setattr(admission, "core_version", lambda: "0.1.5.dev3")
    install.backend("acme")
    assert plugins.backend("acme").name == "acme"


def test_the_version_check_can_be_skipped(install, plugins, monkeypatch):
    monkeypatch.setattr(loader, "settings", lambda: Settings(skip_plugin_check=True))
    install.backend("acme", body="PLUGIN_API = 99\n")
    assert plugins.backend("acme").name == "acme"


def test_two_packages_with_one_plugin_are_refused_with_both_named(install, plugins):
    install.backend("acme")
    install("acme", "", package="other-acme", version="2.0")
    with pytest.raises(PluginError, match=r"(?s)must come from one package, got .*nn-ext-acme 1.0.*pip uninstall ") as caught:
        plugins.backend("acme")
    assert "other-acme 2.0" in str(caught.value)


def test_unknown_hooks_are_refused(install, plugins):
    install("acme", "@hookimpl\ndef nn_core_layers():\n    return []\n")
    with pytest.raises(PluginError, match="unknown hook 'nn_core_layers'"):
        plugins.backend("acme")


def test_hooks_with_unknown_arguments_are_refused(install, plugins):
    install("acme", "@hookimpl\ndef nn_core_backends(config):\n    return []\n")
    with pytest.raises(PluginError, match="config"):
        plugins.backend("acme")


def test_a_plugin_without_hooks_is_refused(install, plugins):
    install("acme", "def nn_core_backends():\n    return []\n")
    with pytest.raises(PluginError, match=r"must have an @hookimpl of a hook of nn_core.ext, got none"):
        plugins.backend("acme")


def test_a_plugin_that_fails_is_unregistered(install, plugins):
    install("acme", "@hookimpl\ndef nn_core_backends():\n    raise ValueError('late')\n")
    with pytest.raises(PluginError, match="ValueError: late"):
        plugins.backend("acme")
    assert plugins._loader.manager.get_plugins() == set()


def test_a_backend_must_be_named_as_its_entry_point(install, plugins):
    install("acme", "@hookimpl\ndef nn_core_backends():\n    return [BackendInfo(name='x', array_class='', load=None)]\n")
    with pytest.raises(PluginError, match=r"must be named as its entry point, 'acme' or 'acme.\*', got 'x'"):
        plugins.backend("acme")


def test_a_plugin_may_bring_backends_with_a_suffix(install, plugins):
    body = "@hookimpl\ndef nn_core_backends():\n"
    body += "    return [BackendInfo(name=n, array_class='', load=None) for n in ('acme', 'acme.sparse')]\n"
    install("acme", body)
    assert plugins.info("acme.sparse").name == "acme.sparse"


def test_two_backends_of_one_name_are_refused(install, plugins):
    install(
        "acme",
        "@hookimpl\ndef nn_core_backends():\n    return [BackendInfo(name='acme', array_class='', load=None)] * 2\n",
    )
    with pytest.raises(PluginError, match=r"backends must have different names, got \['acme', 'acme'\]"):
        plugins.backend("acme")


def test_a_context_that_takes_any_keyword_is_refused(install, plugins):
    install.backend("acme", more="{'context': lambda **keywords: None}")
    with pytest.raises(PluginError, match=r"backend 'acme': context must spell out its keywords, got \*args or \*\*kwargs"):
        plugins.backend("acme")


def test_a_backend_that_lacks_a_part_is_refused(install, plugins):
    install.backend("acme", more="{'load': lambda: object()}")
    with pytest.raises(PluginError, match=r"backend 'acme': must have name, array_class, .*, got none of name"):
        plugins.backend("acme")


def test_a_backend_must_be_the_one_announced(install, plugins):
    install.backend(
        "acme",
        body="def other():\n    backend = Host()\n    backend.array_class = 'Warp'\n    return backend\n",
        more="{'load': other}",
    )
    with pytest.raises(PluginError, match=r"must be as announced \('acme', 'CpuCachedArray'\), got \('acme', 'Warp'\)"):
        plugins.backend("acme")


# Operators.


def test_operators_are_found_by_api_and_by_name(install, plugins):
    install("acme", swish())
    plugin, spec, _ = plugins.function("acme_swish")
    assert (plugin, spec.name) == ("acme", "acme.Swish")
    assert plugins.function_named("acme.Swish") is spec
    assert plugins.function_of_api("acme_swish") is spec
    assert plugins.plugin("acme").functions == ("acme.Swish",)


def test_operators_of_the_core_are_found_without_plugins(install, plugins):
    module = install("acme", swish())
    assert plugins.function_named("Affine").api == "affine"
    assert plugins.function("affine") is None or module in sys.modules


def test_without_autoload_operators_come_with_named_plugins_only(install, plugins, monkeypatch):
    monkeypatch.setattr(plugins_module, "settings", lambda: Settings(plugin_autoload=False))
    install("acme", swish())
    assert plugins.function("acme_swish") is None
    plugins.module("acme")
    assert plugins.function("acme_swish") is not None


@pytest.mark.parametrize(("source", "name"), [(swish(name="Affine"), "Affine"), (swish(api="affine"), "affine")])
def test_an_operator_of_the_core_cannot_be_replaced(install, plugins, source, name):
    install("acme", source.replace('@kernel("Affine")', ""))
    with pytest.raises(PluginError, match=f"function '{name}': must come from one plugin, got 'nn_core' and 'acme'"):
        plugins.module("acme")


@pytest.mark.parametrize("order", [("first", "second"), ("second", "first")])
def test_an_api_name_of_two_plugins_is_refused_whatever_the_order_and_their_own_names_serve(install, plugins, order):
    for name in ("first", "second"):
        install(name, swish(name=f"{name}.Swish", api="swish_beta"))
    plugins.module(order[0])
    message = r"(?s)function 'swish_beta': must be claimed by one plugin, got 'first' and 'second'.*first.swish_beta, second"
    with pytest.raises(PluginError, match=message):
        plugins.function("swish_beta")
    assert plugins.function_named("second.Swish").api == "swish_beta"


def test_an_operator_is_named_as_its_plugin(install, plugins):
    install("acme", swish(name="other.Swish"))
    with pytest.raises(PluginError, match=r"plugin acme:2: names of functions must start with .*'acme.', got 'other.Swi"):
        plugins.module("acme")
    assert plugins.function_named("other.Swish") is None


def test_an_operator_imports_its_owner_only_and_a_typing_error_nobody(install, plugins):
    modules = {
        name: install(name, swish(f"{name}.Swish", api), index=f"functions.{api} = {name}")
        for name, api in (("first", "swish_beta"), ("second", "other_swish"), ("third", "third_swish"))
    }
    assert {"other_swish", "swish_beta", "third_swish"} <= set(plugins.names_of("functions"))
    assert plugins.function("swish_bta") is None
    assert [name for name, module in modules.items() if module in sys.modules] == []
    assert plugins.function_of_api("swish_beta").name == "first.Swish"
    assert plugins.function_named("third.Swish").api == "third_swish"
    assert [name for name, module in modules.items() if module in sys.modules] == ["first", "third"]


def test_an_api_name_with_the_prefix_of_a_plugin_imports_that_one_only(install, plugins):
    owner = install("acme", swish())
    other = install("other", swish("other.Swish", "other_swish"))
    assert plugins.function("acme_swish").plugin == "acme"
    assert owner in sys.modules
    assert other not in sys.modules


def test_operators_and_composites_are_looked_for_together_so_that_the_owner_of_one_is_enough(install, plugins):
    owner = install("acme", swish())
    other = install("other", swish("other.Swish", "other_swish"))
    added, offer = plugins.callables("acme_swish")
    assert added.plugin == "acme" and offer is None
    assert owner in sys.modules and other not in sys.modules
    assert plugins.callables("nothing") == (None, None)


def test_two_plugins_whose_indices_claim_one_name_are_refused_before_either_serves(install, plugins):
    for name in ("first", "second"):
        install(name, swish(f"{name}.Swish", "swish_beta"), index=f"functions.swish_beta = {name}")
    with pytest.raises(PluginError, match="function 'swish_beta': must be claimed by one plugin, got 'first' and 'sec"):
        plugins.function("swish_beta")


def test_kernels_of_an_operator_package_reach_the_backend(install, plugins):
    module = install("acme", "kernel_of_acme = object()\n" + swish(kernels="{'host': {'acme.Swish': kernel_of_acme}}"))
    plugins.module("acme")
    assert plugins.registry.kernel("host", "acme.Swish") is sys.modules[module].kernel_of_acme
    assert plugins.registry.kernel("host", "Affine") is None


def test_rules_and_kernels_of_the_core_cannot_be_replaced(install, plugins):
    install("acme", swish().replace("acme.Swish", "Tanh", 1))
    message = r"(?s)Tanh: the reference kernel must come from nn_core, which .*\n  hint: kernels of existing .*overlays="
    with pytest.raises(PluginError, match=message):
        plugins.module("acme")
    assert plugins.backend("reference").kernels["Tanh"] is not None


def test_kernels_for_functions_of_others_are_refused(install, plugins):
    install("acme", swish(kernels="{'host': {'Affine': None}}"))
    with pytest.raises(PluginError, match=r"must be for functions that the plugin brings \(acme.Swish\), got 'Affine'"):
        plugins.module("acme")
    assert plugins.function("acme_swish") is None


def test_what_a_module_registered_stays_while_one_of_two_users_is_left(install, plugins):
    install("acme", swish())
    other = plugins_module.Plugins()
    assert plugins.function("acme_swish") is not None
    for _ in range(2):  # loaded beside the first, closed, and loaded again
        assert other.function("acme_swish") is not None
        other.close()
        assert is_registered("reference kernel", "acme.Swish")
    plugins.close()
    assert not is_registered("reference kernel", "acme.Swish")
    assert other.function("acme_swish") is not None  # the module stayed imported
    assert is_registered("reference kernel", "acme.Swish")
    other.close()


def test_a_plugin_that_fails_takes_back_nothing_of_one_imported_meanwhile(install, plugins):
    acme = install("acme", swish())
    install("bad", f"import {acme}\nraise RuntimeError('too late')")
    assert plugins.plugin("bad").failure is not None
    added = plugins.function("acme_swish")
    assert added is not None
    assert plugins.plugin("acme").failure is None


def test_a_wrong_specification_names_the_plugin_and_the_line(install, plugins):
    install("acme", '@hookimpl\ndef nn_core_functions():\n    return [FunctionPackage(spec="- name: 3")]\n')
    with pytest.raises(PluginError, match="plugin acme:1: "):
        plugins.module("acme")


# Choice without a name.


def test_the_best_backend_is_the_available_one_of_highest_priority(install, plugins):
    install.backend("fast", more="{'priority': 1000}")
    install.backend("faster", more="{'priority': 2000, 'probe': lambda: Refusal('no device')}")
    assert plugins.best_backend() == "fast"


def test_a_broken_plugin_is_passed_over_with_one_warning(install, plugins, caplog):
    install.backend("broken", more="{'priority': 1000, 'load': lambda: 1 / 0}")
    install("unloadable", "import a_library_that_nobody_has")
    with caplog.at_level(logging.WARNING, "nn_core"):
        plugins.best_backend()
        plugins.best_backend()
    messages = sorted(record.getMessage() for record in caplog.records)
    # others that are installed may have registered elsewhere what they bring, in this process
    messages = [message for message in messages if message.partition(" ")[0] in ("broken", "unloadable")]
    assert len(messages) == 2
    assert messages[0].startswith("broken is passed over: ZeroDivisionError: division by zero (hint: nn-core doctor says")
    assert messages[1].startswith("unloadable is passed over: ModuleNotFoundError")
    assert "pip uninstall nn-ext-unloadable" in messages[1]


def test_without_any_backend_there_is_no_best_one():
    with pytest.raises(BackendNotFoundError, match=r"auto: an installed backend must be available, got \[\]"):
        plugins_module.Plugins(dict).best_backend()
